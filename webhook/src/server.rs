//! The routes on a port, from the first byte to the last answer before the process ends.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::arrival::ActivityTracker;
use crate::connections::{Connection, ConnectionPool};
use crate::limits::{Limit, Limits};
use crate::metrics::Metrics;
use crate::tls::ServerTls;

/// How long answers under way may take once the server stops. The API server waits at most 30 s.
const DRAIN_DEADLINE: Duration = Duration::from_secs(30);

/// How much of what has arrived is held for a connection before it is asked for.
const READ_BUFFER_BYTES: usize = 64 << 10;

/// The largest header taken over HTTP/2; over HTTP/1.1 it is the buffer.
const HEADER_BYTES: u32 = 64 << 10;

/// How often a client that speaks HTTP/2 is asked whether it is there.
const PING_EVERY: Duration = Duration::from_secs(30);

/// Routes on a port.
pub struct Server {
    routes: Router,
    tls: Option<Arc<ServerTls>>,
    limits: Limits,
    metrics: Option<Metrics>,
}

/// What every connection needs.
#[derive(Clone)]
struct Shared {
    tls: Option<Arc<ServerTls>>,
    routes: Router,
    limits: Limits,
    metrics: Option<Metrics>,
    stopping: watch::Receiver<bool>,
}

impl Server {
    /// A server of these routes, behind TLS.
    #[must_use]
    pub fn new(routes: Router, tls: Arc<ServerTls>, limits: Limits, metrics: Metrics) -> Self {
        Self {
            routes,
            tls: Some(tls),
            limits,
            metrics: Some(metrics),
        }
    }

    /// A server of these routes without TLS, of whose bounds nothing is told.
    #[must_use]
    pub fn http(routes: Router, limits: Limits) -> Self {
        Self {
            routes,
            tls: None,
            limits,
            metrics: None,
        }
    }

    /// Serves until `stopping` turns true and for `delay` longer, then finishes what is under way.
    ///
    /// # Guarantees
    ///
    /// TLS 1.2 is the floor. A client that fails its handshake, or never begins it, or never ends a
    /// header, holds up nobody. From `stopping` on, every answer over HTTP/1.1 ends its connection: whoever
    /// keeps connections open, as API servers do, moves away with the next request, and loses none. After
    /// the delay, no new connection is taken, those that still stand are closed politely (HTTP/2: GOAWAY),
    /// and answers under way are finished within 30 s.
    pub async fn serve(
        self,
        listener: TcpListener,
        stopping: watch::Receiver<bool>,
        delay: Duration,
    ) {
        let connections = ConnectionPool::new(self.limits.max_connections);
        let shared = Shared {
            tls: self.tls,
            routes: self.routes,
            limits: self.limits,
            metrics: self.metrics,
            stopping: stopping.clone(),
        };
        let stop = async {
            let mut stopping = stopping;
            // Nobody who could tell any more is as good as being told.
            let _ = stopping.wait_for(|stopping| *stopping).await;
            tokio::time::sleep(delay).await;
        };
        let drain = GracefulShutdown::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => break,
            };
            match accepted {
                Ok((stream, _)) => {
                    let entered = connections.try_admit();
                    if entered.as_ref().is_none_or(|(_, evicts)| *evicts) {
                        limited(shared.metrics.as_ref(), Limit::Connections);
                    }
                    if let Some((connection, _)) = entered {
                        let shared = shared.clone();
                        tokio::spawn(shared.accept_connection(stream, connection, drain.watcher()));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    // Out of file descriptors, most likely: do not spin on it.
                    if !is_about_one_connection(&error) {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            }
        }
        drop(listener);
        if tokio::time::timeout(DRAIN_DEADLINE, drain.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("answers were still under way when the time to drain was over");
        }
    }
}

fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

impl Shared {
    /// Serves one connection until it ends, breaks a bound, or has to make room.
    async fn accept_connection(self, stream: TcpStream, connection: Connection, drain: Watcher) {
        // Answers are small and whole: waiting for more to send only delays them.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else {
            return self.serve_connection(stream, None, connection, drain).await;
        };
        let Some(config) = tls.current() else {
            return tracing::debug!("a client came before the clients' CA");
        };
        let acceptor = TlsAcceptor::from(config);
        let handshake =
            tokio::time::timeout(self.limits.handshake_timeout, acceptor.accept(stream));
        let stream = tokio::select! {
            stream = handshake => stream,
            () = connection.evicted() => return,
        };
        let stream = match stream {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => return limited(self.metrics.as_ref(), Limit::Handshake),
        };
        let agreed = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        self.serve_connection(stream, agreed, connection, drain)
            .await;
    }

    /// Speaks HTTP, in the version that was agreed on.
    async fn serve_connection<S>(
        self,
        stream: S,
        agreed: Option<Vec<u8>>,
        connection: Connection,
        drain: Watcher,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let speaks_http2 = agreed.as_deref() == Some(b"h2");
        let connection = Arc::new(connection);
        let stream = ActivityTracker::new(stream, Arc::clone(&connection));
        // Who has agreed on a protocol speaks that one.
        let builder = match agreed.as_deref() {
            Some(b"h2") => self.builder().http2_only(),
            Some(_) => self.builder().http1_only(),
            None => self.builder(),
        };
        let (routes, at_work) = (self.routes, Arc::clone(&connection));
        let stopping = self.stopping;
        let service = service_fn(move |mut request: Request<Incoming>| {
            let at_work = Arc::new(at_work.start_request());
            request.extensions_mut().insert(Arc::clone(&at_work));
            let routes = routes.clone();
            let stopping = stopping.clone();
            let version = request.version();
            async move {
                let mut answer = routes.oneshot(request.map(Body::new)).await?;
                drop(at_work);
                if version == Version::HTTP_11 && *stopping.borrow() {
                    let close = HeaderValue::from_static("close");
                    answer.headers_mut().insert(CONNECTION, close);
                }
                Ok::<_, Infallible>(answer)
            }
        });
        let serving = builder.serve_connection(TokioIo::new(stream), service);
        let serving = drain.watch(serving.into_owned());
        // What a client that speaks HTTP/2 sends without a request is answered by its own rules.
        let late = connection.header_is_late(self.limits.read_header_timeout);
        tokio::select! {
            ended = serving => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection ended");
                }
            }
            () = late, if !speaks_http2 => limited(self.metrics.as_ref(), Limit::Header),
            () = connection.evicted() => {}
        }
    }

    fn builder(&self) -> Builder<TokioExecutor> {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .max_buf_size(READ_BUFFER_BYTES)
            .header_read_timeout(self.limits.idle_timeout);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_header_list_size(HEADER_BYTES)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(self.limits.read_header_timeout);
        builder
    }
}

fn limited(metrics: Option<&Metrics>, limit: Limit) {
    if let Some(metrics) = metrics {
        metrics.rejected(limit);
    }
}

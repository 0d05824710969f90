//! HTTP(S) server, from the first byte of a connection to graceful shutdown.

mod activity;
pub(crate) mod connection_limit;
mod response_body;
#[cfg(test)]
mod tests;
mod write_timeout;

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

use crate::limits::{Limit, Limits};
use crate::metrics::Metrics;
use crate::server::activity::ActivityTracker;
use crate::server::connection_limit::{Connection, ConnectionPool};
use crate::server::response_body::ResponseBody;
use crate::server::write_timeout::WriteTimeout;
use crate::tls::ServerTls;

/// Maximum time for requests in flight once the server stops. The API server waits at most 30 s.
const DRAIN_DEADLINE: Duration = Duration::from_secs(30);

/// Maximum size of the read buffer of a connection over HTTP/1.1.
const READ_BUFFER_BYTES: usize = 64 << 10;

/// Maximum size of the bytes that TLS holds for a connection until the client reads them.
const TLS_BUFFER_BYTES: usize = 16 << 10;

/// Maximum size of a header over HTTP/2. Over HTTP/1.1 the read buffer limits it.
const HEADER_BYTES: u32 = 64 << 10;

/// Interval of the keep-alive pings over HTTP/2.
const PING_EVERY: Duration = Duration::from_secs(30);

/// HTTP(S) server of routes.
pub struct Server {
    routes: Router,
    tls: Option<Arc<ServerTls>>,
    limits: Limits,
    metrics: Option<Metrics>,
}

/// Data that every connection needs.
#[derive(Clone)]
struct Shared {
    tls: Option<Arc<ServerTls>>,
    routes: Router,
    limits: Limits,
    metrics: Option<Metrics>,
    stopping: watch::Receiver<bool>,
}

impl Server {
    /// Creates a server of these routes with TLS.
    #[must_use]
    pub fn new(routes: Router, tls: Arc<ServerTls>, limits: Limits, metrics: Metrics) -> Self {
        Self {
            routes,
            tls: Some(tls),
            limits,
            metrics: Some(metrics),
        }
    }

    /// Creates a server of these routes without TLS and without metrics of its limits.
    #[must_use]
    pub fn http(routes: Router, limits: Limits) -> Self {
        Self {
            routes,
            tls: None,
            limits,
            metrics: None,
        }
    }

    /// Serves until `stopping` becomes true and for `delay` longer, then shuts down gracefully.
    ///
    /// # Guarantees
    ///
    /// The minimum version is TLS 1.2. A client that fails its handshake, never begins it, or never ends a header
    /// does not block other clients. Once `stopping` is true, every response over HTTP/1.1 closes its connection,
    /// so that clients that keep connections open, such as API servers, connect elsewhere for their next request
    /// and lose none. After the delay, no new connection is accepted, open connections are closed gracefully
    /// (HTTP/2: GOAWAY), and requests in flight are finished within 30 s.
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
            // A dropped sender counts as a signal to stop.
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
                    let admitted = connections.try_admit();
                    if admitted.as_ref().is_none_or(|(_, evicts)| *evicts) {
                        count_rejection(shared.metrics.as_ref(), Limit::MaxConnections);
                    }
                    if let Some((connection, _)) = admitted {
                        let shared = shared.clone();
                        tokio::spawn(shared.accept_connection(stream, connection, drain.watcher()));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    // Most likely no file descriptor is free: do not busy-loop.
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
            tracing::warn!(
                "requests were still in flight at the end of the graceful shutdown period"
            );
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
    /// Serves one connection until it ends, exceeds a limit, or is evicted.
    async fn accept_connection(self, stream: TcpStream, connection: Connection, drain: Watcher) {
        // Responses are small and written as a whole: Nagle's algorithm would only delay them.
        let _ = stream.set_nodelay(true);
        let stream = WriteTimeout::new(stream, self.limits.write_timeout);
        let Some(tls) = &self.tls else {
            return self.serve_connection(stream, None, connection, drain).await;
        };
        let Some(config) = tls.current() else {
            return tracing::debug!("closed a connection: the client CA has not been loaded yet");
        };
        let acceptor = TlsAcceptor::from(config);
        let accepted = acceptor.accept_with(stream, |connection| {
            connection.set_buffer_limit(Some(TLS_BUFFER_BYTES));
        });
        let handshake = tokio::time::timeout(self.limits.handshake_timeout, accepted);
        let stream = tokio::select! {
            stream = handshake => stream,
            () = connection.evicted() => return,
        };
        let stream = match stream {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => return count_rejection(self.metrics.as_ref(), Limit::HandshakeTimeout),
        };
        let alpn = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        self.serve_connection(stream, alpn, connection, drain).await;
    }

    /// Serves HTTP on a connection, in the version negotiated by ALPN.
    async fn serve_connection<S>(
        self,
        stream: S,
        alpn: Option<Vec<u8>>,
        connection: Connection,
        drain: Watcher,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let is_http2 = alpn.as_deref() == Some(b"h2");
        let connection = Arc::new(connection);
        let stream = ActivityTracker::new(stream, Arc::clone(&connection));
        // A negotiated protocol is the only one accepted.
        let builder = match alpn.as_deref() {
            Some(b"h2") => self.builder().http2_only(),
            Some(_) => self.builder().http1_only(),
            None => self.builder(),
        };
        let (routes, served) = (self.routes, Arc::clone(&connection));
        let stopping = self.stopping;
        let service = service_fn(move |mut request: Request<Incoming>| {
            let active = Arc::new(served.start_request());
            request.extensions_mut().insert(Arc::clone(&active));
            let routes = routes.clone();
            let stopping = stopping.clone();
            let connection = Arc::clone(&served);
            let version = request.version();
            async move {
                let mut response = routes.oneshot(request.map(Body::new)).await?;
                drop(active);
                if version == Version::HTTP_11 && *stopping.borrow() {
                    let close = HeaderValue::from_static("close");
                    response.headers_mut().insert(CONNECTION, close);
                }
                let response = response.map(|body| {
                    let written = connection.start_response();
                    ResponseBody::new(body, written)
                });
                Ok::<_, Infallible>(response)
            }
        });
        let serving = builder.serve_connection(TokioIo::new(stream), service);
        let serving = drain.watch(serving.into_owned());
        // Over HTTP/2, bytes without a request are frames of the protocol, which has its own time-outs.
        let late = connection.header_is_late(self.limits.read_header_timeout);
        let unread = connection.response_is_late(self.limits.write_timeout);
        tokio::select! {
            ended = serving => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection ended");
                }
            }
            // With all streams over HTTP/2: the bytes that hyper has queued for one stream cannot be taken back. An API server
            // has a window of 4 MiB for each stream and reads responses whole, so that none of its streams stalls alone.
            () = unread => count_rejection(self.metrics.as_ref(), Limit::WriteTimeout),
            () = late, if !is_http2 => count_rejection(self.metrics.as_ref(), Limit::ReadHeaderTimeout),
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

fn count_rejection(metrics: Option<&Metrics>, limit: Limit) {
    if let Some(metrics) = metrics {
        metrics.rejected(limit.name());
    }
}

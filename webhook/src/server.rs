//! TLS around the routes, from the first byte to the last answer before the process ends.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::version::{TLS12, TLS13};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::keys::ServingKeys;

/// How long a client may take to agree on TLS.
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);

/// How long a connection may stand idle, or take to send a header. Above the 90 s for which the API
/// server keeps idle connections: closing first would race with its next request.
const IDLE_DEADLINE: Duration = Duration::from_mins(2);

/// How long answers under way may take once the server stops. The API server waits at most 30 s.
const DRAIN_DEADLINE: Duration = Duration::from_secs(30);

/// Why the server cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// rustls refuses the configuration.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// Serves the routes until `stop` resolves, then finishes what is under way.
///
/// # Guarantees
///
/// TLS 1.2 is the floor. A client that fails its handshake, or never begins it, holds up nobody.
/// After `stop`, no new connection is taken, standing ones are closed politely (HTTP/2: GOAWAY), and
/// answers under way are finished within 30 s.
pub async fn serve(
    listener: TcpListener,
    routes: Router,
    keys: Arc<ServingKeys>,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_no_client_auth()
        .with_cert_resolver(keys);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let drain = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection =
                    connection(stream, acceptor.clone(), routes.clone(), drain.watcher());
                tokio::spawn(connection);
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
    Ok(())
}

fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    routes: Router,
    drain: hyper_util::server::graceful::Watcher,
) {
    // Answers are small and whole: waiting for more to send only delays them.
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE_DEADLINE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => return tracing::debug!("TLS handshake timed out"),
    };
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_DEADLINE);
    builder.http2().timer(TokioTimer::new());
    let service = TowerToHyperService::new(routes);
    let connection = builder
        .serve_connection(TokioIo::new(stream), service)
        .into_owned();
    if let Err(error) = drain.watch(connection).await {
        tracing::debug!(%error, "connection ended");
    }
}

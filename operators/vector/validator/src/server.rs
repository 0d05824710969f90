//! Server that runs Vector for clients with a token.

mod routes;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lockstep_http_server::{CertWatcher, Limits, Metrics, ServerTls};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::command::{Program, find};
use crate::protocol::TOKEN;
use crate::server::routes::State;

/// Maximum number of validations that wait.
const MAX_WAITING: usize = 8;

/// Maximum number of connections: those of the controller and of the probes.
const MAX_CONNECTIONS: usize = 64;

/// Error that keeps a validator from serving.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// The TLS configuration is invalid.
    #[error("cannot configure TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// Server that validates configurations by running Vector.
#[derive(Clone, Debug)]
pub struct Server {
    /// Address to listen on.
    pub address: SocketAddr,
    /// Directory with the certificate, its key and the token. It is read again when they change.
    pub credentials: PathBuf,
    /// Directory below which each configuration gets a directory of its own.
    pub work: PathBuf,
    /// Vector. None: the program `vector` in `PATH`.
    pub program: Option<PathBuf>,
    /// Arguments of Vector, to which `--config-dir` with the directory of the configuration is added.
    pub arguments: Vec<OsString>,
    /// Time after which a process of Vector is killed.
    pub timeout: Duration,
    /// Maximum number of processes of Vector.
    pub concurrency: NonZeroUsize,
}

impl Server {
    /// Serves until `stopping` becomes true.
    ///
    /// # Guarantees
    ///
    /// - Vector is run only for a request with the token in the file at that time.
    /// - A configuration is readable only by the user of this process, and is deleted before the response is sent.
    /// - No content of a configuration is logged.
    ///
    /// # Errors
    ///
    /// The server cannot be started.
    pub async fn serve(self, stopping: watch::Receiver<bool>) -> Result<(), ServerError> {
        let address = self.address;
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| ServerError::Listen(address, error))?;
        self.serve_on(listener, stopping).await
    }

    async fn serve_on(
        self,
        listener: TcpListener,
        stopping: watch::Receiver<bool>,
    ) -> Result<(), ServerError> {
        let metrics = Metrics::register(&mut Registry::default());
        let keys = CertWatcher::new(&self.credentials);
        let tls = Arc::new(ServerTls::new(Arc::clone(&keys))?);
        let watching = tokio::spawn(keys.run(metrics.clone()));
        let program = self.program.unwrap_or_else(|| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            find("vector", &path)
        });
        let slots = self.concurrency.get();
        let state = State {
            token: self.credentials.join(TOKEN),
            work: self.work,
            program: Program::new(program, self.timeout),
            arguments: self.arguments,
            running: Semaphore::new(slots),
            admitted: Semaphore::new(slots + MAX_WAITING),
        };
        let limits = Limits {
            max_connections: MAX_CONNECTIONS,
            ..Limits::default()
        };
        let routes = routes::of(Arc::new(state));
        let server = lockstep_http_server::Server::new(routes, tls, limits, metrics);
        server.serve(listener, stopping, Duration::ZERO).await;
        watching.abort();
        Ok(())
    }
}

//! moto, a simulation of AWS.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

use kube::{Client, Config};
use tempfile::TempDir;

use crate::error::Error;
use crate::moto_install::install_moto;
#[cfg(feature = "node")]
use crate::node::Node;
use crate::pool::{Pool, PoolUser};
use crate::process::{Process, free_port};
use crate::wait::eventually;

/// Servers whose tests have succeeded. After the first requests, a server has loaded the models of the services, which
/// takes longer than its start.
static POOL: Pool<Server> = Pool::new();

/// Moto server. It is stopped when the value is dropped.
pub struct Moto {
    address: SocketAddr,
    /// Unset while the value is dropped.
    server: Option<Server>,
    /// Set if another test may use the server afterwards.
    pool: Option<PoolUser<Server>>,
}

struct Server {
    _process: Process,
    address: SocketAddr,
    /// Output of the process, if it is not in the folder of a single test.
    _logs: Option<TempDir>,
}

impl Moto {
    /// Default AWS account.
    pub const ACCOUNT: &str = "123456789012";

    /// Starts a server without any resources on a loopback address, or takes one that an earlier test of this process
    /// has used, and deletes its resources.
    pub async fn start() -> Result<Self, Error> {
        let pool = POOL.enter();
        let idle = pool.take(|_| true);
        let server = match idle {
            Some(idle) if idle.reset().await.is_ok() => idle,
            _ => Server::start().await?,
        };
        Ok(Self {
            address: server.address,
            server: Some(server),
            pool: Some(pool),
        })
    }

    /// Starts a server for an AWS account, with its output in a folder.
    pub async fn start_as(logs: &Path, account: &str) -> Result<Self, Error> {
        let command = Command::new(install_moto()?);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        Server::listen(command, address, account, logs)
            .await
            .map(Self::of_one_test)
    }

    /// Starts a server on the address of a node, where its Pods reach it.
    #[cfg(feature = "node")]
    pub async fn start_on(node: &Node) -> Result<Self, Error> {
        let command = node.command(&install_moto()?);
        let address = SocketAddr::from((node.address(), free_port()));
        Server::listen(command, address, Moto::ACCOUNT, node.directory())
            .await
            .map(Self::of_one_test)
    }

    fn of_one_test(server: Server) -> Self {
        Self {
            address: server.address,
            server: Some(server),
            pool: None,
        }
    }

    /// Returns the endpoint of all AWS services.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the environment variables that make AWS clients use this server.
    pub fn environment(&self) -> Vec<(String, String)> {
        aws_environment(&self.endpoint())
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let kept = self.server.take().filter(|_| !std::thread::panicking());
        if let (Some(pool), Some(server)) = (&self.pool, kept) {
            pool.keep(server);
        }
    }
}

impl Server {
    async fn start() -> Result<Self, Error> {
        let logs =
            TempDir::with_prefix("moto-").map_err(Error::file(Path::new("temporary directory")))?;
        let command = Command::new(install_moto()?);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let started = Self::listen(command, address, Moto::ACCOUNT, logs.path()).await?;
        Ok(Self {
            _logs: Some(logs),
            ..started
        })
    }

    /// Deletes all resources.
    async fn reset(&self) -> Result<(), Error> {
        let url = format!("http://{}", self.address).parse();
        let client = Client::try_from(Config::new(url.expect("a URL")))?;
        let request = http::Request::post("/moto-api/reset").body(Vec::new());
        client.request_text(request.expect("a request")).await?;
        Ok(())
    }

    async fn listen(
        mut command: Command,
        address: SocketAddr,
        account: &str,
        logs: &Path,
    ) -> Result<Self, Error> {
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let process = Process::start(
            "moto",
            // With more snapshots than its default limit of 20, moto returns an error although it has created the
            // snapshot.
            command
                .args(["-H", &host, "-p", &port])
                .env("MOTO_RDS_SNAPSHOT_LIMIT", "100000")
                // Without its compiled modules, each start takes a second of CPU time instead of a third.
                .env_remove("PYTHONDONTWRITEBYTECODE")
                .env("MOTO_ACCOUNT_ID", account),
            logs,
        )?;
        // Whether the port answers does not matter: if it was taken, another process does.
        eventually("moto to listen", async || {
            let is_settled =
                process.output().contains("Running on") || process.exit_status().is_some();
            is_settled.then_some(())
        })
        .await
        .map_err(|error| error.with_hint(&process.tail()))?;
        if process.exit_status().is_some() {
            return Err(process.start_error());
        }
        Ok(Self {
            _process: process,
            address,
            _logs: None,
        })
    }
}

/// Returns the environment variables that make AWS clients use an endpoint of moto.
pub fn aws_environment(endpoint: &str) -> Vec<(String, String)> {
    let variables = [
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "testing"),
        ("AWS_SECRET_ACCESS_KEY", "testing"),
    ];
    variables
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use tempfile::TempDir;

    use super::*;

    #[tokio::test]
    async fn a_port_of_another_process_is_the_named_reason() {
        let logs = TempDir::new().expect("a directory");
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = taken.local_addr().expect("an address");
        let command = Command::new(install_moto().expect("moto"));
        let started = Server::listen(command, address, Moto::ACCOUNT, logs.path()).await;
        let error = started.err().expect("moto cannot start");
        assert!(matches!(error, Error::PortInUse { .. }), "{error}");
        assert!(
            error.to_string().contains("run the command again"),
            "{error}"
        );
    }
}

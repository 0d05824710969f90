//! moto, a simulation of AWS.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

use crate::error::Error;
use crate::moto_install::install_moto;
#[cfg(feature = "node")]
use crate::node::Node;
use crate::process::{Process, free_port};
use crate::wait::eventually;

/// Default AWS account of moto.
const ACCOUNT: &str = "123456789012";

/// Moto server. It is stopped when the value is dropped.
pub struct Moto {
    _process: Process,
    address: SocketAddr,
}

impl Moto {
    /// Starts a server without any resources on a loopback address.
    pub async fn start(logs: &Path) -> Result<Self, Error> {
        Self::start_as(logs, ACCOUNT).await
    }

    /// Starts a server for another AWS account.
    pub async fn start_as(logs: &Path, account: &str) -> Result<Self, Error> {
        let command = Command::new(install_moto()?);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        Self::listen(command, address, account, logs).await
    }

    /// Starts a server on the address of a node, where its Pods reach it.
    #[cfg(feature = "node")]
    pub async fn start_on(node: &Node) -> Result<Self, Error> {
        let command = node.command(&install_moto()?);
        let address = SocketAddr::from((node.address(), free_port()));
        Self::listen(command, address, ACCOUNT, node.directory()).await
    }

    async fn listen(
        mut command: Command,
        address: SocketAddr,
        account: &str,
        logs: &Path,
    ) -> Result<Self, Error> {
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let mut process = Process::start(
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
        })
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
        let started = Moto::listen(command, address, ACCOUNT, logs.path()).await;
        let error = started.err().expect("moto cannot start");
        assert!(matches!(error, Error::PortInUse { .. }), "{error}");
        assert!(
            error.to_string().contains("run the command again"),
            "{error}"
        );
    }
}

//! moto, a simulation of AWS.

use std::path::Path;
use std::process::Command;

use crate::error::Error;
use crate::moto_install::install_moto;
use crate::process::{Process, free_port};
use crate::wait::eventually;

/// Default AWS account of moto.
const ACCOUNT: &str = "123456789012";

/// Moto server on a loopback address. It is stopped when the value is dropped.
pub struct Moto {
    _process: Process,
    port: u16,
}

impl Moto {
    /// Starts a server without any resources.
    pub async fn start(logs: &Path) -> Result<Self, Error> {
        Self::start_as(logs, ACCOUNT).await
    }

    /// Starts a server for another AWS account.
    pub async fn start_as(logs: &Path, account: &str) -> Result<Self, Error> {
        Self::start_on(free_port(), logs, account).await
    }

    async fn start_on(port: u16, logs: &Path, account: &str) -> Result<Self, Error> {
        let server = install_moto()?;
        let mut process = Process::start(
            "moto",
            // With more snapshots than its default limit of 20, moto returns an error although it has created the
            // snapshot.
            Command::new(server)
                .args(["-H", "127.0.0.1", "-p", &port.to_string()])
                .env("MOTO_RDS_SNAPSHOT_LIMIT", "100000")
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
            port,
        })
    }

    /// Returns the endpoint of all AWS services.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
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
    use std::net::{Ipv4Addr, TcpListener};

    use tempfile::TempDir;

    use super::*;

    #[tokio::test]
    async fn a_port_of_another_process_is_the_named_reason() {
        let logs = TempDir::new().expect("a directory");
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = taken.local_addr().expect("an address").port();
        let started = Moto::start_on(port, logs.path(), ACCOUNT).await;
        let error = started.err().expect("moto cannot start");
        assert!(matches!(error, Error::PortInUse { .. }), "{error}");
        assert!(
            error.to_string().contains("run the command again"),
            "{error}"
        );
    }
}

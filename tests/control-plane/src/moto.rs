//! moto, a simulation of AWS.

use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;

use crate::error::Error;
use crate::process::{Process, free_port};
use crate::tools;
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
        let server = tools::moto_server()?;
        let port = free_port();
        let process = Process::start(
            "moto",
            // With more snapshots than its default limit of 20, moto returns an error although it has created the
            // snapshot.
            Command::new(server)
                .args(["-H", "127.0.0.1", "-p", &port.to_string()])
                .env("MOTO_RDS_SNAPSHOT_LIMIT", "100000")
                .env("MOTO_ACCOUNT_ID", account),
            logs,
        )?;
        eventually("moto to listen", async || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()
        })
        .await?;
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

//! moto: AWS, as far as tests need it.

use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;

use crate::error::Error;
use crate::process::{Process, free_port};
use crate::tools;
use crate::wait::eventually;

/// The AWS account that moto answers for by default.
const ACCOUNT: &str = "123456789012";

/// A moto server on loopback. It ends with the value.
pub struct Moto {
    _process: Process,
    port: u16,
}

impl Moto {
    /// Starts a server that knows nothing yet.
    pub async fn start(logs: &Path) -> Result<Self, Error> {
        Self::start_as(logs, ACCOUNT).await
    }

    /// Starts a server that answers for another AWS account.
    pub async fn start_as(logs: &Path, account: &str) -> Result<Self, Error> {
        let server = tools::moto_server()?;
        let port = free_port();
        let process = Process::start(
            "moto",
            // Beyond its default of 20 snapshots it fails creates that it has already done.
            Command::new(server)
                .args(["-H", "127.0.0.1", "-p", &port.to_string()])
                .env("MOTO_RDS_SNAPSHOT_LIMIT", "100000")
                .env("MOTO_ACCOUNT_ID", account),
            logs,
        )?;
        eventually("moto listening", async || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()
        })
        .await?;
        Ok(Self {
            _process: process,
            port,
        })
    }

    /// The endpoint of every AWS service.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// The environment that makes AWS tools speak to an endpoint of moto.
pub(crate) fn environment(endpoint: &str) -> [(&'static str, String); 4] {
    [
        ("AWS_ENDPOINT_URL", endpoint.to_owned()),
        ("AWS_REGION", "eu-central-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "testing".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "testing".to_owned()),
    ]
}

//! Readiness probe of a process, as the kubelet performs it.

use std::net::Ipv4Addr;

use kube::{Client, Config};

use crate::error::Error;

/// Readiness probe of one process.
pub(crate) struct Probe {
    client: Client,
}

impl Probe {
    pub(crate) fn of(address: Ipv4Addr, port: u16) -> Result<Self, Error> {
        let url = format!("http://{address}:{port}");
        let url = url.parse().expect("an address and a port are a valid URL");
        let client = Client::try_from(Config::new(url))?;
        Ok(Self { client })
    }

    pub(crate) async fn is_ready(&self) -> bool {
        let request = http::Request::get("/readyz").body(Vec::new());
        let request = request.expect("the path is valid");
        self.client.request_text(request).await.is_ok()
    }
}

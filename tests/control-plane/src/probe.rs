//! Asking a process whether it is ready, as a kubelet does.

use std::net::Ipv4Addr;

use kube::{Client, Config};

use crate::error::Error;

/// The readiness of one process.
pub(crate) struct Probe {
    client: Client,
}

impl Probe {
    pub(crate) fn of(address: Ipv4Addr, port: u16) -> Result<Self, Error> {
        let url = format!("http://{address}:{port}");
        let url = url.parse().expect("an address and a port make a URL");
        let client = Client::try_from(Config::new(url))?;
        Ok(Self { client })
    }

    pub(crate) async fn is_ready(&self) -> bool {
        let request = http::Request::get("/readyz").body(Vec::new());
        let request = request.expect("the path is one");
        self.client.request_text(request).await.is_ok()
    }
}

//! Proxy between a replica and the API server that can stop forwarding, as a network that loses all packets.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub struct ApiProxy {
    address: SocketAddr,
    is_stalled: watch::Sender<bool>,
}

impl ApiProxy {
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = listener.local_addr().expect("an address");
        let is_stalled = watch::Sender::new(false);
        let stalls = is_stalled.subscribe();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay(client, server, stalls.clone()));
            }
        });
        Self {
            address,
            is_stalled,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Keeps the connections open, and forwards nothing until it is called with `false`.
    pub fn stall(&self, is_stalled: bool) {
        self.is_stalled.send_replace(is_stalled);
    }
}

async fn relay(client: TcpStream, server: SocketAddr, stalls: watch::Receiver<bool>) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = forward(from_client, to_server, stalls.clone()) => {}
        () = forward(from_server, to_client, stalls) => {}
    }
}

async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut stalls: watch::Receiver<bool>,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let forwards = stalls.wait_for(|is_stalled| !is_stalled).await.is_ok();
        if !forwards || to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

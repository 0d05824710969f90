//! TCP proxy that can cut its connections.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub struct TcpProxy {
    address: SocketAddr,
    holds: watch::Sender<bool>,
}

impl TcpProxy {
    /// Starts a proxy that forwards connections to the server.
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (holds, is_held) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay(client, server, is_held.clone()));
            }
        });
        Self { address, holds }
    }

    /// Address on which the proxy listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends every open connection, and every new one immediately.
    pub fn cut(&self) {
        self.holds.send_replace(false);
    }

    pub fn mend(&self) {
        self.holds.send_replace(true);
    }
}

async fn relay(mut client: TcpStream, server: SocketAddr, mut holds: watch::Receiver<bool>) {
    if !*holds.borrow() {
        return;
    }
    let Ok(mut server) = TcpStream::connect(server).await else {
        return;
    };
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => {}
        _ = holds.wait_for(|holds| !holds) => {}
    }
}

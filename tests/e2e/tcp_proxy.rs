//! TCP proxy that can cut or lose its connections.

use std::future::pending;
use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub struct TcpProxy {
    address: SocketAddr,
    network: watch::Sender<Network>,
}

#[derive(Clone, Copy)]
struct Network {
    is_up: bool,
    /// Number of times that the connections were cut.
    cuts: usize,
    /// Number of times that the connections were lost.
    losses: usize,
}

impl TcpProxy {
    /// Starts a proxy that forwards connections to the server.
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (network, observed) = watch::channel(Network {
            is_up: true,
            cuts: 0,
            losses: 0,
        });
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay(client, server, observed.clone()));
            }
        });
        Self { address, network }
    }

    /// Address on which the proxy listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends every open connection, and every new one immediately.
    pub fn cut(&self) {
        self.network.send_modify(|network| {
            network.is_up = false;
            network.cuts += 1;
        });
    }

    pub fn mend(&self) {
        self.network.send_modify(|network| network.is_up = true);
    }

    /// Forwards nothing more on the open connections, which stay open, as a NAT that has forgotten them does.
    pub fn lose_connections(&self) {
        self.network.send_modify(|network| network.losses += 1);
    }
}

async fn relay(mut client: TcpStream, server: SocketAddr, mut network: watch::Receiver<Network>) {
    let before = *network.borrow();
    if !before.is_up {
        return;
    }
    let Ok(mut server) = TcpStream::connect(server).await else {
        return;
    };
    let mut lost = network.clone();
    let is_lost = tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => false,
        _ = network.wait_for(|network| network.cuts > before.cuts) => false,
        _ = lost.wait_for(|network| network.losses > before.losses) => true,
    };
    if is_lost {
        pending::<()>().await;
    }
}

//! Probes of the webhook's replicas: which certificate they serve, and whether they accept connections.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Client;
use kube::api::{Api, ListParams};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Time-out of a connection to a replica.
const DEADLINE: Duration = Duration::from_secs(5);

/// Replicas of the webhook: the endpoints of its Service.
#[derive(Clone)]
pub struct ReplicaProbe {
    /// Client of the cluster.
    pub client: Client,
    /// Namespace of the Service.
    pub namespace: String,
    /// Name of the Service.
    pub service: String,
    /// Name of the Service port.
    pub port: String,
    /// DNS name that the certificate of every replica is valid for.
    pub server_name: String,
}

impl ReplicaProbe {
    /// Returns true if every replica, ready or not, serves a certificate of this CA. Returns false if there are no
    /// replicas.
    pub(crate) async fn all_serve(&self, ca: &str) -> Result<bool, kube::Error> {
        let Some(connector) = connector(ca) else {
            return Ok(false);
        };
        let addresses = self.addresses().await?;
        let serving = join_all(addresses.iter().map(async |address| {
            let shows = self.serves(*address, &connector).await;
            if let Err(error) = &shows {
                tracing::info!(%address, error, "a replica does not serve a certificate of the new CA");
            }
            shows.is_ok()
        }));
        Ok(!addresses.is_empty() && serving.await.into_iter().all(|serving| serving))
    }

    /// Returns true if at least one replica accepts a connection.
    pub async fn any_reachable(&self) -> Result<bool, kube::Error> {
        let addresses = self.addresses().await?;
        let listens = join_all(addresses.iter().map(async |address| {
            let connected = timeout(DEADLINE, TcpStream::connect(address)).await;
            connected.is_ok_and(|connected| connected.is_ok())
        }));
        Ok(listens.await.into_iter().any(|listens| listens))
    }

    async fn addresses(&self) -> Result<Vec<SocketAddr>, kube::Error> {
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), &self.namespace);
        let of_service = format!("kubernetes.io/service-name={}", self.service);
        let params = ListParams::default().labels(&of_service);
        let addresses = slices
            .list(&params)
            .await?
            .items
            .into_iter()
            .flat_map(|slice| {
                let ports = slice.ports.into_iter().flatten();
                let ports: Vec<_> = ports
                    .filter(|port| port.name.as_deref().unwrap_or_default() == self.port)
                    .filter_map(|port| u16::try_from(port.port?).ok())
                    .collect();
                slice
                    .endpoints
                    .into_iter()
                    .flatten()
                    .flat_map(|endpoint| endpoint.addresses)
                    .filter_map(|address| address.parse::<IpAddr>().ok())
                    .flat_map(move |address| {
                        let ports = ports.clone().into_iter();
                        ports.map(move |port| SocketAddr::new(address, port))
                    })
            });
        Ok(addresses.collect())
    }

    async fn serves(&self, address: SocketAddr, connector: &TlsConnector) -> Result<(), String> {
        let name = ServerName::try_from(self.server_name.clone())
            .map_err(|error| format!("{}: {error}", self.server_name))?;
        let handshake = async {
            let stream = TcpStream::connect(address).await?;
            connector.connect(name, stream).await
        };
        match timeout(DEADLINE, handshake).await {
            Ok(shaken) => shaken.map(drop).map_err(|error| error.to_string()),
            Err(_) => Err(format!("no response within {} s", DEADLINE.as_secs())),
        }
    }
}

/// Returns a TLS client that trusts only this CA.
///
/// It uses TLS 1.3, in which the client has verified the server's certificate before the server can reject it for
/// having no client certificate.
fn connector(ca: &str) -> Option<TlsConnector> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        roots.add(certificate.ok()?).ok()?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .ok()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Some(TlsConnector::from(Arc::new(config)))
}

//! Webhook process that runs alone, without a cluster.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use lockstep_certs::{CertKeyPair, CertificateAuthority};
use lockstep_envtest::{Process, eventually, free_port};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tempfile::TempDir;
use time::OffsetDateTime;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::env::database;
use crate::webhook::review;

/// DNS name in the serving certificate.
pub const NAME: &str = "webhook.example";

/// The process, and how to connect to it.
pub struct StandaloneWebhook {
    process: Process,
    _directory: TempDir,
    pub ca: CertificateAuthority,
    port: u16,
    health: String,
}

impl StandaloneWebhook {
    /// Starts a webhook with a new CA and a new serving certificate.
    pub async fn start(options: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let ca = new_ca();
        write_pair(directory.path(), &pair_of(&ca));
        Self::start_with(directory, ca, options).await
    }

    /// Starts a webhook with the files in a directory, and waits until it is ready.
    pub async fn start_with(
        directory: TempDir,
        ca: CertificateAuthority,
        options: &[&str],
    ) -> Self {
        let webhook = Self::start_unready(directory, ca, options);
        eventually("the readiness of the webhook", async || {
            let readiness = webhook.readiness().await;
            readiness.starts_with("HTTP/1.1 200").then_some(())
        })
        .await
        .expect("the webhook becomes ready");
        webhook
    }

    /// Starts a webhook with the files in a directory, without waiting for readiness.
    pub fn start_unready(directory: TempDir, ca: CertificateAuthority, options: &[&str]) -> Self {
        let (port, health_port) = (free_port(), free_port());
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
        command
            .arg("webhook")
            .arg(format!("--webhook-bind-address=127.0.0.1:{port}"))
            .arg(format!(
                "--health-probe-bind-address=127.0.0.1:{health_port}"
            ))
            .arg("--cert-dir")
            .arg(directory.path())
            .args(["--shutdown-delay=0s"])
            .args(options);
        let process =
            Process::start("webhook", &mut command, directory.path()).expect("the process starts");
        Self {
            process,
            _directory: directory,
            ca,
            port,
            health: format!("127.0.0.1:{health_port}"),
        }
    }

    /// The process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Response of `/readyz`; empty if there is none.
    pub async fn readiness(&self) -> String {
        plain_get(&self.health, "/readyz").await.unwrap_or_default()
    }

    /// Returns true if `/healthz` responds with 200.
    pub async fn is_alive(&self) -> bool {
        let response = plain_get(&self.health, "/healthz").await;
        response.is_some_and(|response| response.starts_with("HTTP/1.1 200"))
    }

    pub async fn tcp(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port))
            .await
            .expect("the webhook accepts connections")
    }

    /// Opens a connection to the plain HTTP port.
    pub async fn plain(&self) -> TcpStream {
        TcpStream::connect(&self.health)
            .await
            .expect("the port is open")
    }

    pub async fn tls(&self) -> TlsStream<TcpStream> {
        self.tls_as(None).await.expect("TLS")
    }

    /// Opens a TLS connection, with a client certificate and its key if they are given.
    pub async fn tls_as(
        &self,
        client: Option<(&str, &str)>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        self.tls_on(self.tcp().await, client).await
    }

    /// Opens TLS on an open TCP connection.
    pub async fn tls_on(
        &self,
        stream: TcpStream,
        client: Option<(&str, &str)>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(self.ca.certificate.as_bytes());
        roots.add(authority.expect("PEM")).expect("a CA");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring supports the default TLS versions")
            .with_root_certificates(roots);
        let config = match client {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => {
                let certificate = CertificateDer::from_pem_slice(certificate.as_bytes());
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes());
                config
                    .with_client_auth_cert(vec![certificate.expect("PEM")], key.expect("PEM"))
                    .expect("a TLS key pair")
            }
        };
        let name = ServerName::try_from(NAME).expect("a name");
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
    }

    /// Sends a review as the API server does, on a connection of its own.
    pub async fn send_review(&self) -> Response<Vec<u8>> {
        let mut connection = start_http(self.tls().await).await;
        send_on(&mut connection).await.expect("a response")
    }

    /// Sends the given review, on a connection of its own.
    pub async fn post(&self, path: &str, review: &Value) -> Response<Vec<u8>> {
        let mut connection = start_http(self.tls().await).await;
        let response = post_on(&mut connection, path, review).await;
        response.expect("a response")
    }

    /// Waits until a limit was exceeded at least that often, and asserts that other requests are served meanwhile.
    pub async fn has_limited(&self, limit: &str, least: u64) {
        let metric = format!("lockstep_webhook_rejected_requests_total{{reason=\"{limit}\"}}");
        eventually("the count of the exceeded limit", async || {
            assert_eq!(
                self.send_review().await.status(),
                200,
                "other requests are served"
            );
            self.count(&metric).await.filter(|count| *count >= least)
        })
        .await
        .expect("the metric is updated");
    }

    /// Address of the health port.
    pub fn health(&self) -> &str {
        &self.health
    }

    /// Address of the webhook port.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Peak resident memory of the process, in MiB.
    pub fn peak_mib(&self) -> u64 {
        let status = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(status).expect("the process is running");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.split_whitespace().next());
        let kib: u64 = kib.and_then(|kib| kib.parse().ok()).expect("a number");
        kib / 1024
    }

    /// Current value of a metric.
    pub async fn count(&self, metric: &str) -> Option<u64> {
        let metrics = plain_get(&self.health, "/metrics").await?;
        let value = metrics.lines().find_map(|line| line.strip_prefix(metric))?;
        value.trim().parse().ok()
    }
}

/// Generates a CA that is valid for one year.
pub fn new_ca() -> CertificateAuthority {
    let lifetime = Duration::from_hours(365 * 24);
    CertificateAuthority::generate(lifetime, OffsetDateTime::now_utc()).expect("a CA")
}

/// Signs a new serving certificate.
pub fn pair_of(ca: &CertificateAuthority) -> CertKeyPair {
    let lifetime = Duration::from_hours(30 * 24);
    let pair = ca.sign(&[NAME.to_owned()], lifetime, OffsetDateTime::now_utc());
    pair.expect("a TLS key pair")
}

/// Writes certificate and key of the serving certificate as two files.
pub fn write_pair(directory: &Path, pair: &CertKeyPair) {
    for (name, content) in [("tls.crt", &pair.certificate), ("tls.key", &pair.key)] {
        std::fs::write(directory.join(name), content).expect("a file");
    }
}

pub type HttpSender = SendRequest<Full<Bytes>>;

/// Starts HTTP/1.1 on a TLS connection.
pub async fn start_http(stream: TlsStream<TcpStream>) -> HttpSender {
    let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("HTTP");
    tokio::spawn(connection);
    sender
}

/// Sends a review on an open connection.
pub async fn send_on(connection: &mut HttpSender) -> hyper::Result<Response<Vec<u8>>> {
    post_on(
        connection,
        "/validate?timeout=10s",
        &review(&database("a"), None),
    )
    .await
}

async fn post_on(
    connection: &mut HttpSender,
    path: &str,
    body: &Value,
) -> hyper::Result<Response<Vec<u8>>> {
    let body = body.to_string();
    let request = Request::post(path)
        .header("host", NAME)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    connection.ready().await?;
    let (parts, body) = connection.send_request(request).await?.into_parts();
    let body = body.collect().await.map(Collected::to_bytes)?;
    Ok(Response::from_parts(parts, body.to_vec()))
}

/// Sends one GET request to a plain HTTP port and returns the whole response.
pub async fn plain_get(address: &str, path: &str) -> Option<String> {
    plain(address, &format!("GET {path}"), "").await
}

/// Sends one request with any method and additional headers to a plain HTTP port.
pub async fn plain(address: &str, what: &str, headers: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("{what} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await.ok()?;
    Some(response)
}

/// Reads until the other side closes or breaks the connection.
pub async fn rest(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

//! A gate by itself, without a cluster.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use certs::{CertKeyPair, CertificateAuthority};
use control_plane::{Process, eventually, free_port};
use http::{Request, Response};
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
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

use crate::gate::review;
use crate::world::database;

/// What its certificate is valid for.
pub const NAME: &str = "gate.example";

/// The process, and how to speak to it.
pub struct Alone {
    process: Process,
    _directory: TempDir,
    pub ca: CertificateAuthority,
    port: u16,
    health: String,
}

impl Alone {
    /// A gate with keys of its own.
    pub async fn start(options: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let ca = new_ca();
        write_pair(directory.path(), &pair_of(&ca));
        Self::start_with(directory, ca, options).await
    }

    /// A gate with what is in a directory.
    pub async fn start_with(
        directory: TempDir,
        ca: CertificateAuthority,
        options: &[&str],
    ) -> Self {
        let gate = Self::start_unready(directory, ca, options);
        eventually("the gate being ready", async || {
            let readiness = gate.readiness().await;
            readiness.starts_with("HTTP/1.1 200").then_some(())
        })
        .await
        .expect("it becomes ready");
        gate
    }

    /// The same, without waiting for anything.
    pub fn start_unready(directory: TempDir, ca: CertificateAuthority, options: &[&str]) -> Self {
        let (port, health_port) = (free_port(), free_port());
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
        command
            .arg("webhook")
            .arg(format!("--listen=127.0.0.1:{port}"))
            .arg(format!("--health-listen=127.0.0.1:{health_port}"))
            .arg("--tls-directory")
            .arg(directory.path())
            .args(["--shutdown-delay=0s"])
            .args(options);
        let process = Process::start("webhook", &mut command, directory.path()).expect("a gate");
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

    /// What it says of being ready, if it says anything.
    pub async fn readiness(&self) -> String {
        plain_get(&self.health, "/readyz").await.unwrap_or_default()
    }

    /// Whether it says that it lives.
    pub async fn is_alive(&self) -> bool {
        let answer = plain_get(&self.health, "/healthz").await;
        answer.is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
    }

    pub async fn tcp(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port))
            .await
            .expect("the gate listens")
    }

    /// A connection to the plain port.
    pub async fn plain(&self) -> TcpStream {
        TcpStream::connect(&self.health).await.expect("it listens")
    }

    pub async fn tls(&self) -> TlsStream<TcpStream> {
        self.tls_as(None).await.expect("TLS")
    }

    /// TLS as a client with a certificate and its key, or with none.
    pub async fn tls_as(
        &self,
        client: Option<(&str, &str)>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        self.tls_on(self.tcp().await, client).await
    }

    /// The same, on a connection that stands.
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
            .expect("ring speaks TLS")
            .with_root_certificates(roots);
        let config = match client {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => {
                let certificate = CertificateDer::from_pem_slice(certificate.as_bytes());
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes());
                config
                    .with_client_auth_cert(vec![certificate.expect("PEM")], key.expect("PEM"))
                    .expect("a pair")
            }
        };
        let name = ServerName::try_from(NAME).expect("a name");
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
    }

    /// Asks for a review as the API server does, on a connection of its own.
    pub async fn ask(&self) -> Response<Vec<u8>> {
        let mut connection = speak(self.tls().await).await;
        ask_on(&mut connection).await.expect("an answer")
    }

    /// Sends any review, on a connection of its own.
    pub async fn post(&self, path: &str, review: &Value) -> Response<Vec<u8>> {
        let mut connection = speak(self.tls().await).await;
        let answer = post_on(&mut connection, path, review).await;
        answer.expect("an answer")
    }

    /// Waits until a bound has bitten that often, and asserts that others are served meanwhile.
    pub async fn has_limited(&self, limit: &str, least: u64) {
        let metric = format!("lockstep_gate_limited_total{{limit=\"{limit}\"}}");
        eventually("the bound being counted", async || {
            assert_eq!(self.ask().await.status(), 200, "others are served");
            self.count(&metric).await.filter(|count| *count >= least)
        })
        .await
        .expect("it is counted");
    }

    /// Where it is reached.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// What the process has held at most, in MiB.
    pub fn peak_mib(&self) -> u64 {
        let status = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(status).expect("it runs");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.split_whitespace().next());
        let kib: u64 = kib.and_then(|kib| kib.parse().ok()).expect("a number");
        kib / 1024
    }

    /// What a metric stands at.
    pub async fn count(&self, metric: &str) -> Option<u64> {
        let metrics = plain_get(&self.health, "/metrics").await?;
        let value = metrics.lines().find_map(|line| line.strip_prefix(metric))?;
        value.trim().parse().ok()
    }
}

/// A CA that lives as long as CAs do.
pub fn new_ca() -> CertificateAuthority {
    let life = Duration::from_hours(365 * 24);
    CertificateAuthority::generate(life, OffsetDateTime::now_utc()).expect("a CA")
}

/// A new serving pair.
pub fn pair_of(ca: &CertificateAuthority) -> CertKeyPair {
    let life = Duration::from_hours(30 * 24);
    let pair = ca.sign(&[NAME.to_owned()], life, OffsetDateTime::now_utc());
    pair.expect("a pair")
}

/// Writes a serving pair as two files.
pub fn write_pair(directory: &Path, pair: &CertKeyPair) {
    for (name, content) in [("tls.crt", &pair.certificate), ("tls.key", &pair.key)] {
        std::fs::write(directory.join(name), content).expect("a file");
    }
}

pub type Speaking = SendRequest<Full<Bytes>>;

/// Speaks HTTP on a connection.
pub async fn speak(stream: TlsStream<TcpStream>) -> Speaking {
    let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("HTTP");
    tokio::spawn(connection);
    sender
}

/// Asks for a review on a connection that stands.
pub async fn ask_on(connection: &mut Speaking) -> hyper::Result<Response<Vec<u8>>> {
    post_on(
        connection,
        "/validate?timeout=10s",
        &review(&database("a"), None),
    )
    .await
}

async fn post_on(
    connection: &mut Speaking,
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

/// What is answered on a plain port, asked once.
pub async fn plain_get(address: &str, path: &str) -> Option<String> {
    plain(address, &format!("GET {path}"), "").await
}

/// The same for any method, with more headers.
pub async fn plain(address: &str, what: &str, headers: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("{what} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer)
}

/// Everything that comes until the other side closes, however it does that.
pub async fn rest(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

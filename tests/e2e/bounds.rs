//! The gate's bounds: who breaks one is ended, and everybody else is served.

use std::process::Command;
use std::sync::Arc;

use control_plane::{Process, eventually, free_port};
use http::{Request, Response};
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::gate::review;
use crate::world::database;

const NAME: &str = "gate.example";

/// A gate by itself: it needs no cluster.
struct Alone {
    _process: Process,
    _directory: TempDir,
    port: u16,
    health: String,
    connector: TlsConnector,
}

impl Alone {
    async fn start(options: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let keys =
            certs::KeyMaterial::generate(&[NAME.to_owned()], time::OffsetDateTime::now_utc())
                .expect("keys");
        let write = |name: &str, content: &str| {
            std::fs::write(directory.path().join(name), content).expect("a file");
        };
        write("tls.crt", &keys.certificate);
        write("tls.key", &keys.key);
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
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(keys.ca_certificate.as_bytes());
        roots.add(authority.expect("PEM")).expect("a CA");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring speaks TLS")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let gate = Self {
            _process: process,
            _directory: directory,
            port,
            health: format!("127.0.0.1:{health_port}"),
            connector: TlsConnector::from(Arc::new(config)),
        };
        eventually("the gate being ready", async || {
            let answer = plain_get(&gate.health, "/readyz").await?;
            answer.starts_with("HTTP/1.1 200").then_some(())
        })
        .await
        .expect("it becomes ready");
        gate
    }

    async fn tcp(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port))
            .await
            .expect("the gate listens")
    }

    async fn tls(&self) -> TlsStream<TcpStream> {
        let name = ServerName::try_from(NAME).expect("a name");
        let stream = self.connector.connect(name, self.tcp().await).await;
        stream.expect("TLS")
    }

    /// Asks for a review as the API server does.
    async fn ask(&self) -> Response<Vec<u8>> {
        let body = review(&database("a"), None).to_string();
        let request = Request::post("/validate?timeout=10s")
            .header("host", NAME)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .expect("a request");
        let (mut sender, connection) = handshake(TokioIo::new(self.tls().await))
            .await
            .expect("HTTP");
        tokio::spawn(connection);
        let (parts, body) = sender
            .send_request(request)
            .await
            .expect("an answer")
            .into_parts();
        let body = body.collect().await.map(Collected::to_bytes);
        Response::from_parts(parts, body.expect("a body").to_vec())
    }

    /// Waits until a bound has bitten that often, and asserts that others are served meanwhile.
    async fn has_limited(&self, limit: &str, least: u64) {
        let start = format!("lockstep_gate_limited_total{{limit=\"{limit}\"}} ");
        eventually("the bound being counted", async || {
            assert_eq!(self.ask().await.status(), 200, "others are served");
            self.count(&start).await.filter(|count| *count >= least)
        })
        .await
        .expect("it is counted");
    }

    async fn count(&self, start: &str) -> Option<u64> {
        let metrics = plain_get(&self.health, "/metrics").await?;
        let line = metrics.lines().find_map(|line| line.strip_prefix(start))?;
        line.parse().ok()
    }
}

async fn plain_get(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer)
}

/// Everything that comes until the other side closes, however it does that.
async fn rest(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_ends_a_handshake_a_header_or_a_body_is_ended() {
    let gate = Alone::start(&[
        "--handshake-timeout=300ms",
        "--header-timeout=300ms",
        "--body-timeout=300ms",
    ])
    .await;
    let mut silent = gate.tcp().await;
    let mut header = gate.tls().await;
    header
        .write_all(b"POST /validate HTTP/1.1\r\nhost: gate")
        .await
        .expect("it is sent");
    let mut body = gate.tls().await;
    let announced = "POST /validate HTTP/1.1\r\nhost: gate\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    body.write_all(announced.as_bytes())
        .await
        .expect("it is sent");
    for limit in ["handshake", "header", "body"] {
        gate.has_limited(limit, 1).await;
    }
    assert_eq!(rest(&mut silent).await, "");
    assert_eq!(rest(&mut header).await, "");
    let answer = rest(&mut body).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_comes_before_the_api_server_stops_waiting() {
    let gate = Alone::start(&[]).await;
    let mut body = gate.tls().await;
    let announced = "POST /validate?timeout=1s HTTP/1.1\r\nhost: gate\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    body.write_all(announced.as_bytes())
        .await
        .expect("it is sent");
    gate.has_limited("request", 1).await;
    let answer = rest(&mut body).await;
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_connection_finds_room_where_others_are_idle() {
    let gate = Alone::start(&["--max-connections=4"]).await;
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(gate.tls().await);
    }
    gate.has_limited("connections", 16).await;
    assert_eq!(rest(&mut idle[0]).await, "", "the oldest made room");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_much_at_once_is_shed_for_the_api_server_to_try_again() {
    for option in ["--max-reviews=0", "--bodies-limit-bytes=100"] {
        let gate = Alone::start(&[option]).await;
        let answer = gate.ask().await;
        assert_eq!(answer.status(), 429, "{option}");
        assert_eq!(answer.headers()["retry-after"], "1", "{option}");
        assert!(is_status(&answer), "{option}");
    }
}

fn is_status(answer: &Response<Vec<u8>>) -> bool {
    let status: serde_json::Value = serde_json::from_slice(answer.body()).expect("JSON");
    status["kind"] == "Status" && status["code"] == answer.status().as_u16()
}

//! Webhook in a cgroup, and clients of it.

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use lockstep_certs::CertificateAuthority;
use lockstep_envtest::{Process, eventually, free_port};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use time::OffsetDateTime;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::cgroup::Cgroup;
use crate::shapes::Expected;

/// DNS name in the serving certificate.
const NAME: &str = "webhook.example";

/// Size of the receive buffer of a client that does not read.
const UNREAD_BUFFER_BYTES: u32 = 4 << 10;

/// Time in which a webhook must end after SIGTERM: the server's deadline for requests in flight, and a margin.
const SHUTDOWN: Duration = Duration::from_secs(30 + 5);

/// Webhook process.
pub struct Webhook {
    process: Process,
    port: u16,
    tls: TlsConnector,
    _directory: TempDir,
}

/// Response to a request.
pub struct Response {
    /// Status code, or 0 if there was none.
    pub status: u16,
    /// Its first bytes.
    pub start: String,
    /// Number of its bytes.
    pub bytes: usize,
}

impl Response {
    pub fn is(&self, expected: Expected) -> bool {
        let (status, part) = match expected {
            Expected::Denied => (200, r#""allowed":false"#),
            Expected::Allowed => (200, r#""allowed":true"#),
            Expected::Converted => (200, r#""convertedObjects":[{"#),
            Expected::NotConverted => (200, r#""status":"Failure""#),
            Expected::Unread => return self.bytes == 1,
        };
        self.status == status && self.start.contains(part)
    }
}

impl Webhook {
    /// Starts the webhook as a process of a cgroup, and waits until it is ready.
    pub async fn start(cgroup: &Cgroup) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let lifetime = Duration::from_hours(24);
        let now = OffsetDateTime::now_utc();
        let ca = CertificateAuthority::generate(lifetime, now).expect("a CA");
        let pair = ca.sign(&[NAME.to_owned()], lifetime, now).expect("a pair");
        for (name, content) in [("tls.crt", &pair.certificate), ("tls.key", &pair.key)] {
            std::fs::write(directory.path().join(name), content).expect("a file");
        }
        let port = free_port();
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"echo $$ > "$0" && exec "$@""#])
            .arg(cgroup.processes())
            .arg(env!("CARGO_BIN_EXE_lockstep"))
            .arg("webhook")
            .arg(format!("--webhook-bind-address=127.0.0.1:{port}"))
            .arg(format!(
                "--health-probe-bind-address=127.0.0.1:{}",
                free_port()
            ))
            .arg("--cert-dir")
            .arg(directory.path())
            .args(["--shutdown-delay=0s"]);
        let process = Process::start("webhook", &mut command, directory.path());
        let webhook = Self {
            process: process.expect("the process starts"),
            port,
            tls: connector(&ca),
            _directory: directory,
        };
        eventually("the serving certificate", async || {
            webhook.connect(None).await
        })
        .await
        .expect("the webhook serves");
        webhook
    }

    pub fn is_running(&self) -> bool {
        self.process.exit_status().is_none()
    }

    /// Sends a request and reads the whole response.
    pub async fn send(&self, request: &[u8]) -> Response {
        let mut stream = self.connect(None).await.expect("a connection");
        let mut start = Vec::new();
        let mut bytes = 0;
        let mut buffer = vec![0; 64 << 10];
        // The webhook may respond, and close, before it has read all of the request.
        let _ = stream.write_all(request).await;
        let _ = stream.flush().await;
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            bytes += read;
            if start.len() < 1 << 10 {
                start.extend_from_slice(&buffer[..read.min(1 << 10)]);
            }
        }
        let start = String::from_utf8_lossy(&start).into_owned();
        let status = start.split(' ').nth(1).and_then(|code| code.parse().ok());
        Response {
            status: status.unwrap_or_default(),
            start,
            bytes,
        }
    }

    /// Sends a request on many connections, and reads only the first byte of each response. Returns when all have come.
    pub async fn send_unread(&self, request: &[u8], connections: usize) -> Vec<Response> {
        let unread = (0..connections).map(|_| async move {
            let mut stream = self.start_unread(request).await;
            let first = stream.read_u8().await;
            (stream, first.is_ok())
        });
        let streams = join_all(unread).await;
        let responses = streams.iter().map(|(_, has_begun)| Response {
            status: 0,
            start: String::new(),
            bytes: usize::from(*has_begun),
        });
        responses.collect()
    }

    /// Sends SIGTERM while clients do not read their responses, and waits until the process has ended.
    pub async fn terminate_with_unread_responses(&self, request: Vec<u8>) {
        let mut streams = Vec::new();
        for _ in 0..8 {
            streams.push(self.start_unread(&request).await);
        }
        self.process.terminate().expect("the process runs");
        let ended = tokio::time::timeout(SHUTDOWN, self.process.ended()).await;
        assert!(ended.is_ok(), "the webhook has not ended");
        let status = self.process.exit_status();
        assert!(status.is_some_and(|status| status.success()), "{status:?}");
        drop(streams);
    }

    /// Sends a request, and reads nothing.
    async fn start_unread(&self, request: &[u8]) -> TlsStream<TcpStream> {
        let stream = self.connect(Some(UNREAD_BUFFER_BYTES)).await;
        let mut stream = stream.expect("a connection");
        let _ = stream.write_all(request).await;
        let _ = stream.flush().await;
        stream
    }

    async fn connect(&self, receive_buffer: Option<u32>) -> Option<TlsStream<TcpStream>> {
        let socket = TcpSocket::new_v4().ok()?;
        if let Some(bytes) = receive_buffer {
            socket.set_recv_buffer_size(bytes).ok()?;
        }
        let stream = socket.connect((Ipv4Addr::LOCALHOST, self.port).into());
        let name = ServerName::try_from(NAME).expect("a name");
        self.tls.connect(name, stream.await.ok()?).await.ok()
    }

    /// Peak resident memory of the process since the last reset, in MiB.
    pub fn peak_mib(&self) -> u64 {
        let status = std::fs::read_to_string(self.file("status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.split_whitespace().next());
        let kib: u64 = kib.and_then(|kib| kib.parse().ok()).unwrap_or_default();
        kib >> 10
    }

    pub fn reset_peak(&self) {
        std::fs::write(self.file("clear_refs"), "5").expect("the process runs");
    }

    fn file(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.process.id())
    }
}

fn connector(ca: &CertificateAuthority) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(ca.certificate.as_bytes());
    roots.add(authority.expect("PEM")).expect("a CA");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports the default TLS versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

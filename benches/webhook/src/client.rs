//! Client that sends reviews to one server as an API server does, over HTTP/1.1, and measures the latency of every
//! response.

use std::fs;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bench_harness::NONCE;
use http_body_util::{BodyExt, Collected, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Host name in the certificate.
pub(crate) const NAME: &str = "lockstep-webhook.lockstep-system.svc";

/// Number of digits in the text that makes a review new.
const DIGITS: usize = 8;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    server: SocketAddr,
    #[arg(long)]
    ca: PathBuf,
    /// File with the review.
    #[arg(long)]
    body: PathBuf,
    /// Number of causes that the response must contain; 0 if the review must be allowed.
    #[arg(long)]
    causes: usize,
    /// Number of concurrent connections.
    #[arg(long)]
    connections: usize,
    /// Use a new connection for every request.
    #[arg(long)]
    new_connections: bool,
    /// Make every review different from all earlier ones: each request writes a counter into a placeholder of the
    /// review.
    #[arg(long)]
    is_new: bool,
    #[arg(long)]
    warm_up_ms: u64,
    #[arg(long)]
    measure_ms: u64,
}

/// Results of one run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) responses: u32,
    pub(crate) seconds: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

struct Load {
    server: SocketAddr,
    connector: TlsConnector,
    body: Bytes,
    /// Byte ranges of the digits that make a request new.
    nonces: Vec<Range<usize>>,
    sent: AtomicUsize,
    causes: usize,
    new_connections: bool,
    from: Instant,
    until: Instant,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let measured = runtime.block_on(measure(args))?;
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

async fn measure(args: &Args) -> anyhow::Result<Measured> {
    let now = Instant::now();
    let from = now + Duration::from_millis(args.warm_up_ms);
    let body = fs::read_to_string(&args.body).with_context(|| args.body.display().to_string())?;
    let nonces = body.match_indices(NONCE).filter(|_| args.is_new);
    let nonces: Vec<_> = nonces
        .map(|(at, nonce)| at + nonce.len() - DIGITS..at + nonce.len())
        .collect();
    ensure!(
        nonces.is_empty() != args.is_new,
        "the review has no placeholder to make it new"
    );
    let load = Arc::new(Load {
        server: args.server,
        connector: connector(&args.ca)?,
        body: body.into(),
        nonces,
        // Starts with another number than earlier processes.
        sent: AtomicUsize::new(std::process::id() as usize * 1_000),
        causes: args.causes,
        new_connections: args.new_connections,
        from,
        until: from + Duration::from_millis(args.measure_ms),
    });
    let tasks: Vec<_> = (0..args.connections)
        .map(|_| tokio::spawn(Arc::clone(&load).send_until_the_end()))
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await??);
    }
    ensure!(
        !latencies.is_empty(),
        "no response within the measured time"
    );
    latencies.sort_unstable();
    let at = |share: usize| {
        let index = (latencies.len() * share / 100).min(latencies.len() - 1);
        f64::from(latencies[index]) / 10.0
    };
    Ok(Measured {
        responses: u32::try_from(latencies.len())?,
        seconds: Duration::from_millis(args.measure_ms).as_secs_f64(),
        p50_us: at(50),
        p99_us: at(99),
    })
}

impl Load {
    /// Sends reviews until the end of the run and returns the latency of each response within the measured time, in
    /// tenths of a microsecond.
    async fn send_until_the_end(self: Arc<Self>) -> anyhow::Result<Vec<u32>> {
        let mut latencies = Vec::new();
        let mut connection = self.connect().await?;
        let mut is_checked = false;
        loop {
            let started = Instant::now();
            if started >= self.until {
                return Ok(latencies);
            }
            if self.new_connections {
                connection = self.connect().await?;
            }
            let response = self.send(&mut connection).await?;
            let ended = Instant::now();
            if !is_checked {
                self.check(&response)?;
                is_checked = true;
            }
            if started >= self.from && ended <= self.until {
                let tenths = (ended - started).as_nanos() / 100;
                latencies.push(u32::try_from(tenths).unwrap_or(u32::MAX));
            }
        }
    }

    async fn connect(&self) -> anyhow::Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect(self.server).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(NAME)?;
        let stream = self.connector.connect(name, stream).await?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn send(&self, connection: &mut SendRequest<Full<Bytes>>) -> anyhow::Result<Bytes> {
        let request = Request::post("/validate?timeout=10s")
            .header("host", NAME)
            .header("content-type", "application/json")
            .header("accept", "application/json, */*")
            .header("user-agent", "kube-apiserver-admission")
            .body(Full::new(self.body()))?;
        connection.ready().await?;
        let response = connection.send_request(request).await?;
        ensure!(
            response.status() == 200,
            "unexpected HTTP status {}",
            response.status()
        );
        Ok(response
            .into_body()
            .collect()
            .await
            .map(Collected::to_bytes)?)
    }

    fn body(&self) -> Bytes {
        if self.nonces.is_empty() {
            return self.body.clone();
        }
        let count = self.sent.fetch_add(1, Ordering::Relaxed);
        let digits = format!("{:0DIGITS$}", count % 10usize.pow(8));
        let mut body = self.body.to_vec();
        for range in &self.nonces {
            body[range.clone()].copy_from_slice(digits.as_bytes());
        }
        body.into()
    }

    fn check(&self, response: &[u8]) -> anyhow::Result<()> {
        let response: Value = serde_json::from_slice(response)?;
        let causes = response.pointer("/response/status/details/causes");
        let causes = causes.and_then(Value::as_array).map_or(0, Vec::len);
        ensure!(
            response["response"]["allowed"] == (self.causes == 0) && causes == self.causes,
            "unexpected response: {response}"
        );
        Ok(())
    }
}

fn connector(ca: &std::path::Path) -> anyhow::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).context("the CA")?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    // API servers do not resume TLS sessions: every connection has a full handshake.
    config.resumption = rustls::client::Resumption::disabled();
    Ok(TlsConnector::from(Arc::new(config)))
}

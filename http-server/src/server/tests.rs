//! Clients that read a response slowly, or not at all.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, Bytes};
use axum::routing::get;
use http_body_util::BodyExt;
use hyper::client::conn::http2;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, copy, duplex, split};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::*;

/// Length of a response, which does not fit into the buffers of a connection.
const LENGTH: usize = 256 << 10;

/// Number of bytes on their way to a client.
const IN_FLIGHT: usize = 4 << 10;

const REQUEST: &[u8] = b"GET /large HTTP/1.1\r\nhost: server\r\nconnection: close\r\n\r\n";

/// Connection of a server and its client, without a network.
struct Served {
    client: DuplexStream,
    /// Ends with the connection.
    serving: JoinHandle<()>,
    responses: Responses,
    _drain: GracefulShutdown,
}

/// Large responses whose bytes are in memory.
#[derive(Clone, Default)]
struct Responses(Arc<AtomicUsize>);

impl Responses {
    fn in_memory(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self) -> LargeBody {
        self.0.fetch_add(1, Ordering::Relaxed);
        LargeBody {
            bytes: vec![b'x'; LENGTH],
            responses: self.clone(),
        }
    }
}

struct LargeBody {
    bytes: Vec<u8>,
    responses: Responses,
}

impl Drop for LargeBody {
    fn drop(&mut self) {
        self.responses.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AsRef<[u8]> for LargeBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn serve(alpn: &[u8]) -> Served {
    let responses = Responses::default();
    let of_route = responses.clone();
    let large = move || async move { Body::from(Bytes::from_owner(of_route.add())) };
    let shared = Shared {
        tls: None,
        routes: Router::new()
            .route("/large", get(large))
            .route("/small", get(|| async { "small" })),
        limits: Limits::default(),
        metrics: None,
        stopping: watch::channel(false).1,
    };
    let drain = GracefulShutdown::new();
    let (client, server) = duplex(IN_FLIGHT);
    let stream = WriteTimeout::new(server, shared.limits.write_timeout);
    let connection = ConnectionPool::new(1).try_admit().expect("room").0;
    let alpn = Some(alpn.to_vec());
    let serving = shared.serve_connection(stream, alpn, connection, drain.watcher());
    Served {
        client,
        serving: tokio::spawn(serving),
        responses,
        _drain: drain,
    }
}

impl Served {
    /// Waits until the server has closed the connection, and returns the time.
    async fn closed(self, since: Instant) -> Duration {
        let closed = timeout(Duration::from_mins(5), self.serving).await;
        closed.expect("the connection is closed").expect("no panic");
        assert_eq!(self.responses.in_memory(), 0, "the memory is given back");
        since.elapsed()
    }
}

/// Returns true if a time is that of the write time-out.
fn is_write_timeout(time: Duration) -> bool {
    let limit = Limits::default().write_timeout;
    (limit..limit + Duration::from_secs(1)).contains(&time)
}

/// Reads a response over HTTP/1.1 with pauses, and returns the number of its bytes.
async fn read_with_pauses(client: &mut DuplexStream, pause: Duration) -> usize {
    let mut bytes = 0;
    let mut buffer = [0; IN_FLIGHT];
    while let Ok(read @ 1..) = client.read(&mut buffer).await {
        bytes += read;
        sleep(pause).await;
    }
    bytes
}

/// Connects over HTTP/2. The client accepts this number of bytes of a response before it reads.
async fn connect(
    client: DuplexStream,
    window: u32,
) -> (
    http2::SendRequest<Body>,
    http2::Connection<TokioIo<DuplexStream>, Body, TokioExecutor>,
) {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window);
    let connected = builder.handshake(TokioIo::new(client)).await;
    connected.expect("a connection")
}

fn request(path: &str) -> Request<Body> {
    let uri = format!("http://server/{path}");
    Request::get(uri).body(Body::empty()).expect("a request")
}

#[tokio::test(start_paused = true)]
async fn over_http1_a_client_that_does_not_read_is_disconnected_and_the_memory_is_given_back() {
    let mut served = serve(b"http/1.1");
    let began = Instant::now();
    served.client.write_all(REQUEST).await.expect("room");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(served.responses.in_memory(), 1);
    let time = served.closed(began).await;
    assert!(is_write_timeout(time), "{time:?}");
}

#[tokio::test(start_paused = true)]
async fn over_http1_a_client_has_the_timeout_for_the_whole_response() {
    let mut served = serve(b"http/1.1");
    served.client.write_all(REQUEST).await.expect("room");
    // Six seconds for all parts.
    let bytes = read_with_pauses(&mut served.client, Duration::from_millis(90)).await;
    assert!(bytes > LENGTH, "{bytes}");
    // A client that reads as little as it can gets no more time.
    let mut served = serve(b"http/1.1");
    let began = Instant::now();
    served.client.write_all(REQUEST).await.expect("room");
    let bytes = read_with_pauses(&mut served.client, Duration::from_millis(500)).await;
    assert!(bytes < LENGTH, "{bytes}");
    served.closed(began).await;
}

#[tokio::test(start_paused = true)]
async fn over_http2_a_client_that_does_not_read_is_disconnected_and_the_memory_is_given_back() {
    let mut served = serve(b"h2");
    let to_server = std::mem::replace(&mut served.client, duplex(1).0);
    let (client, network) = duplex(IN_FLIGHT);
    // The network passes on the head of the response and the beginning of its body.
    tokio::spawn(async move {
        let (mut from_client, mut to_client) = split(network);
        let (from_server, mut to_server) = split(to_server);
        let mut beginning = from_server.take(16 << 10);
        let _ = tokio::join!(
            copy(&mut from_client, &mut to_server),
            copy(&mut beginning, &mut to_client),
        );
    });
    let (mut requests, connection) = connect(client, 1 << 20).await;
    tokio::spawn(connection);
    let began = Instant::now();
    let head = requests.send_request(request("large")).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(served.responses.in_memory(), 1);
    let time = served.closed(began).await;
    assert!(is_write_timeout(time), "{time:?}");
    drop(head);
}

#[tokio::test(start_paused = true)]
async fn over_http2_a_stream_that_is_not_read_disturbs_no_other_one_until_the_connection_is_closed()
{
    let mut served = serve(b"h2");
    let client = std::mem::replace(&mut served.client, duplex(1).0);
    let (mut requests, connection) = connect(client, 16 << 10).await;
    tokio::spawn(connection);
    let began = Instant::now();
    let unread = requests.send_request(request("large")).await;
    for _ in 0..9 {
        let small = requests.send_request(request("small")).await;
        assert_eq!(small.expect("a response").status(), 200);
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(served.responses.in_memory(), 1);
    let time = served.closed(began).await;
    assert!(is_write_timeout(time), "{time:?}");
    drop(unread);
}

#[tokio::test(start_paused = true)]
async fn over_http2_a_client_that_reads_slowly_gets_the_whole_response() {
    let mut served = serve(b"h2");
    let client = std::mem::replace(&mut served.client, duplex(1).0);
    let (mut requests, connection) = connect(client, 16 << 10).await;
    tokio::spawn(connection);
    let response = requests.send_request(request("large")).await;
    let mut body = response.expect("a response").into_body();
    let mut bytes = 0;
    while let Some(part) = body.frame().await {
        let part = part.expect("the connection is open");
        bytes += part.data_ref().map_or(0, Bytes::len);
        // Eight seconds for all parts.
        sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(bytes, LENGTH);
    // The connection serves the next request.
    let small = requests.send_request(request("small")).await;
    assert_eq!(small.expect("a response").status(), 200);
    assert_eq!(served.responses.in_memory(), 0);
}

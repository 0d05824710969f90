//! Malicious clients: whatever one sends, other clients are served, and the memory of the webhook stays bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::env::database;
use crate::standalone_webhook::{StandaloneWebhook, rest, send_on, start_http};
use crate::webhook::review;

/// Duration of each attack.
const ATTACK: Duration = Duration::from_secs(2);

/// Number of concurrent attackers.
const ATTACKERS: usize = 16;

/// Time that the API server waits for the webhook.
const DEADLINE: Duration = Duration::from_secs(5);

/// Memory limit for all request bodies together, and some room for everything else.
const MAX_MIB: u64 = 256 + 128;

/// Builds the script of a connection from the body of a valid review. The connection is used until the webhook
/// closes it or the time is over.
type Attack = fn(&[u8]) -> Script;

/// Bytes that a connection sends: `once` first, then `again` repeatedly.
struct Script {
    tls: bool,
    once: Vec<u8>,
    again: Vec<u8>,
    /// If true, the client closes the connection after `once`.
    leaves: bool,
}

fn raw(once: &[u8], again: &[u8]) -> Script {
    Script {
        tls: false,
        once: once.to_vec(),
        again: again.to_vec(),
        leaves: false,
    }
}

fn http(once: &[u8], again: &[u8]) -> Script {
    Script {
        tls: true,
        ..raw(once, again)
    }
}

fn post(headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /validate HTTP/1.1\r\nhost: webhook\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

const JSON: &str = "content-type: application/json\r\n";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len())
        .expect("a frame is short")
        .to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Connection preface of HTTP/2, with empty settings.
fn preface() -> Vec<u8> {
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(),
        &frame(4, 0, 0, &[]),
    ]
    .concat()
}

/// `POST https://gate/validate`, encoded with the HPACK static table.
const POST_HEADERS: &[u8] = b"\x83\x87\x04\x09/validate\x01\x04gate";

/// Streams that are opened and reset immediately.
fn rapid_reset() -> Vec<u8> {
    let streams = (0..2_000_u32).map(|index| 2 * index + 1);
    let reset = |stream| {
        [
            frame(1, 4, stream, POST_HEADERS),
            frame(3, 0, stream, &[0, 0, 0, 8]),
        ]
    };
    streams.flat_map(reset).flatten().collect()
}

/// Header block that never ends.
fn continuations() -> Vec<u8> {
    let more = frame(9, 0, 1, &[0x40; 1024]);
    [frame(1, 0, 1, POST_HEADERS), more.repeat(64)].concat()
}

/// Review of an object with a long list.
fn with_items(good: &[u8], item: &str, count: usize) -> Vec<u8> {
    let list = format!(r#""spec":{{"list":[{}0],"#, item.repeat(count));
    let good = String::from_utf8(good.to_vec()).expect("text");
    assert!(good.contains(r#""spec":{"#));
    good.replacen(r#""spec":{"#, &list, 1).into_bytes()
}

const ATTACKS: [(&str, Attack); 15] = [
    ("complete handshakes without a request", |_| Script {
        leaves: true,
        ..http(b"", b"")
    }),
    ("handshakes that are cut off", |_| {
        raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"")
    }),
    ("garbage instead of TLS", |_| raw(b"", &[0x5a; 4096])),
    ("plain HTTP on the TLS port", |good| {
        raw(b"", &post(JSON, good))
    }),
    ("requests that do not wait for responses", |good| {
        http(b"", &post(JSON, good).repeat(50))
    }),
    ("a header of 10 MB", |_| {
        http(
            b"POST /validate HTTP/1.1\r\nhost: webhook\r\nx: ",
            &[b'x'; 65_536],
        )
    }),
    ("100 MB of spaces", |_| {
        let head = "POST /validate HTTP/1.1\r\nhost: webhook\r\ncontent-length: 104857600\r\n";
        http(format!("{head}{JSON}\r\n").as_bytes(), &[b' '; 65_536])
    }),
    ("endless chunks", |_| {
        let head = "POST /validate HTTP/1.1\r\nhost: webhook\r\ntransfer-encoding: chunked\r\n";
        http(format!("{head}{JSON}\r\n").as_bytes(), b"1\r\n \r\n")
    }),
    ("objects 10,000 levels deep", |_| {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let body = format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"object":{deep}}}}}"#
        );
        http(b"", &post(JSON, body.as_bytes()))
    }),
    ("7 MB of small objects", |good| {
        http(b"", &post(JSON, &with_items(good, r#"{"a":0},"#, 800_000)))
    }),
    ("2 MB of numbers", |good| {
        http(b"", &post(JSON, &with_items(good, "0,", 1_000_000)))
    }),
    ("reviews cut off in the middle", |good| {
        let whole = post(JSON, good);
        http(&whole[..whole.len() / 2], b"")
    }),
    ("HTTP/2 streams that are reset immediately", |_| {
        http(&preface(), &rapid_reset())
    }),
    ("an HTTP/2 header that never ends", |_| {
        http(&preface(), &continuations())
    }),
    ("endless HTTP/2 settings and pings", |_| {
        let both = [frame(4, 0, 0, &[0, 3, 0, 0, 0, 1]), frame(6, 0, 0, &[0; 8])].concat();
        http(&preface(), &both.repeat(200))
    }),
];

#[tokio::test(flavor = "multi_thread")]
async fn other_clients_are_served_whatever_one_client_sends() {
    let webhook = Arc::new(
        StandaloneWebhook::start(&["--read-header-timeout=1s", "--handshake-timeout=1s"]).await,
    );
    for (name, attack) in ATTACKS {
        let stop = Arc::new(AtomicBool::new(false));
        let good = tokio::spawn(behave(Arc::clone(&webhook), Arc::clone(&stop)));
        let until = Instant::now() + ATTACK;
        let body = review(&database("a"), None).to_string().into_bytes();
        let attackers = (0..ATTACKERS).map(|_| attack_repeatedly(&webhook, attack(&body), until));
        let connections: usize = join_all(attackers).await.into_iter().sum();
        stop.store(true, Ordering::Relaxed);
        let (served, slowest) = good.await.expect("the other client is served");
        let peak = webhook.peak_mib();
        println!(
            "{name}: {connections} connections; other clients: {served} responses, the slowest after {} ms; \
             peak memory {peak} MiB",
            slowest.as_millis()
        );
        assert!(served > 0, "{name}: no other client was served");
        assert!(slowest < DEADLINE, "{name}: {slowest:?}");
        assert!(peak < MAX_MIB, "{name}: {peak} MiB");
    }
}

/// Sends valid reviews, each on a new connection. Returns the number of responses and the slowest response time.
async fn behave(webhook: Arc<StandaloneWebhook>, stop: Arc<AtomicBool>) -> (usize, Duration) {
    let (mut served, mut slowest) = (0, Duration::ZERO);
    while !stop.load(Ordering::Relaxed) {
        let started = Instant::now();
        let mut connection = start_http(webhook.tls().await).await;
        let response = send_on(&mut connection).await.expect("a response");
        assert_eq!(response.status(), 200);
        slowest = slowest.max(started.elapsed());
        served += 1;
    }
    (served, slowest)
}

/// Opens connections until the time is over. Returns their number.
async fn attack_repeatedly(webhook: &StandaloneWebhook, script: Script, until: Instant) -> usize {
    let mut connections = 0;
    while Instant::now() < until {
        let left = until.saturating_duration_since(Instant::now());
        let stream = webhook.tcp().await;
        connections += 1;
        if script.tls {
            if let Ok(stream) = webhook.tls_on(stream, None).await {
                let _ = timeout(left, play(stream, &script)).await;
            }
        } else {
            let _ = timeout(left, play(stream, &script)).await;
        }
    }
    connections
}

/// Sends until the webhook closes the connection. Responses are read; otherwise the webhook would only wait for
/// the client to read them.
async fn play(stream: impl AsyncRead + AsyncWrite + Unpin, script: &Script) {
    let (mut reading, mut writing) = tokio::io::split(stream);
    let read = async {
        let mut buffer = vec![0; 65_536];
        while reading.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
    };
    let write = async {
        let sent = writing.write_all(&script.once).await;
        if script.leaves {
            return;
        }
        if sent.is_err() || script.again.is_empty() {
            return std::future::pending().await;
        }
        while writing.write_all(&script.again).await.is_ok() && writing.flush().await.is_ok() {}
    };
    tokio::select! {
        () = read => {}
        () = write => {}
    }
}

/// Status line of the response to a request, on a connection of its own.
async fn respond_to(webhook: &StandaloneWebhook, request: &[u8]) -> String {
    let mut stream = webhook.tls().await;
    stream.write_all(request).await.expect("the bytes are sent");
    let mut response = vec![0; 4096];
    let read = stream.read(&mut response).await.unwrap_or_default();
    let status = String::from_utf8_lossy(&response[..read]);
    status.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_no_valid_review_are_rejected() {
    let webhook = StandaloneWebhook::start(&[]).await;
    let good = review(&database("a"), None).to_string();
    let uid = "0c9a4d1e-1b7b-4c62-8a58-6a4a7c3b2f10";
    let changed = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        post(JSON, good.replacen(from, to, 1).as_bytes())
    };
    let huge = "u".repeat(1 << 20);
    for (name, request, expected) in [
        ("no content type", post("", good.as_bytes()), "415"),
        ("YAML", post("content-type: application/yaml\r\n", good.as_bytes()), "415"),
        ("no uid", changed(uid, ""), "400"),
        ("a lone surrogate", changed("\"app\"", "\"\\ud800\""), "400"),
        ("NUL in a text", changed("\"app\"", "\"a\u{0}p\""), "400"),
        ("NUL after the end", post(JSON, format!("{good}\u{0}").as_bytes()), "400"),
        ("not UTF-8", post(JSON, &[&good.as_bytes()[..20], b"\xff\xfe"].concat()), "400"),
        ("two requests", changed("\"request\":", "\"request\":{},\"request\":"), "400"),
        ("an array", post(JSON, b"[]"), "400"),
        ("nothing", post(JSON, b""), "400"),
        ("GET", b"GET /validate HTTP/1.1\r\nhost: webhook\r\n\r\n".to_vec(), "405"),
        ("another path", b"POST /other HTTP/1.1\r\nhost: webhook\r\ncontent-length: 0\r\n\r\n".to_vec(), "404"),
        ("two lengths", b"POST /validate HTTP/1.1\r\nhost: webhook\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n".to_vec(), "400"),
        // The response contains it.
        ("a huge uid", changed(uid, &huge), "400"),
    ] {
        let response = respond_to(&webhook, &request).await;
        assert!(response.starts_with(&format!("HTTP/1.1 {expected}")), "{name}: {response}");
    }
    // Duplicate field: the last value counts, as in the API server that sent the request. No field is lost.
    let mut stream = webhook.tls().await;
    let twice = changed(
        "\"username\":\"app\"",
        "\"username\":\"app\",\"username\":\"user\"",
    );
    let twice = String::from_utf8(twice).expect("text");
    let length = twice.find("\r\n\r\n").map(|head| twice.len() - head - 4);
    let request = twice.replacen(
        &format!("content-length: {}", length.expect("a body")),
        &format!(
            "content-length: {}\r\nconnection: close",
            length.expect("a body")
        ),
        1,
    );
    stream
        .write_all(request.as_bytes())
        .await
        .expect("the bytes are sent");
    let response = rest(&mut stream).await;
    assert!(response.contains("username-reserved"), "{response}");
}

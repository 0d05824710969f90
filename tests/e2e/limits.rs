//! Limits of the webhook: a client that exceeds one is disconnected, and other clients are served.

use http::Response;
use lockstep_envtest::eventually;
use tokio::io::AsyncWriteExt;

use crate::standalone_webhook::{StandaloneWebhook, rest};

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_completes_a_handshake_a_header_or_a_body_is_disconnected() {
    let webhook = StandaloneWebhook::start(&[
        "--handshake-timeout=300ms",
        "--read-header-timeout=300ms",
        "--body-timeout=300ms",
    ])
    .await;
    let mut silent = webhook.tcp().await;
    let mut header = webhook.tls().await;
    header
        .write_all(b"POST /validate HTTP/1.1\r\nhost: webhook")
        .await
        .expect("the bytes are sent");
    let mut body = webhook.tls().await;
    let announced = "POST /validate HTTP/1.1\r\nhost: webhook\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    body.write_all(announced.as_bytes())
        .await
        .expect("the bytes are sent");
    for limit in ["handshake-timeout", "read-header-timeout", "body-timeout"] {
        webhook.has_limited(limit, 1).await;
    }
    assert_eq!(rest(&mut silent).await, "");
    assert_eq!(rest(&mut header).await, "");
    let response = rest(&mut body).await;
    assert!(response.starts_with("HTTP/1.1 408"), "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_webhook_responds_before_the_api_server_times_out() {
    let webhook = StandaloneWebhook::start(&[]).await;
    let mut body = webhook.tls().await;
    let announced = "POST /validate?timeout=1s HTTP/1.1\r\nhost: webhook\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    body.write_all(announced.as_bytes())
        .await
        .expect("the bytes are sent");
    webhook.has_limited("request-timeout", 1).await;
    let response = rest(&mut body).await;
    assert!(response.starts_with("HTTP/1.1 504"), "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_connection_replaces_the_longest_idle_one() {
    let webhook = StandaloneWebhook::start(&["--max-connections=4"]).await;
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(webhook.tls().await);
    }
    webhook.has_limited("max-connections", 16).await;
    assert_eq!(
        rest(&mut idle[0]).await,
        "",
        "the oldest connection was closed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_connection_replaces_the_one_with_the_oldest_incomplete_request() {
    let webhook = StandaloneWebhook::start(&["--max-connections=4", "--body-timeout=1h"]).await;
    let in_flight = r#"controller_runtime_webhook_requests_in_flight{webhook="/validate"}"#;
    let mut slow = Vec::new();
    for count in 1..=4 {
        let mut stream = webhook.tls().await;
        let head = "POST /validate HTTP/1.1\r\nhost: webhook\r\ncontent-length: 100\r\n\r\n{";
        stream
            .write_all(head.as_bytes())
            .await
            .expect("the bytes are sent");
        slow.push(stream);
        eventually("the start of the request", async || {
            (webhook.count(in_flight).await == Some(count)).then_some(())
        })
        .await
        .expect("the request starts");
    }
    assert_eq!(
        webhook.send_review().await.status(),
        200,
        "other requests are served"
    );
    assert_eq!(
        rest(&mut slow[0]).await,
        "",
        "the connection with the oldest incomplete request was closed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn excess_requests_are_rejected_with_429_and_retry_after() {
    for option in ["--max-requests-inflight=0", "--max-inflight-bytes=100"] {
        let webhook = StandaloneWebhook::start(&[option]).await;
        let response = webhook.send_review().await;
        assert_eq!(response.status(), 429, "{option}");
        assert_eq!(response.headers()["retry-after"], "1", "{option}");
        assert!(is_status(&response), "{option}");
    }
}

fn is_status(response: &Response<Vec<u8>>) -> bool {
    let status: serde_json::Value = serde_json::from_slice(response.body()).expect("JSON");
    status["kind"] == "Status" && status["code"] == response.status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_idle_connections_do_not_delay_other_clients() {
    // By the default time-out, a slow machine would close the first connections before there are enough of them.
    let webhook = StandaloneWebhook::start(&["--handshake-timeout=10m"]).await;
    let (mut silent, mut idle) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        for _ in 0..450 {
            silent.push(webhook.tcp().await);
        }
        for _ in 0..50 {
            idle.push(webhook.tls().await);
        }
        assert_eq!(
            webhook.send_review().await.status(),
            200,
            "other requests are served"
        );
    }
    webhook.has_limited("max-connections", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn health_requests_are_served_despite_idle_connections() {
    let webhook = StandaloneWebhook::start(&[]).await;
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(webhook.plain().await);
    }
    assert!(webhook.is_alive().await);
    assert_eq!(
        rest(&mut idle[0]).await,
        "",
        "the oldest connection was closed"
    );
}

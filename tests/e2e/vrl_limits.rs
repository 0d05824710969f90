//! VRL programs that keep all static limits but are too expensive to compile: the author gets an error, and other
//! clients are not affected.

use std::sync::Arc;

use lockstep_envtest::eventually;
use serde_json::{Value, json};

use crate::standalone_webhook::StandaloneWebhook;
use crate::vector::{pipeline, remapping};
use crate::webhook::review;

const IN_FLIGHT: &str = r#"controller_runtime_webhook_requests_in_flight{webhook="/validate"}"#;

/// Program within all limits that takes the compiler many seconds: a type that doubles 15 times, then 130 more lines.
pub fn slow(nonce: usize) -> String {
    let doubles = "x = [x, x]\n".repeat(15);
    let follows = ".y = 1\n".repeat(130);
    format!("# {nonce}\nx = 1\n{doubles}{follows}")
}

/// Program within all limits that takes the compiler all available memory: a type that doubles with each line.
fn large() -> String {
    format!("x = 1\n{}", "x = [x, x]\n".repeat(140))
}

fn review_of(program: &str) -> Value {
    review(&pipeline("example", &remapping(program)), None)
}

async fn response_of(webhook: &StandaloneWebhook, review: &Value) -> Value {
    let response = webhook.post("/validate?timeout=10s", review).await;
    assert_eq!(response.status(), 200);
    let response: Value = serde_json::from_slice(response.body()).expect("JSON");
    response["response"].clone()
}

fn denial_message(response: &Value) -> &str {
    assert_eq!(response["allowed"], false, "{response}");
    let causes = &response["status"]["details"]["causes"];
    assert_eq!(causes[0]["reason"], "InternalError", "{response}");
    assert_eq!(causes[0]["field"], "spec.transforms[parse].source");
    causes[0]["message"].as_str().expect("a message")
}

/// Asserts that a limit was exceeded. Which one is exceeded first depends on the machine and its load.
fn assert_exceeded(message: &str) {
    let is_reported = [
        "it takes more memory than",
        "s of CPU time",
        "it exceeded the time limit",
        "too many programs are being compiled; retry later",
    ]
    .iter()
    .any(|limit| message.contains(limit));
    assert!(is_reported, "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_takes_all_memory_affects_only_its_author() {
    let webhook = StandaloneWebhook::start(&[]).await;
    for _ in 0..2 {
        let response = response_of(&webhook, &review_of(&large())).await;
        assert_exceeded(denial_message(&response));
    }
    assert!(webhook.peak_mib() < 100, "{} MiB", webhook.peak_mib());
    let response = response_of(&webhook, &review_of(".a = 1")).await;
    assert_eq!(response["allowed"], true, "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_clients_are_served_while_programs_are_compiled() {
    let webhook = Arc::new(StandaloneWebhook::start(&[]).await);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let slow = (0..cores + 2).map(|nonce| {
        let webhook = Arc::clone(&webhook);
        tokio::spawn(async move { response_of(&webhook, &review_of(&slow(nonce))).await })
    });
    let slow: Vec<_> = slow.collect();
    eventually("the compilation of more programs than cores", async || {
        let count = webhook.count(IN_FLIGHT).await?;
        (count >= slow.len() as u64).then_some(())
    })
    .await
    .expect("the compilations have started");
    // Reviews of another kind, and pipelines without a program.
    assert_eq!(webhook.send_review().await.status(), 200);
    let without = json!({
        "sources": {"in": {"type": "kubernetes_logs"}},
        "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
    });
    let without = response_of(&webhook, &review(&pipeline("without", &without), None)).await;
    assert_eq!(without["allowed"], true, "{without}");
    assert!(
        slow.iter().all(|slow| !slow.is_finished()),
        "these reviews waited for the slow programs"
    );
    for slow in slow {
        let response = slow.await.expect("a response");
        assert_exceeded(denial_message(&response));
    }
}

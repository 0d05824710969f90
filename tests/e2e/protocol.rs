//! Malformed and well-formed requests: each gets a defined response, and no malformed request hangs or is allowed.

use http::Request;
use lockstep_envtest::{check_metrics, h2spec, oracle};
use serde_json::{Value, json};

use crate::env::{TestEnv, database_without_warning};
use crate::metrics_page;
use crate::standalone_webhook::StandaloneWebhook;
use crate::webhook::{WebhookClient, review};

fn post(path: &str, body: Vec<u8>) -> Request<Vec<u8>> {
    Request::post(path)
        .header("content-type", "application/json; charset=utf-8")
        .body(body)
        .expect("a request")
}

/// Valid review without one of its fields.
fn without(parent: &str, field: &str) -> Vec<u8> {
    let mut review = review(&database_without_warning("a"), None);
    let parent = review.pointer_mut(parent).and_then(Value::as_object_mut);
    parent.expect("an object").remove(field);
    review.to_string().into_bytes()
}

/// Valid review with another value in one of its fields.
fn with(pointer: &str, value: Value) -> Vec<u8> {
    let mut review = review(&database_without_warning("a"), None);
    *review.pointer_mut(pointer).expect("a field") = value;
    review.to_string().into_bytes()
}

/// Malformed bodies, which are all rejected with 400.
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("malformed JSON", b"{\"apiVersion\": ".to_vec()),
        ("an empty body", Vec::new()),
        ("not UTF-8", b"{\"kind\": \"\xff\"}".to_vec()),
        ("another kind", with("/kind", json!("TokenReview"))),
        (
            "another version",
            with("/apiVersion", json!("admission.k8s.io/v1beta1")),
        ),
        ("no request", without("", "request")),
        ("a null request", with("/request", Value::Null)),
        ("no object", without("/request", "object")),
        ("a null object", with("/request/object", Value::Null)),
        ("no uid", without("/request", "uid")),
        ("an empty uid", with("/request/uid", json!(""))),
        ("no operation", without("/request", "operation")),
        (
            "an unknown operation",
            with("/request/operation", json!("update")),
        ),
        (
            "an update without an old object",
            with("/request/operation", json!("UPDATE")),
        ),
        (
            "excessive nesting",
            [vec![b'['; 100_000], vec![b']'; 100_000]].concat(),
        ),
    ]
}

/// Requests that are rejected before their body is parsed.
fn misdirected() -> Vec<(u16, &'static str, Request<Vec<u8>>)> {
    let request = |builder: http::request::Builder, body: &[u8]| {
        builder.body(body.to_vec()).expect("a request")
    };
    let plain = Request::post("/validate").header("content-type", "text/plain");
    let elsewhere = Request::post("/").header("content-type", "application/json");
    vec![
        (
            413,
            "an oversized body",
            post("/validate", vec![b' '; 7 * 1024 * 1024 + 1]),
        ),
        (415, "another content type", request(plain, b"{}")),
        (
            415,
            "no content type",
            request(Request::post("/validate"), b"{}"),
        ),
        (
            405,
            "another method",
            request(Request::get("/validate"), b""),
        ),
        (404, "another path", request(elsewhere, b"{}")),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn http_2_conforms_to_the_specification() {
    let webhook = StandaloneWebhook::start(&[]).await;
    let address = webhook.address();
    // Some cases of h2spec send a frame after a complete request and fail if the response was faster, which happens by
    // chance on a busy machine. A real error fails in every attempt.
    let run = tokio::task::spawn_blocking(move || {
        let first = h2spec(address, "/validate");
        (0..3).fold(first, |report, _| {
            report.or_else(|_| h2spec(address, "/validate"))
        })
    });
    let report = run.await.expect("h2spec runs");
    let report = report.unwrap_or_else(|error| panic!("{error}"));
    assert!(report.contains(" 0 failed"), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_prometheus_linter_finds_no_error_in_the_metrics() {
    let env = TestEnv::start().await;
    let mut invalid = database_without_warning("orders");
    invalid["spec"]["credentials"]["username"] = "user".into();
    env.kubectl_apply(&invalid)
        .expect_err("the object is denied");
    env.kubectl_apply(&database_without_warning("orders"))
        .expect("stored");
    env.condition("orders", "Ready", "True").await;
    for (process, url, must_have) in [
        (
            "webhook",
            env.installation.webhook_health_url(),
            &["lockstep_rule_violations_total"][..],
        ),
        (
            "controller",
            env.installation.controller_health_url(),
            &[
                "lockstep_webhook_fail_closed 1",
                "leader_election_master_status{name=\"lockstep-controller\"} 1",
                "rest_client_requests_total{code=\"200\",method=\"PATCH\"",
                "workqueue_unfinished_work_seconds{name=\"clouddatabase\"}",
                "workqueue_longest_running_processor_seconds{name=\"clouddatabase\"}",
                "controller_runtime_max_concurrent_reconciles{controller=\"clouddatabase\"} 8",
                "controller_runtime_active_workers{controller=\"clouddatabase\"}",
                "lockstep_watch_up{controller=\"clouddatabase\",resource=\"clouddatabases.database.example.com\"} 1",
            ],
        ),
    ] {
        let metrics = env.metrics(&url).await;
        for line in must_have {
            assert!(metrics.contains(line), "{line} is missing in {metrics}");
        }
        check_metrics(&metrics).unwrap_or_else(|error| panic!("{error}\n{metrics}"));
        metrics_page::compare(process, &metrics);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_are_rejected_and_well_formed_reviews_are_answered() {
    let mut env = TestEnv::start().await;
    let webhook = WebhookClient::of(&env).await;
    let malformed = malformed().into_iter().flat_map(|(what, body)| {
        ["/validate", "/mutate"].map(|path| (400, what, post(path, body.clone())))
    });
    for (code, what, request) in malformed.chain(misdirected()) {
        let response = webhook.send(request).await;
        let body = String::from_utf8_lossy(response.body()).into_owned();
        assert_eq!(response.status(), code, "{what}: {body}");
        let status: Value =
            serde_json::from_str(&body).unwrap_or_else(|error| panic!("{what}: {error}: {body}"));
        assert_eq!(status["kind"], "Status", "{what}");
        assert_eq!(status["status"], "Failure", "{what}");
        assert_eq!(status["code"], json!(code), "{what}");
        assert!(
            status["message"]
                .as_str()
                .is_some_and(|message| message.len() > 10),
            "{what}: {body}"
        );
        assert!(!body.contains("\"allowed\""), "{what}: {body}");
    }
    unregistered_kinds_are_denied(&webhook).await;
    well_formed_reviews_are_answered(&webhook).await;

    let metrics = env.metrics(&env.installation.webhook_health_url()).await;
    let counted = r#"controller_runtime_webhook_requests_total{webhook="/validate",code="413"} 1"#;
    assert!(metrics.contains(counted), "{metrics}");

    // SIGTERM: requests in flight are completed, and the process exits with 0.
    let (half, rest) = webhook
        .begin("/validate", &review(&database_without_warning("a"), None))
        .await;
    let webhook = env.installation.webhook();
    webhook.terminate().expect("a signal");
    let port = env.installation.webhook_port();
    let closed = async || {
        tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .is_err()
            .then_some(())
    };
    lockstep_envtest::eventually("the end of the listener", closed)
        .await
        .expect("the listener is closed");
    rest.send(()).expect("the webhook still reads the request");
    assert_eq!(half.await.expect("a response").status(), 200);
    let webhook = env.installation.webhook();
    let ended =
        lockstep_envtest::eventually("the webhook's exit", async || webhook.exit_status()).await;
    assert!(ended.expect("the process ends").success());
}

/// The Go types of the API server must contain every field of a response.
#[tokio::test(flavor = "multi_thread")]
async fn responses_are_decoded_strictly_by_the_go_types() {
    let webhook = StandaloneWebhook::start(&[]).await;
    let mut warned = database_without_warning("a");
    warned["spec"]["storage"]["maxSizeGib"] = json!(115);
    let mut denied = warned.clone();
    denied["spec"]["credentials"]["username"] = json!("user");
    denied["spec"]["port"] = json!(80);
    let mut stranger = review(&database_without_warning("a"), None);
    stranger["request"]["kind"]["kind"] = json!("Widget");
    let convert = |to: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "ConversionReview",
            "request": {"uid": "u", "desiredAPIVersion": to, "objects": [database_without_warning("a")]},
        })
    };
    let mut responses = Vec::new();
    for (path, review) in [
        ("/validate", review(&database_without_warning("a"), None)),
        ("/validate", review(&warned, None)),
        ("/validate", review(&denied, None)),
        ("/validate", stranger),
        ("/mutate", review(&database_without_warning("a"), None)),
        (
            "/mutate",
            review(
                &database_without_warning("a"),
                Some(&database_without_warning("a")),
            ),
        ),
        ("/convert", convert("database.example.com/v1beta1")),
        ("/convert", convert("database.example.com/v3")),
    ] {
        let response = webhook.post(path, &review).await;
        assert_eq!(response.status(), 200, "{path}");
        responses.push(String::from_utf8(response.into_body()).expect("text"));
    }
    let problems = oracle("read-reviews", &json!(responses)).expect("Go reads them");
    let none = vec![""; responses.len()];
    assert_eq!(problems, json!(none), "{responses:#?}");
    // The decoder is strict: it reports an unknown field.
    let misspelled = responses[0].replacen("\"allowed\"", "\"alowed\"", 1);
    let problems = oracle("read-reviews", &json!([misspelled])).expect("Go reads it");
    assert!(
        problems[0]
            .as_str()
            .is_some_and(|report| report.contains("alowed")),
        "{problems}"
    );
}

/// A review of an unregistered kind is answered as a review and denied.
async fn unregistered_kinds_are_denied(webhook: &WebhookClient) {
    for (field, value) in [
        ("kind", "Widget"),
        ("version", "v2"),
        ("group", "example.com"),
    ] {
        let mut review = review(&database_without_warning("a"), None);
        review["request"]["kind"][field] = json!(value);
        let response = webhook.post("/validate", &review).await;
        let result: Value = serde_json::from_slice(response.body()).expect("JSON");
        assert_eq!(result["response"]["allowed"], false);
        assert_eq!(result["response"]["uid"], review["request"]["uid"]);
        let message = result["response"]["status"]["message"]
            .as_str()
            .unwrap_or_default();
        assert!(message.contains(value), "{result}");
    }
}

async fn well_formed_reviews_are_answered(webhook: &WebhookClient) {
    // Two objects of the size that the API server accepts fit into one review.
    let mut large = database_without_warning("a");
    large["metadata"]["annotations"] = json!({"large": "x".repeat(3 * 1024 * 1024 - 2048)});
    assert_eq!(
        webhook.review("/validate", &large, Some(&large)).await["allowed"],
        true
    );

    // Defaults are returned as a patch, warnings in the validation response.
    let mut object = database_without_warning("a");
    object["spec"]["storage"]["maxSizeGib"] = json!(115);
    let warned = webhook.review("/validate", &object, None).await;
    assert_eq!(warned["allowed"], true);
    let warning = warned["warnings"][0].as_str().unwrap_or_default();
    assert!(warning.contains("[autoscaling-headroom]"), "{warned}");
    assert_eq!(
        webhook.review("/mutate", &object, None).await["patchType"],
        "JSONPatch"
    );

    // Requests that the webhook does not validate are admitted without changes.
    for (field, value) in [
        ("subResource", "status"),
        ("subResource", "scale"),
        ("operation", "DELETE"),
    ] {
        let mut review = review(&database_without_warning("a"), None);
        review["request"][field] = json!(value);
        review["request"]["object"]["spec"]["port"] = json!(80);
        let response = webhook.post("/validate", &review).await;
        let review: Value = serde_json::from_slice(response.body()).expect("JSON");
        assert_eq!(review["response"]["allowed"], true, "{field} {value}");
    }
}

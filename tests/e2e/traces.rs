//! Traces of reviews, as an OpenTelemetry collector receives them.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::Uri;
use http::Request;
use http_body_util::{BodyExt, Full};
use lockstep_envtest::eventually;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::json;

use crate::env::database_without_warning;
use crate::standalone_webhook::{NAME, StandaloneWebhook, start_http};
use crate::webhook::review;

/// Bodies that the collector has received.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Vec<Bytes>>>);

impl Collected {
    /// Starts a collector and returns its URL.
    async fn listen(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let received = Arc::clone(&self.0);
        let routes = Router::new().fallback(move |uri: Uri, body: Bytes| async move {
            assert_eq!(uri.path(), "/v1/traces");
            received.lock().expect("no thread panics").push(body);
        });
        tokio::spawn(async move { axum::serve(listener, routes).await });
        url
    }

    fn spans(&self) -> Vec<Span> {
        let received = self.0.lock().expect("no thread panics").clone();
        let exports = received
            .into_iter()
            .map(|body| ExportTraceServiceRequest::decode(body).expect("OTLP"));
        let resources = exports.flat_map(|export| export.resource_spans);
        let scopes = resources.flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }
}

fn attribute(span: &Span, name: &str) -> Option<Attribute> {
    let mut attributes = span.attributes.iter();
    let found = attributes.find(|attribute| attribute.key == name)?;
    found.value.clone()?.value
}

fn text(span: &Span, name: &str) -> Option<String> {
    match attribute(span, name)? {
        Attribute::StringValue(text) => Some(text),
        _ => None,
    }
}

/// Sends a review that belongs to a trace.
async fn send_review(webhook: &StandaloneWebhook, username: &str, traceparent: Option<&str>) {
    let mut object = database_without_warning("orders");
    object["spec"]["credentials"]["username"] = json!(username);
    let mut request = Request::post("/validate?timeout=10s")
        .header("host", NAME)
        .header("content-type", "application/json");
    if let Some(traceparent) = traceparent {
        request = request.header("traceparent", traceparent);
    }
    let body = review(&object, None).to_string();
    let request = request.body(Full::new(Bytes::from(body)));
    let mut connection = start_http(webhook.tls().await).await;
    let response = connection.send_request(request.expect("a request")).await;
    let response = response.expect("a response");
    assert_eq!(response.status(), 200);
    response
        .into_body()
        .collect()
        .await
        .expect("a complete response");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_belongs_to_the_trace_of_its_request() {
    let collected = Collected::default();
    let endpoint = format!("--otlp-endpoint={}", collected.listen().await);
    let mut webhook = StandaloneWebhook::start(&[&endpoint, "--otlp-sampling-ratio=0"]).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = |sampled: &str| format!("00-{trace}-00f067aa0ba902b7-{sampled}");
    send_review(&webhook, "user", Some(&parent("01"))).await;
    // A request that the API server does not sample, and one without a trace, are not recorded.
    send_review(&webhook, "app", Some(&parent("00"))).await;
    send_review(&webhook, "app", None).await;
    // Spans that are not yet exported are exported before the exit.
    webhook.process().terminate().expect("a signal");
    let ended = eventually("the exit", async || webhook.process().exit_status()).await;
    assert!(ended.expect("the process ends").success());

    let spans = collected.spans();
    let [span] = spans.as_slice() else {
        panic!("{spans:?}");
    };
    let trace_id: [u8; 16] = span.trace_id.as_slice().try_into().expect("16 bytes");
    assert_eq!(format!("{:032x}", u128::from_be_bytes(trace_id)), trace);
    let parent_id: [u8; 8] = span.parent_span_id.as_slice().try_into().expect("8 bytes");
    assert_eq!(u64::from_be_bytes(parent_id), 0x00f0_67aa_0ba9_02b7);
    assert_eq!(span.name, "admission");
    assert!(span.end_time_unix_nano > span.start_time_unix_nano);
    assert_eq!(text(span, "http.route").as_deref(), Some("/validate"));
    assert_eq!(text(span, "kind").as_deref(), Some("CloudDatabase"));
    assert_eq!(text(span, "operation").as_deref(), Some("CREATE"));
    assert_eq!(text(span, "rules").as_deref(), Some("username-reserved"));
    assert_eq!(
        attribute(span, "allowed"),
        Some(Attribute::BoolValue(false))
    );
    assert_eq!(
        attribute(span, "http.response.status_code"),
        Some(Attribute::IntValue(200))
    );
    assert!(!format!("{span:?}").contains("db.t4g.micro"), "{span:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_collector_reviews_are_answered_nevertheless() {
    let webhook = StandaloneWebhook::start(&[
        "--otlp-endpoint=http://127.0.0.1:1",
        "--otlp-sampling-ratio=1",
    ])
    .await;
    for _ in 0..10 {
        send_review(&webhook, "app", None).await;
    }
}

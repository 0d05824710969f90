//! The webhook answers any body with a review response or an error response, at both endpoints. For objects that the
//! fast path allows, the complete validation does not report anything either.

#![no_main]

use std::cell::LazyCell;
use std::collections::BTreeMap;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use fuzz::{mutate, validators};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use lockstep_shared_validation::{
    CrdMatch, LastValidated, Layer, Policy, RawObject, ValidationRequest,
};
use lockstep_webhook::{Limits, Metrics, Webhook};
use prometheus_client::registry::Registry;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::runtime::Runtime;
use tower::ServiceExt;

thread_local! {
    static WEBHOOK: LazyCell<(Runtime, Router)> = const { LazyCell::new(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime without I/O can be built");
        let mut metrics = Registry::default();
        let server = lockstep_http_server::Metrics::register(&mut metrics);
        let metrics = Metrics::register(&mut metrics, server);
        (runtime, Webhook::new(validators::registry(), metrics, Limits::default()).into_router())
    }) };
}

fuzz_target!(|data: &[u8]| {
    for path in ["/validate", "/mutate"] {
        let (status, body) =
            WEBHOOK.with(|webhook| webhook.0.block_on(send(webhook.1.clone(), path, data)));
        let response: Value = serde_json::from_slice(&body).expect("the response is JSON");
        if status == StatusCode::OK {
            let request = field(data, "request");
            let uid = field(request.get().as_bytes(), "uid");
            let uid: Value =
                serde_json::from_str(uid.get()).expect("the webhook has parsed the uid");
            assert_eq!(response["response"]["uid"], uid);
            assert!(response["response"]["allowed"].is_boolean());
            allowed_reviews_have_no_violations(request.get());
        } else {
            assert_eq!(response["kind"], "Status");
            assert!(status.is_client_error(), "{status}: {response}");
        }
    }
});

fn allowed_reviews_have_no_violations(request: &str) {
    let fields: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(request).expect("only a review gets a review response");
    let written = |name: &str| {
        let text = fields.get(name).filter(|text| text.get() != "null");
        // Fields that no code has to read may be nested deeper, or contain numbers outside the range of all types.
        text.map(|text| RawObject::parse(text)).transpose()
    };
    let (Ok(Some(object)), Ok(old)) = (written("object"), written("oldObject")) else {
        return;
    };
    for validator in validators::all() {
        for crd in [CrdMatch::Same, CrdMatch::Unknown] {
            if !validator.is_trivially_valid(&object, old.as_ref(), crd, &Policy::default()) {
                continue;
            }
            let (object, old) = (object.to_value(), old.as_ref().map(RawObject::to_value));
            let last_validated = old.as_ref().and_then(LastValidated::from_status_of);
            let request =
                ValidationRequest::for_update(&object, old.as_ref(), last_validated.as_ref());
            let result = validator.validate(&request);
            let violations = [&result.errors, &result.warnings, &result.audit_violations];
            let mut violations = violations.into_iter().flatten();
            let wrong =
                violations.find(|found| crd != CrdMatch::Same || found.layer == Layer::Rust);
            assert!(wrong.is_none(), "{wrong:?}");
            assert!(crd == CrdMatch::Same || result.defaults.0.is_empty());
        }
    }
}

/// Returns a field of an object without parsing it: unused fields may contain numbers outside the range of all types.
fn field(object: &[u8], name: &str) -> Box<RawValue> {
    let mut fields: BTreeMap<String, Box<RawValue>> =
        serde_json::from_slice(object).expect("only a review gets a review response");
    fields
        .remove(name)
        .expect("only a review gets a review response")
}

async fn send(webhook: Router, path: &str, body: &[u8]) -> (StatusCode, Vec<u8>) {
    let request = Request::post(path)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body.to_vec()))
        .expect("the request is valid");
    let response = match webhook.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await;
    (status, body.expect("the body is in memory").into())
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::json_lines(data, size, max_size, seed, fuzzer_mutate)
});

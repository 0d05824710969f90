//! Reviews: each is sent to the routes of a webhook in this process, without a connection.

use std::hint::black_box;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Request, header};
use bench_harness::{NONCE, Review};
use lockstep_cloud_database_api::CloudDatabase;
use lockstep_shared_validation::{
    CrdMatch, Policy, RawObject, Ruleset, ValidatedResource, Validator, ValidatorRegistry,
};
use lockstep_vector_api::{
    Catalogues, InProcessCompiler, VectorContext, VectorPipeline, VrlEnvironment,
};
use lockstep_webhook::{Limits, Metrics, Webhook};
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::runtime::Runtime;
use tower::ServiceExt;

use crate::cases::variants::Seen;

/// Expected response. A review that is denied by mistake would cost less, or more.
#[derive(Clone, Copy, PartialEq)]
enum Expected {
    Allowed,
    Denied,
}

/// Webhook in this process.
struct Server {
    runtime: Runtime,
    routes: Router,
}

impl Server {
    fn new<K: ValidatedResource>(ruleset: Ruleset<K>, crd: CrdMatch) -> Self {
        let validators = ValidatorRegistry::default().register(Arc::new(ruleset));
        let mut registry = Registry::default();
        let server = lockstep_http_server::Metrics::register(&mut registry);
        let metrics = Metrics::register(&mut registry, server);
        let webhook = Webhook::new(validators, metrics, Limits::default());
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        Self {
            runtime: runtime.enable_time().build().expect("a runtime"),
            routes: webhook.with_crd_status(move |_| crd).into_router(),
        }
    }

    fn answer(&self, body: &Bytes) -> Bytes {
        let request = Request::post("/validate")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.clone()))
            .expect("a request");
        self.runtime.block_on(async {
            let response = self.routes.clone().oneshot(request).await;
            let response = response.unwrap_or_else(|never| match never {});
            assert!(response.status().is_success(), "{}", response.status());
            let body = to_bytes(response.into_body(), usize::MAX).await;
            body.expect("the body is in memory")
        })
    }

    /// Returns the counted review, after another one for which everything is made that is made once.
    fn after(self, first: String, counted: String, expected: Expected) -> impl FnMut() {
        let answer = self.answer(&Bytes::from(first));
        let answer: Value = serde_json::from_slice(&answer).expect("a response is JSON");
        let is_allowed = answer["response"]["allowed"] == true;
        assert_eq!(is_allowed, expected == Expected::Allowed, "{answer}");
        let body = Bytes::from(counted);
        move || drop(black_box(self.answer(&body)))
    }
}

pub(super) fn database(review: Review, crd: CrdMatch) -> impl FnMut() {
    let body = review.body().to_string();
    let expected = match review {
        Review::Denied => Expected::Denied,
        _ => Expected::Allowed,
    };
    Server::new(ruleset(), crd).after(body.clone(), body, expected)
}

pub(super) fn large_database(crd: CrdMatch) -> impl FnMut() {
    let body = Review::Large.body();
    let text = |name: &str| body["request"][name].to_string();
    let (object, old) = (text("object"), text("oldObject"));
    let (ruleset, policy) = (ruleset(), Policy::default());
    let validate = move || {
        let read = |text| serde_json::from_str::<RawObject<'_>>(text).expect("an object");
        let (object, old) = (read(&object), read(&old));
        assert!(black_box(ruleset.is_trivially_valid(
            &object,
            Some(&old),
            crd,
            &policy
        )));
    };
    validate();
    validate
}

pub(super) fn pipeline(review: Review, seen: Seen) -> impl FnMut() {
    let body = review.body().to_string();
    let first = match seen {
        Seen::First => body.replace(NONCE, "nonce-00000001"),
        Seen::Before => body.clone(),
    };
    let environment = VrlEnvironment::shared(InProcessCompiler::boxed);
    let context = VectorContext::new(environment, Catalogues::default());
    let ruleset = Ruleset::<VectorPipeline>::compile().expect("the rules compile");
    let ruleset = ruleset.with_extension(Arc::new(context));
    Server::new(ruleset, CrdMatch::Same).after(first, body, Expected::Allowed)
}

fn ruleset() -> Ruleset<CloudDatabase> {
    Ruleset::compile().expect("the rules compile")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reviewed_objects_have_the_defaults_that_an_api_server_fills() {
        let ruleset = ruleset();
        for review in [Review::Small, Review::Typical, Review::Large] {
            let body = review.body();
            let object = body["request"]["object"].to_string();
            let object: RawObject<'_> = serde_json::from_str(&object).expect("an object");
            let has_all = ruleset.has_all_defaults(&object, None, CrdMatch::Unknown);
            assert!(has_all, "{}", review.name());
        }
    }
}

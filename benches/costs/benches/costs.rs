//! Reviews whose instructions callgrind counts: each is sent to the routes of a webhook in this process, without a connection.
//!
//! Large reviews are validated on a thread of their own, whose instructions are not attributed to the benchmark; they are left
//! out.

#![expect(missing_docs, reason = "the macros make items without documentation")]

use std::hint::black_box;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Request, header};
use bench_harness::{NONCE, Review};
use gungraun::Callgrind;
use gungraun::prelude::*;
use k8s_openapi as _;
use lockstep_cloud_database_api::CloudDatabase;
use lockstep_shared_validation::{CrdMatch, Ruleset, ValidatedResource, ValidatorRegistry};
use lockstep_vector_api::{
    Catalogues, InProcessCompiler, VectorContext, VectorPipeline, VrlEnvironment,
};
use lockstep_webhook::{Limits, Metrics, Webhook};
use mimalloc::MiMalloc;
use prometheus_client::registry::Registry;
use tokio::runtime::Runtime;
use tower::ServiceExt;

/// The allocator of the shipped program.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Time at which the webhook has seen the programs of a pipeline.
#[derive(Clone, Copy)]
enum Seen {
    Never,
    Before,
}

/// Webhook that has answered one review, and the review to count.
struct Prepared {
    runtime: Runtime,
    routes: Router,
    body: Bytes,
}

impl Prepared {
    fn new<K: ValidatedResource>(
        ruleset: Ruleset<K>,
        crd: CrdMatch,
        first: String,
        counted: String,
    ) -> Self {
        let validators = ValidatorRegistry::default().register(Arc::new(ruleset));
        let mut registry = Registry::default();
        let server = lockstep_http_server::Metrics::register(&mut registry);
        let metrics = Metrics::register(&mut registry, server);
        let webhook = Webhook::new(validators, metrics, Limits::default());
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let mut prepared = Self {
            runtime: runtime.enable_time().build().expect("a runtime"),
            routes: webhook.with_crd_status(move |_| crd).into_router(),
            body: Bytes::from(first),
        };
        // What is made once, for the first review, is not counted.
        prepared.answer();
        prepared.body = Bytes::from(counted);
        prepared
    }

    fn answer(&self) -> Bytes {
        let request = Request::post("/validate")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(self.body.clone()))
            .expect("a request");
        self.runtime.block_on(async {
            let response = self.routes.clone().oneshot(request).await;
            let response = response.unwrap_or_else(|never| match never {});
            assert!(response.status().is_success(), "{}", response.status());
            let body = to_bytes(response.into_body(), usize::MAX).await;
            body.expect("the body is in memory")
        })
    }
}

fn database(review: Review, crd: CrdMatch) -> Prepared {
    let body = review.body().to_string();
    let ruleset = Ruleset::<CloudDatabase>::compile().expect("the rules compile");
    Prepared::new(ruleset, crd, body.clone(), body)
}

fn pipeline(review: Review, seen: Seen) -> Prepared {
    let body = review.body().to_string();
    let first = match seen {
        Seen::Never => body.replace(NONCE, "nonce-00000001"),
        Seen::Before => body.clone(),
    };
    let environment = VrlEnvironment::shared(InProcessCompiler::boxed);
    let context = VectorContext::new(environment, Catalogues::default());
    let ruleset = Ruleset::<VectorPipeline>::compile().expect("the rules compile");
    let ruleset = ruleset.with_extension(Arc::new(context));
    Prepared::new(ruleset, CrdMatch::Same, first, body)
}

#[library_benchmark(setup = database)]
#[bench::small(Review::Small, CrdMatch::Unknown)]
#[bench::typical(Review::Typical, CrdMatch::Unknown)]
#[bench::denied(Review::Denied, CrdMatch::Unknown)]
fn all_layers(prepared: Prepared) -> (Bytes, Prepared) {
    (black_box(prepared.answer()), prepared)
}

#[library_benchmark(setup = database)]
#[bench::small(Review::Small, CrdMatch::Same)]
#[bench::typical(Review::Typical, CrdMatch::Same)]
fn known_crd(prepared: Prepared) -> (Bytes, Prepared) {
    (black_box(prepared.answer()), prepared)
}

#[library_benchmark(setup = pipeline)]
#[bench::new(Review::Pipeline, Seen::Never)]
#[bench::again(Review::Pipeline, Seen::Before)]
fn vector_pipeline(prepared: Prepared) -> (Bytes, Prepared) {
    (black_box(prepared.answer()), prepared)
}

library_benchmark_group!(
    name = reviews,
    benchmarks = [all_layers, known_crd, vector_pipeline]
);

main!(
    // The caches of a processor are not simulated: that takes as much time as the rest.
    config = LibraryBenchmarkConfig::default().tool(Callgrind::with_args(["--cache-sim=no"])),
    library_benchmark_groups = reviews
);

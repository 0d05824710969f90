//! Reconciliations of an object that was recorded with its children at a real API server. Every call gets the recorded
//! answer, without a connection.

use std::fs;
use std::sync::Arc;

use bench_harness::root;
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use lockstep_controller::{Action, Controller, Metrics};
use lockstep_shared_validation::{PolicyHandle, Ruleset};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};

use crate::cases::variants::Spec;

/// API server with the recorded objects.
#[derive(Clone)]
struct Recorded {
    echo: Arc<Value>,
    children: Arc<[Value; 2]>,
}

impl Recorded {
    fn read(spec: Spec) -> Self {
        let read = |name: &str| -> Value {
            let path = root().join("benches/costs/objects").join(name);
            let text =
                fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            serde_json::from_slice(&text).expect("JSON")
        };
        let mut echo = read("echo.json");
        if let Spec::Changed = spec {
            echo["spec"]["text"] = json!("another text");
            echo["metadata"]["generation"] = json!(2);
        }
        Self {
            echo: Arc::new(echo),
            children: Arc::new([read("deployment.json"), read("service.json")]),
        }
    }

    fn answer(&self, request: &Request<Body>) -> String {
        let path = request.uri().path();
        let child = self.children.iter().find(|child| {
            let plural = child["kind"].as_str().unwrap_or_default().to_lowercase() + "s";
            path.split('/').any(|segment| segment == plural)
        });
        match (child, request.method()) {
            (None, _) => self.echo.to_string(),
            (Some(child), &Method::PATCH) => child.to_string(),
            (Some(child), _) => {
                let kind = format!("{}List", child["kind"].as_str().unwrap_or_default());
                let metadata = json!({"resourceVersion": "1"});
                let version = &child["apiVersion"];
                json!({"apiVersion": version, "kind": kind, "metadata": metadata, "items": [child]})
                    .to_string()
            }
        }
    }
}

pub(super) fn reconciliation(spec: Spec) -> impl FnMut() {
    let recorded = Recorded::read(spec);
    let name = recorded.echo["metadata"]["name"]
        .as_str()
        .map(str::to_owned);
    let name = name.expect("the object has a name");
    let server = tower::service_fn(move |request: Request<Body>| {
        let answer = Response::new(Body::from(recorded.answer(&request).into_bytes()));
        async move { Ok::<_, std::io::Error>(answer) }
    });
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().expect("a runtime");
    // The client has a task that passes its requests on.
    let client = runtime.block_on(async { Client::new(server, "default") });
    let operator = lockstep_echo::operator();
    let ruleset = Ruleset::<lockstep_echo::Echo>::compile().expect("the rules compile");
    let metrics = Metrics::register(&mut Registry::default());
    let policy = PolicyHandle::default();
    let controller = Controller::new(
        "lockstep",
        client,
        Arc::new(ruleset),
        operator,
        metrics,
        policy,
    );
    let reconcile = move || {
        let reconciliation = controller.reconcile_once(Some("default"), &name);
        let next = runtime.block_on(reconciliation).expect("an answer");
        assert!(!matches!(next, None | Some(Action::Backoff(_))), "{next:?}");
    };
    reconcile();
    reconcile
}

//! Children that depend on one another.

use std::sync::Arc;

use control_plane::Cluster;
use controller::{ChildType, Handled, Loop, Metrics, ReconcileError, SyncRequest, SyncResponse};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::{Value, json};
use shared_validation::{CurrentPolicy, Kind, Ruleset};
use toolkit::{Running, Twice, install_crd, stands, toy_crd};

/// An object each of whose children is made once the one before is there.
#[derive(Deserialize)]
struct Stair {}

impl Kind for Stair {
    const GROUP: &'static str = "toys.example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Stair";

    fn crd() -> Value {
        let count = json!({"type": "integer"});
        let status = json!({"type": "object", "properties": {"steps": count}});
        toy_crd("Stair", "stairs", "Namespaced", &json!({"status": status}))
    }

    fn example() -> Value {
        json!({})
    }
}

fn sync(request: &SyncRequest<'_, Stair>) -> Result<SyncResponse, ReconcileError> {
    let mut response = SyncResponse::new();
    let mut steps = 0;
    for name in ["first", "second", "third"] {
        response = response.child(&json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"},
        }))?;
        if request.children().get::<ConfigMap>(name)?.is_none() {
            break;
        }
        steps += 1;
    }
    response.status(&json!({"steps": steps}))
}

#[tokio::test(flavor = "multi_thread")]
async fn who_looks_at_its_children_is_asked_again_once_they_are_made() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cluster = Cluster::start().await.expect("a cluster");
    install_crd(&cluster.client(), Stair::crd()).await;
    let _running = Running::start(Loop::new(
        cluster.client(),
        Arc::new(Ruleset::<Stair>::compile().expect("the rules")),
        Handled::new(Twice(sync)).making([ChildType::namespaced::<ConfigMap>()]),
        Metrics::register(&mut Registry::default()),
        CurrentPolicy::default(),
    ));
    let gvk = GroupVersionKind::gvk(Stair::GROUP, Stair::VERSION, Stair::KIND);
    let resource = ApiResource::from_gvk_with_plural(&gvk, "stairs");
    let stairs: Api<DynamicObject> = Api::namespaced_with(cluster.client(), "default", &resource);
    let stair = DynamicObject::new("a", &resource).data(json!({}));
    let made = stairs.create(&PostParams::default(), &stair).await;
    made.expect("it is stored");
    toolkit::becomes(&stairs, "a", "at its top", |found| {
        found.is_some_and(|found| found.data["status"]["steps"] == 3)
    })
    .await;
    stands(&stairs, "a", "Ready", "True").await;
}

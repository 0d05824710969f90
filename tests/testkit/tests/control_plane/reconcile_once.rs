//! Single reconciliations of an operator and the writes of each.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, PostParams};
use lockstep_controller::{
    Action, Controller, Metrics, OwnedType, ReconcileError, Reference, SyncReconciler, SyncRequest,
    SyncResponse, Watch,
};
use lockstep_shared_validation::ValidatedResource;
use lockstep_test::{FaultInjector, When, apply, cluster_with, objects, operator, toy_crd};
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::{Value, json};

/// Object with a child that contains whether a Secret of the same name exists.
#[derive(Deserialize)]
struct Stepper {}

impl ValidatedResource for Stepper {
    const GROUP: &'static str = "toys.example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Stepper";

    fn crd() -> Value {
        let size = json!({"type": "integer", "default": 1});
        let spec = json!({"type": "object", "properties": {"size": size}});
        toy_crd("Stepper", "steppers", "Namespaced", &json!({"spec": spec}))
    }

    fn example() -> Value {
        json!({"spec": {}})
    }
}

fn sync(request: &SyncRequest<'_, Stepper>) -> Result<SyncResponse, ReconcileError> {
    let name = request.raw_parent()["metadata"]["name"].as_str();
    let name = name.unwrap_or_default();
    let secret: Option<Secret> = request.related().get(name)?;
    SyncResponse::new().child(&json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"secret": secret.is_some().to_string()},
    }))
}

/// Runs one reconciliation and returns its writes as `verb resource`.
async fn step<R: lockstep_controller::Reconciler>(
    run: &Controller<R>,
    calls: &FaultInjector,
) -> (Action, Vec<String>) {
    let next = run
        .reconcile_once(Some("default"), "a")
        .await
        .expect("the reconciliation runs");
    let writes = calls.take_writes();
    let writes = writes
        .into_iter()
        .map(|call| format!("{} {}", call.verb, call.resource));
    (next.expect("the object exists"), writes.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn single_reconciliations_of_an_operator_have_the_expected_writes() {
    let cluster = cluster_with::<Stepper>().await;
    let calls = FaultInjector::default();
    let secrets = Watch::new::<Secret>(|object| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        vec![Reference::Name(name.to_owned())]
    });
    let handler = SyncReconciler::new(sync)
        .owns([OwnedType::namespaced::<ConfigMap>()])
        .watches_all([secrets]);
    let metrics = Metrics::register(&mut Registry::default());
    let run = operator(calls.client(&cluster).await, handler, &metrics);
    let steppers = objects::<Stepper>(cluster.client(), Some("default"));
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    let none = run
        .reconcile_once(Some("default"), "a")
        .await
        .expect("the reconciliation runs");
    assert_eq!(none, None, "the object does not exist yet");

    apply::<Stepper>(&steppers, "a", &json!({"spec": {}})).await;
    calls.fail("create", "configmaps", 1, When::Before);
    let (next, writes) = step(&run, &calls).await;
    assert!(matches!(next, Action::Backoff(_)), "{next:?}");
    assert_eq!(
        writes,
        ["create configmaps"],
        "the status must not be written"
    );
    calls.fail("create", "configmaps", 1, When::After);
    let (next, _) = step(&run, &calls).await;
    assert!(matches!(next, Action::Backoff(_)), "{next:?}");
    // The child that was created although its response was lost is found.
    let (next, writes) = step(&run, &calls).await;
    assert!(matches!(next, Action::RequeueAfter(_)), "{next:?}");
    assert_eq!(writes, ["patch steppers/status"]);
    let (_, writes) = step(&run, &calls).await;
    assert_eq!(writes, [""; 0], "the object is in its desired state");

    let secret = json!({"metadata": {"name": "a"}});
    let secret: Secret = serde_json::from_value(secret).expect("the JSON is a Secret");
    let all: Api<Secret> = Api::namespaced(cluster.client(), "default");
    let created = all.create(&PostParams::default(), &secret).await;
    created.expect("the API server stores the Secret");
    let (_, writes) = step(&run, &calls).await;
    // The first apply after the creation also takes over the fields that the creation has set.
    assert_eq!(writes, ["patch configmaps", "patch configmaps"]);
    let map = maps.get("a").await.expect("the child exists");
    assert_eq!(map.data.expect("the ConfigMap has data")["secret"], "true");

    let gone = maps.delete("a", &DeleteParams::default()).await;
    gone.expect("the API server deletes the child");
    let (_, writes) = step(&run, &calls).await;
    assert_eq!(writes, ["create configmaps"]);
}

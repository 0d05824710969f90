//! An operator that is gone through round by round, with what each of them writes.

use controller::{
    Action, Controller, Metrics, OwnedType, ReconcileError, Reference, SyncReconciler, SyncRequest,
    SyncResponse, Watch,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, PostParams};
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::{Value, json};
use shared_validation::ValidatedResource;
use toolkit::{Calls, When, cluster_with, objects, operator, tell, toy_crd};

/// An object with a child that tells whether there is a Secret of its name.
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

/// The calls of one round that write, as `verb resource`.
async fn step<R: controller::Reconciler>(
    run: &Controller<R>,
    calls: &Calls,
) -> (Action, Vec<String>) {
    let next = run
        .reconcile_once(Some("default"), "a")
        .await
        .expect("an answer");
    let writes = calls.take_writes();
    let writes = writes
        .into_iter()
        .map(|call| format!("{} {}", call.verb, call.resource));
    (next.expect("there is such an object"), writes.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_is_gone_through_round_by_round() {
    let cluster = cluster_with::<Stepper>().await;
    let calls = Calls::default();
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
        .expect("an answer");
    assert_eq!(none, None, "there is no such object");

    tell::<Stepper>(&steppers, "a", &json!({"spec": {}})).await;
    calls.fail("create", "configmaps", 1, When::Before);
    let (next, writes) = step(&run, &calls).await;
    assert!(matches!(next, Action::Backoff(_)), "{next:?}");
    assert_eq!(writes, ["create configmaps"], "and no status was written");
    calls.fail("create", "configmaps", 1, When::After);
    let (next, _) = step(&run, &calls).await;
    assert!(matches!(next, Action::Backoff(_)), "{next:?}");
    // What was done without an answer is found.
    let (next, writes) = step(&run, &calls).await;
    assert!(matches!(next, Action::RequeueAfter(_)), "{next:?}");
    assert_eq!(writes, ["patch steppers/status"]);
    let (_, writes) = step(&run, &calls).await;
    assert_eq!(writes, [""; 0], "all is as it is to be");

    let secret = json!({"metadata": {"name": "a"}});
    let secret: Secret = serde_json::from_value(secret).expect("a Secret");
    let all: Api<Secret> = Api::namespaced(cluster.client(), "default");
    let made = all.create(&PostParams::default(), &secret).await;
    made.expect("it is stored");
    let (_, writes) = step(&run, &calls).await;
    // From its creation on, what is said of it is applied.
    assert_eq!(writes, ["patch configmaps", "patch configmaps"]);
    let map = maps.get("a").await.expect("a child");
    assert_eq!(map.data.expect("data")["secret"], "true");

    let gone = maps.delete("a", &DeleteParams::default()).await;
    gone.expect("it is deleted");
    let (_, writes) = step(&run, &calls).await;
    assert_eq!(writes, ["create configmaps"]);
}

//! In-use protection of related objects, on a real control plane.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, Metrics, ReconcileError, ReconcileOutput, Reference,
    SyncHandler, SyncReconciler, SyncRequest, SyncResponse, Watch,
};
use lockstep_envtest::{Cluster, eventually};
use lockstep_shared_validation::ValidatedResource;
use lockstep_test::{
    FaultInjector, RunningController, TemporaryNamespace, apply, cluster_with, objects, operator,
    toy_crd, wait_for_condition, wait_until,
};
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::{Value, json};

const FINALIZER: &str = "vault.toys.example.com/in-use-protection";

/// Object that needs a key for its cleanup.
#[derive(Deserialize)]
struct Vault {}

impl ValidatedResource for Vault {
    const GROUP: &'static str = "toys.example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Vault";

    fn crd() -> Value {
        let text = json!({"type": "string"});
        let spec = json!({"type": "object", "properties": {"key": text, "spare": text}});
        toy_crd("Vault", "vaults", "Namespaced", &json!({"spec": spec}))
    }

    fn example() -> Value {
        json!({"spec": {}})
    }
}

#[derive(Clone, Default)]
struct RetainingHandler {
    is_emptied: Arc<AtomicBool>,
}

impl SyncHandler<Vault> for RetainingHandler {
    fn sync(&self, _: &SyncRequest<'_, Vault>) -> Result<SyncResponse, ReconcileError> {
        Ok(SyncResponse::new())
    }

    fn finalize(&self, _: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        if self.is_emptied.load(Ordering::Acquire) {
            return Ok(FinalizeOutcome::Done);
        }
        Ok(FinalizeOutcome::Waiting(ReconcileOutput {
            requeue_after: Duration::from_millis(200),
            ..ReconcileOutput::default()
        }))
    }
}

/// Two references to a Secret, each of which protects it.
fn watches() -> [Watch; 2] {
    ["/spec/key", "/spec/spare"].map(|place| {
        let named = move |object: &Value| {
            let name = object.pointer(place).and_then(Value::as_str);
            assert_ne!(name, Some("panic"), "panic intended by the test");
            name.map(|name| Reference::Name(name.to_owned()))
                .into_iter()
                .collect()
        };
        Watch::new::<Secret>(named)
            .label_selector("key=true")
            .metadata_only()
            .with_in_use_protection()
    })
}

struct Bank {
    cluster: Cluster,
    calls: FaultInjector,
    manager: RetainingHandler,
    vaults: Api<DynamicObject>,
    secrets: Api<DynamicObject>,
}

impl Bank {
    async fn new(namespace: &str) -> Self {
        let cluster = cluster_with::<Vault>().await;
        let secrets = ApiResource::erase::<Secret>(&());
        Self {
            vaults: objects::<Vault>(cluster.client(), Some(namespace)),
            secrets: Api::namespaced_with(cluster.client(), namespace, &secrets),
            calls: FaultInjector::default(),
            manager: RetainingHandler::default(),
            cluster,
        }
    }

    async fn start(&self) -> RunningController {
        let handler = SyncReconciler::new(self.manager.clone())
            .watches_all(watches())
            .finalizer("toys.example.com/emptied");
        let metrics = Metrics::register(&mut Registry::default());
        let client = self.calls.client(&self.cluster).await;
        RunningController::start(operator(client, handler, &metrics))
    }

    async fn vault(&self, name: &str, spec: Value) {
        apply::<Vault>(&self.vaults, name, &json!({"spec": spec})).await;
    }

    async fn secret(&self, name: &str) {
        let metadata = json!({"name": name, "labels": {"key": "true"}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata});
        let secret = serde_json::from_value(secret).expect("the JSON is a Secret");
        let params = PostParams::default();
        let created = self.secrets.create(&params, &secret).await;
        created.expect("the API server stores the Secret");
    }

    async fn is_protected(&self, name: &str, is_so: bool) {
        let what = format!("to be protected: {is_so}");
        wait_until(&self.secrets, name, &what, |found| {
            found.is_some_and(|found| found.finalizers().contains(&FINALIZER.to_owned()) == is_so)
        })
        .await;
    }

    async fn delete(&self, api: &Api<DynamicObject>, name: &str) {
        let deleted = api.delete(name, &DeleteParams::default()).await;
        deleted.expect("the API server accepts the deletion");
    }

    async fn wait_until_deleted(&self, api: &Api<DynamicObject>, name: &str) {
        wait_until(api, name, "to be deleted", |found| found.is_none()).await;
    }

    /// Waits for the Event that explains why a Secret is not deleted.
    async fn has_event(&self, expected: &str) {
        let events: Api<Event> = Api::namespaced(self.cluster.client(), "default");
        let found = eventually("the Event `InUse`", async || {
            let all = events.list(&ListParams::default()).await.ok()?.items;
            let mut notes = all
                .into_iter()
                .filter(|event| event.reason.as_deref() == Some("InUse"))
                .filter_map(|event| event.note);
            notes.find(|note| note.contains(expected))
        });
        found.await.expect("the Event is created");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_referenced_object_is_protected_until_the_last_reference_is_gone() {
    let bank = Bank::new("default").await;
    bank.manager.is_emptied.store(true, Ordering::Release);
    let running = bank.start().await;
    for name in ["used", "unused"] {
        bank.secret(name).await;
    }
    bank.vault("a", json!({"key": "used"})).await;
    bank.vault("b", json!({"spare": "used"})).await;
    bank.is_protected("used", true).await;
    bank.is_protected("unused", false).await;
    // Objects that the selector excludes are not protected.
    let foreign = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "foreign"}});
    let foreign = serde_json::from_value(foreign).expect("the JSON is a Secret");
    let created = bank.secrets.create(&PostParams::default(), &foreign).await;
    created.expect("the API server stores the Secret");
    bank.vault("f", json!({"key": "foreign", "spare": "unused"}))
        .await;
    bank.is_protected("unused", true).await;
    bank.is_protected("foreign", false).await;
    bank.delete(&bank.vaults, "f").await;
    bank.is_protected("unused", false).await;

    bank.delete(&bank.secrets, "used").await;
    bank.has_event("by Vault 'a', 'b'; it is deleted once")
        .await;
    // One reference moves to another Secret, the other one goes with its object.
    bank.vault("b", json!({"spare": "unused"})).await;
    bank.is_protected("unused", true).await;
    bank.is_protected("used", true).await;
    bank.delete(&bank.vaults, "a").await;
    bank.wait_until_deleted(&bank.secrets, "used").await;

    // An object that no longer matches the selector loses its protection, too.
    let unlabelled = Patch::Merge(json!({"metadata": {"labels": {"key": null}}}));
    let params = PatchParams::default();
    let patched = bank.secrets.patch("unused", &params, &unlabelled).await;
    patched.expect("the API server stores the change");
    bank.vault("b", json!({"key": "other"})).await;
    bank.is_protected("unused", false).await;

    // The same holds for a reference that was removed while the controller was stopped.
    bank.secret("late").await;
    bank.vault("b", json!({"key": "late"})).await;
    bank.is_protected("late", true).await;
    running.stop().await;
    bank.vault("b", json!({"key": "other"})).await;
    let running = bank.start().await;
    bank.is_protected("late", false).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn protection_is_kept_while_the_references_of_an_object_are_unknown() {
    let bank = Bank::new("default").await;
    bank.manager.is_emptied.store(true, Ordering::Release);
    let _running = bank.start().await;
    for name in ["s", "t"] {
        bank.secret(name).await;
    }
    bank.vault("a", json!({"key": "s"})).await;
    bank.vault("unclear", json!({"key": "panic"})).await;
    bank.is_protected("s", true).await;
    wait_for_condition(&bank.vaults, "unclear", "Ready", "True").await;
    bank.vault("a", json!({"key": "t"})).await;
    bank.is_protected("t", true).await;
    bank.is_protected("s", true).await;
    bank.vault("unclear", json!({"key": "t"})).await;
    bank.is_protected("s", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn protection_does_not_block_an_owner_whose_dependent_is_protected() {
    let bank = Bank::new("default").await;
    bank.manager.is_emptied.store(true, Ordering::Release);
    let _running = bank.start().await;
    bank.secret("s").await;
    bank.vault("a", json!({"key": "s"})).await;
    bank.is_protected("s", true).await;
    let vault = bank.vaults.get("a").await.expect("the object exists");
    let owner = json!({
        "apiVersion": "toys.example.com/v1", "kind": "Vault", "name": "a", "uid": vault.uid(),
        "blockOwnerDeletion": true,
    });
    let patch = Patch::Merge(json!({"metadata": {"ownerReferences": [owner]}}));
    let params = PatchParams::default();
    let patched = bank.secrets.patch("s", &params, &patch).await;
    patched.expect("the API server stores the change");
    let params = DeleteParams::foreground();
    bank.vaults
        .delete("a", &params)
        .await
        .expect("the API server accepts the deletion");
    bank.wait_until_deleted(&bank.secrets, "s").await;
    bank.wait_until_deleted(&bank.vaults, "a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_a_cleanup_needs_is_protected_until_the_cleanup_completes() {
    let bank = Bank::new("leaving").await;
    let namespace = TemporaryNamespace::make(bank.cluster.client(), "leaving").await;
    let _running = bank.start().await;
    bank.secret("s").await;
    bank.vault("a", json!({"key": "s"})).await;
    bank.is_protected("s", true).await;
    wait_for_condition(&bank.vaults, "a", "Ready", "True").await;

    // The namespace controller deletes all objects of the namespace, in any order.
    namespace.delete().await;
    wait_until(
        &bank.secrets,
        "s",
        "to have a deletion timestamp",
        |found| found.is_some_and(|found| found.metadata.deletion_timestamp.is_some()),
    )
    .await;
    wait_for_condition(&bank.vaults, "a", "Ready", "False").await;
    bank.is_protected("s", true).await;
    bank.calls.take_writes();
    bank.manager.is_emptied.store(true, Ordering::Release);
    namespace.wait_until_deleted().await;
    let writes = bank.calls.take_writes().into_iter();
    let mut patched: Vec<_> = writes
        .filter(|call| call.verb == "patch")
        .map(|call| call.resource)
        .collect();
    // Each of the two watches may cause a patch that removes the finalizer.
    patched.dedup();
    assert_eq!(
        patched,
        ["vaults", "secrets"],
        "the object that needs the Secret for its cleanup is released first"
    );
}

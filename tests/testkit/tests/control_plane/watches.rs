//! Related objects, on a real control plane.

mod silence;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use lockstep_controller::predicate::{UpdateEvent, annotation_changed};
use lockstep_controller::{
    Lookup, Metrics, OwnedType, ReconcileError, Reference, SyncReconciler, SyncRequest,
    SyncResponse, Watch, WatchLimits,
};
use lockstep_envtest::{Cluster, eventually};
use lockstep_shared_validation::ValidatedResource;
use lockstep_test::{
    DeterminismCheck, RunningController, apply, install_crd, objects, operator,
    service_account_client, toy_crd, wait_until,
};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::{Value, json};

/// Object with a `ConfigMap` of the same name, into which the controller writes what it finds of the related objects.
#[derive(Deserialize)]
struct Reader {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    secret: Option<String>,
    app: Option<String>,
    port: Option<String>,
}

impl ValidatedResource for Reader {
    const GROUP: &'static str = "toys.example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Reader";

    fn crd() -> Value {
        let text = json!({"type": "string"});
        toy_crd(
            "Reader",
            "readers",
            "Namespaced",
            &json!({"spec": {"type": "object", "properties": {"secret": text, "app": text, "port": text}}}),
        )
    }

    fn example() -> Value {
        json!({"spec": {}})
    }
}

fn sync(request: &SyncRequest<'_, Reader>) -> Result<SyncResponse, ReconcileError> {
    let Spec { secret, app, port } = &request.parent().spec;
    let mut data = BTreeMap::new();
    if let Some(name) = secret {
        let secret: Option<Secret> = request.related().get(name)?;
        let value = secret.and_then(|secret| secret.data?.remove("value"));
        let value = value.map(|value| String::from_utf8_lossy(&value.0).into_owned());
        data.insert("secret", value.unwrap_or("none".to_owned()));
    }
    if let Some(app) = app {
        let found = match request.related().list_by_label::<ConfigMap>("app", app)? {
            Lookup::None => "none".to_owned(),
            // With `metadata_only`, all metadata is available and no data.
            Lookup::One(map) => format!("one, data {:?}", map.data),
            Lookup::Many(names) => names.join(" and "),
        };
        data.insert("app", found);
    }
    if let Some(port) = port {
        let keys = [port.clone()];
        let found = request
            .related()
            .by_index::<String>(&readers_of_all(), &keys)?;
        let names: Vec<_> = found.iter().map(|name| name.as_str()).collect();
        data.insert("port", names.join(" and "));
    }
    let name = &request.raw_parent()["metadata"]["name"];
    SyncResponse::new().child(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name}, "data": data,
    }))
}

fn readers_of_all() -> ApiResource {
    let kind = GroupVersionKind::gvk(Reader::GROUP, Reader::VERSION, Reader::KIND);
    ApiResource::from_gvk_with_plural(&kind, "readers")
}

fn watches() -> [Watch; 3] {
    let secrets = Watch::new::<Secret>(|object| {
        let name = object.pointer("/spec/secret").and_then(Value::as_str);
        name.map(|name| Reference::Name(name.to_owned()))
            .into_iter()
            .collect()
    });
    let maps = Watch::new::<ConfigMap>(|object| {
        let app = object.pointer("/spec/app").and_then(Value::as_str);
        let labelled = |app: &str| Reference::Label("app".to_owned(), app.to_owned());
        app.map(labelled).into_iter().collect()
    });
    let port = |object: &Value| {
        let port = object.pointer("/spec/port").and_then(Value::as_str);
        port.map(String::from)
    };
    // The reconciled kind is watched only once.
    let same_port = Watch::dynamic(readers_of_all(), move |object| {
        port(object).into_iter().map(Reference::IndexKey).collect()
    });
    [
        secrets
            .label_selector("readable=true")
            .field_selector("metadata.name!=hidden")
            .filter(|change| {
                !change
                    .after
                    .is_some_and(|secret| secret.annotations().contains_key("quiet"))
            }),
        maps.label_selector("app").metadata_only(),
        same_port.index_by(move |object| {
            let of = |pointer| object.pointer(pointer).and_then(Value::as_str);
            let (namespace, name) = (of("/metadata/namespace"), of("/metadata/name"));
            let name = [namespace, name].map(Option::unwrap_or_default).join("/");
            (port(object).into_iter().collect(), name)
        }),
    ]
}

struct Readers {
    cluster: Cluster,
    registry: Registry,
    metrics: Metrics,
    _running: RunningController,
}

impl Readers {
    async fn start(client: impl AsyncFnOnce(&Cluster) -> Client) -> Self {
        Self::start_with(WatchLimits::default(), client).await
    }

    async fn start_with(limits: WatchLimits, client: impl AsyncFnOnce(&Cluster) -> Client) -> Self {
        let cluster = Cluster::start().await.expect("the cluster starts");
        let client = client(&cluster).await;
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry).with_watch_limits(limits);
        let handler = SyncReconciler::new(DeterminismCheck(sync))
            .owns([OwnedType::namespaced::<ConfigMap>()])
            .watches_all(watches());
        let running = RunningController::start(operator(client, handler, &metrics));
        Self {
            cluster,
            registry,
            metrics,
            _running: running,
        }
    }

    async fn with_crd() -> Self {
        let readers = Self::start(async |cluster: &Cluster| {
            install_crd(&cluster.client(), Reader::crd()).await;
            cluster.client()
        });
        readers.await
    }

    async fn apply(&self, object: Value) {
        let kind = object["kind"].as_str().expect("the object has a kind");
        let resource = match kind {
            "Secret" => ApiResource::erase::<Secret>(&()),
            _ => ApiResource::erase::<ConfigMap>(&()),
        };
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.cluster.client(), "default", &resource);
        let name = object["metadata"]["name"]
            .as_str()
            .expect("the object has a name")
            .to_owned();
        let params = PatchParams::apply("author").force();
        api.patch(&name, &params, &Patch::Apply(object))
            .await
            .expect("the API server stores the object");
    }

    async fn reader(&self, name: &str, spec: Value) {
        let readers = objects::<Reader>(self.cluster.client(), Some("default"));
        apply::<Reader>(&readers, name, &json!({"spec": spec})).await;
    }

    async fn secret(&self, name: &str, value: &str) {
        let metadata = json!({"name": name, "labels": {"readable": "true"}});
        let data = json!({"value": value});
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data});
        self.apply(secret).await;
    }

    async fn map(&self, name: &str, app: &str) {
        let metadata = json!({"name": name, "labels": {"app": app}});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}});
        self.apply(map).await;
    }

    /// Waits until the `ConfigMap` of a reader contains a value.
    async fn shows(&self, name: &str, what: &str, expected: &str) {
        let resource = ApiResource::erase::<ConfigMap>(&());
        let api = Api::namespaced_with(self.cluster.client(), "default", &resource);
        let condition = format!("to contain {what}: {expected}");
        wait_until(&api, name, &condition, |found| {
            found.is_some_and(|found| found.data["data"][what] == expected)
        })
        .await;
    }

    /// Returns the number of reconciliations so far, once none runs: what one has written is visible before it is counted.
    async fn reconciliations(&self) -> u64 {
        let counted = eventually("the reconciliations to end", async || {
            let mut text = String::new();
            encode(&mut text, &self.registry).expect("metrics");
            let sum = |name: &str| -> u64 {
                let of_name = text.lines().filter(|line| line.starts_with(name));
                let values =
                    of_name.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
                values.sum()
            };
            let idle = sum("controller_runtime_active_workers{") == 0;
            idle.then(|| sum("controller_runtime_reconcile_total{"))
        });
        counted.await.expect("no reconciliation runs")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_related_object_reconciles_only_the_objects_that_refer_to_it() {
    let readers = Readers::with_crd().await;
    for at in 0..20 {
        readers
            .reader(&format!("r{at}"), json!({"secret": format!("s{at}")}))
            .await;
    }
    for at in 0..20 {
        readers.shows(&format!("r{at}"), "secret", "none").await;
    }
    readers.secret("s7", "seven").await;
    readers.shows("r7", "secret", "seven").await;
    // A reference that is added later is found, too.
    readers.reader("r8", json!({"secret": "s7"})).await;
    readers.shows("r8", "secret", "seven").await;
    readers.secret("s8", "not read").await;
    let before = readers.reconciliations().await;
    readers.secret("s7", "changed").await;
    readers.shows("r7", "secret", "changed").await;
    readers.shows("r8", "secret", "changed").await;
    // One reconciliation for each of the two, and one more for each if the watch event of its write arrives before the
    // response to that write; the last write before these can have been followed by such a one, too.
    let reconciliations = readers.reconciliations().await - before;
    assert!((2..=6).contains(&reconciliations), "{reconciliations}");
}

#[tokio::test(flavor = "multi_thread")]
async fn selectors_hide_objects_and_predicates_suppress_reconciliations() {
    let readers = Readers::with_crd().await;
    readers.secret("hidden", "seen").await;
    readers.secret("s", "one").await;
    readers.reader("h", json!({"secret": "hidden"})).await;
    readers.reader("r", json!({"secret": "s"})).await;
    readers.shows("r", "secret", "one").await;
    readers.shows("h", "secret", "none").await;
    let annotate = |change: &str| {
        let args = ["annotate", "--overwrite", "secret/s", change];
        readers
            .cluster
            .run_kubectl(&args)
            .expect("kubectl annotates the Secret");
    };
    annotate("quiet=yes");
    readers.secret("s", "two").await;
    // A later change on the same watch has been observed; therefore this one has been observed, too.
    readers.secret("t", "other").await;
    readers.reader("u", json!({"secret": "t"})).await;
    readers.shows("u", "secret", "other").await;
    readers.shows("r", "secret", "one").await;
    annotate("quiet-");
    readers.shows("r", "secret", "two").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lookup_by_label_finds_none_one_or_many() {
    let readers = Readers::with_crd().await;
    readers.reader("r", json!({"app": "db"})).await;
    readers.shows("r", "app", "none").await;
    readers.map("first", "db").await;
    readers.shows("r", "app", "one, data None").await;
    readers.map("second", "db").await;
    readers.shows("r", "app", "first and second").await;
    readers.map("first", "other").await;
    readers.shows("r", "app", "one, data None").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_key_finds_objects_in_all_namespaces_and_of_the_reconciled_kind() {
    let readers = Readers::with_crd().await;
    let created = ["create", "namespace", "other"];
    readers
        .cluster
        .run_kubectl(&created)
        .expect("kubectl creates the namespace");
    for at in 0..20 {
        let port = json!({"port": format!("{at}")});
        readers.reader(&format!("r{at}"), port).await;
    }
    for at in 0..20 {
        let alone = format!("default/r{at}");
        readers.shows(&format!("r{at}"), "port", &alone).await;
    }
    let others = objects::<Reader>(readers.cluster.client(), Some("other"));
    apply::<Reader>(&others, "s", &json!({"spec": {"port": "7"}})).await;
    readers.shows("r7", "port", "default/r7 and other/s").await;
    let before = readers.reconciliations().await;
    apply::<Reader>(&others, "s", &json!({"spec": {"port": "8"}})).await;
    readers.shows("r8", "port", "default/r8 and other/s").await;
    readers.shows("r7", "port", "default/r7").await;
    others
        .delete("s", &DeleteParams::default())
        .await
        .expect("the API server deletes the object");
    readers.shows("r8", "port", "default/r8").await;
    // A few reconciliations for each of the three changes, and none for the other readers.
    let reconciliations = readers.reconciliations().await - before;
    assert!((3..=12).contains(&reconciliations), "{reconciliations}");
}

/// Returns a client of a service account that cannot read Secrets until a test grants it.
async fn limited(cluster: &Cluster) -> Client {
    let kubectl = |args: &[&str]| cluster.run_kubectl(args).expect("kubectl succeeds");
    kubectl(&["create", "serviceaccount", "limited"]);
    for (role, group, resources) in [
        (
            "toys",
            "toys.example.com",
            json!(["readers", "readers/status"]),
        ),
        ("maps", "", json!(["configmaps"])),
        ("secrets", "", json!(["pods"])),
    ] {
        let rules = json!([{"apiGroups": [group], "resources": resources, "verbs": ["*"]}]);
        let metadata = json!({"name": role});
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules});
        let file = cluster.directory().join("role.json");
        std::fs::write(&file, role.to_string()).expect("the file can be written");
        kubectl(&["apply", "-f", &file.to_string_lossy()]);
        let role = role["metadata"]["name"].as_str().unwrap_or_default();
        let of_role = format!("--clusterrole={role}");
        kubectl(&[
            "create",
            "clusterrolebinding",
            role,
            &of_role,
            "--serviceaccount=default:limited",
        ]);
    }
    service_account_client(cluster, "limited").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_cannot_start_is_reported_and_starts_once_it_can() {
    let readers = Readers::start(limited).await;
    let down = async |what: &str| {
        let reported = eventually(what, async || {
            let down = readers.metrics.disconnected_watches();
            down.iter()
                .any(|reported| reported.contains(what))
                .then_some(())
        });
        reported.await.unwrap_or_else(|error| {
            panic!("{error}: {:?}", readers.metrics.disconnected_watches())
        });
    };
    down("on readers.toys.example.com failed because the kind does not exist: apply the CRD readers.toys.example.com")
        .await;
    down("on secrets is forbidden: grant `list` and `watch` on secrets").await;
    // The reconciled kind has a single watch, although its objects also relate to each other.
    let down = readers.metrics.disconnected_watches();
    let on_readers = down
        .iter()
        .filter(|reported| reported.contains("on readers."));
    assert_eq!(on_readers.count(), 1, "{down:?}");
    install_crd(&readers.cluster.client(), Reader::crd()).await;
    readers.reader("r", json!({"secret": "s"})).await;
    readers.secret("s", "late").await;
    let only_secrets = eventually("the other watches to start", async || {
        let down = readers.metrics.disconnected_watches();
        (down.len() == 1 && down[0].contains("secrets")).then_some(())
    });
    only_secrets.await.expect("the other watches start");
    // The related objects are unknown: nothing is reconciled before the controller has listed them.
    assert_eq!(readers.reconciliations().await, 0);
    let role = json!([{"op": "replace", "path": "/rules", "value": [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]},
    ]}]);
    let patch = role.to_string();
    let args = [
        "patch",
        "clusterrole",
        "secrets",
        "--type=json",
        "--patch",
        &patch,
    ];
    readers
        .cluster
        .run_kubectl(&args)
        .expect("kubectl grants the rights");
    readers.shows("r", "secret", "late").await;
    assert_eq!(readers.metrics.disconnected_watches(), Vec::<String>::new());
}

/// Predicate for annotated Secrets of type TLS: a change of their certificates or of the annotation itself.
fn annotated_tls(change: &UpdateEvent<'_, DynamicObject>) -> bool {
    const ANNOTATION: &str = "cert-info";
    let is_wanted = |secret: &&Arc<DynamicObject>| {
        let annotations = secret.metadata.annotations.as_ref();
        secret.data["type"] == "kubernetes.io/tls"
            && annotations
                .is_some_and(|all| all.get(ANNOTATION).is_some_and(|value| value == "true"))
    };
    let (before, after) = (
        change.before.filter(is_wanted),
        change.after.filter(is_wanted),
    );
    match (before, after) {
        (None, None) => false,
        (Some(_), Some(_)) => change
            .changed(|secret| ["tls.crt", "ca.crt"].map(|key| secret.data["data"][key].clone())),
        _ => annotation_changed(&[ANNOTATION], change),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_predicate_passes_only_certificate_changes_of_annotated_tls_secrets() {
    let cluster = Cluster::start().await.expect("the cluster starts");
    let secrets: Api<DynamicObject> = Api::namespaced_with(
        cluster.client(),
        "default",
        &ApiResource::erase::<Secret>(&()),
    );
    let mut before: Option<Arc<DynamicObject>> = None;
    for (change, expected) in [
        (json!({"metadata": {"annotations": {"other": "1"}}}), false),
        (
            json!({"metadata": {"annotations": {"cert-info": "true"}}}),
            true,
        ),
        (json!({"data": {"tls.crt": "bmV3"}}), true),
        (json!({"data": {"ca.crt": "bmV3"}}), true),
        (json!({"data": {"more": "bmV3"}}), false),
        (json!({"metadata": {"labels": {"a": "b"}}}), false),
        (
            json!({"metadata": {"annotations": {"cert-info": "false"}}}),
            true,
        ),
        (json!({"data": {"tls.crt": "b2xk"}}), false),
    ] {
        let after = if before.is_none() {
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": "s"},
                "data": {"tls.crt": "b2xk", "tls.key": "b2xk"},
            });
            let secret = serde_json::from_value(secret).expect("the JSON is a Secret");
            let created = secrets
                .create(&PostParams::default(), &secret)
                .await
                .expect("the API server stores the Secret");
            let created = Arc::new(created);
            let new = UpdateEvent {
                before: None,
                after: Some(&created),
            };
            assert!(
                !annotated_tls(&new),
                "a Secret without the annotation passes the predicate"
            );
            before = Some(created);
            secrets
                .patch("s", &PatchParams::default(), &Patch::Merge(&change))
                .await
        } else {
            secrets
                .patch("s", &PatchParams::default(), &Patch::Merge(&change))
                .await
        };
        let after = Arc::new(after.expect("the API server stores the change"));
        let seen = UpdateEvent {
            before: before.as_ref(),
            after: Some(&after),
        };
        assert_eq!(annotated_tls(&seen), expected, "{change}");
        before = Some(after);
    }
}

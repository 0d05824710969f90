//! Children that are watched only in the namespaces of their owners, under permissions for single namespaces.

use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{Api, DeleteParams, DynamicObject, PropagationPolicy};
use kube::{Client, ResourceExt};
use lockstep_controller::{Metrics, OwnedType};
use lockstep_envtest::{Cluster, eventually};
use lockstep_test::{
    RunningController, TemporaryNamespace, service_account_client, wait_for_condition, wait_until,
};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};

use crate::children::fixture_kind::Toys;

/// Returns a client of a service account that has all permissions on Clans, and none on children.
async fn limited(cluster: &Cluster) -> Client {
    let kubectl = |args: &[&str]| cluster.run_kubectl(args).expect("kubectl succeeds");
    kubectl(&["create", "serviceaccount", "limited"]);
    let account = "--serviceaccount=default:limited";
    for (role, resource) in [
        (
            "clans",
            "clans.toys.example.com,clans.toys.example.com/status",
        ),
        ("maps", "configmaps"),
    ] {
        let resource = format!("--resource={resource}");
        kubectl(&["create", "clusterrole", role, "--verb=*", &resource]);
    }
    kubectl(&[
        "create",
        "clusterrolebinding",
        "clans",
        "--clusterrole=clans",
        account,
    ]);
    service_account_client(cluster, "limited").await
}

/// Lets the service account write `ConfigMap`s in a namespace.
fn grant(cluster: &Cluster, namespace: &str) {
    let args = [
        "create",
        "rolebinding",
        "maps",
        "--clusterrole=maps",
        "--serviceaccount=default:limited",
        "--namespace",
        namespace,
    ];
    cluster
        .run_kubectl(&args)
        .expect("kubectl grants the rights");
}

/// Returns the spec of a Clan with one child.
fn spec(namespace: &str, name: &str) -> Value {
    let metadata = json!({"name": name, "namespace": namespace});
    let child =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}});
    json!({"children": [child]})
}

/// Returns the namespaces of the children in the spec.
fn namespaces(clan: &Value) -> Vec<String> {
    let children = clan.pointer("/spec/children").and_then(Value::as_array);
    let namespaces = children.into_iter().flatten().filter_map(|child| {
        let namespace = child.pointer("/metadata/namespace")?.as_str()?;
        Some(namespace.to_owned())
    });
    namespaces.collect()
}

/// Returns the number of watches on the `ConfigMap`s of single namespaces that the API server serves now.
async fn open_watches(client: &Client) -> Option<u64> {
    let request = http::Request::get("/metrics")
        .body(Vec::new())
        .expect("a request");
    let metrics = client.request_text(request).await.ok()?;
    let labels = [
        "resource=\"configmaps\"",
        "scope=\"namespace\"",
        "verb=\"WATCH\"",
    ];
    let lines = metrics.lines().filter(|line| {
        line.starts_with("apiserver_longrunning_requests{")
            && labels.iter().all(|label| line.contains(label))
    });
    let counts = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    Some(counts.sum())
}

struct Clans {
    toys: Toys,
    limited: Client,
    metrics: Metrics,
    controller: RunningController,
    _namespaces: Vec<TemporaryNamespace>,
}

impl Clans {
    async fn start(names: &[&str]) -> Self {
        let toys = Toys::start_without_controllers().await;
        let client = toys.cluster.client();
        let mut namespaces = Vec::new();
        for name in names {
            namespaces.push(TemporaryNamespace::make(client.clone(), name).await);
        }
        let limited = limited(&toys.cluster).await;
        let metrics = Metrics::register(&mut Registry::default());
        let controller = run(&limited, &metrics);
        Self {
            toys,
            limited,
            metrics,
            controller,
            _namespaces: namespaces,
        }
    }

    /// Starts the controller again, as a new process would.
    async fn restart(mut self) -> Self {
        self.controller.stop().await;
        self.metrics = Metrics::register(&mut Registry::default());
        self.controller = run(&self.limited, &self.metrics);
        self
    }

    fn maps(&self, namespace: &str) -> Api<DynamicObject> {
        self.toys.of("ConfigMap", Some(namespace))
    }

    async fn is_ready(&self, name: &str) {
        wait_for_condition(&self.toys.clans(), name, "Ready", "True").await;
    }

    /// Checks that a deleted child is created again.
    async fn is_repaired(&self, namespace: &str, name: &str) {
        let maps = self.maps(namespace);
        let before = maps.get(name).await.expect("the child exists");
        let deleted = maps.delete(name, &kube::api::DeleteParams::default()).await;
        deleted.expect("the API server deletes it");
        wait_until(&maps, name, "to be created again", |found| {
            found.is_some_and(|found| found.metadata.uid != before.metadata.uid)
        })
        .await;
    }
}

fn run(client: &Client, metrics: &Metrics) -> RunningController {
    let types = [OwnedType::namespaced::<ConfigMap>().watch_in(namespaces)];
    Toys::run_clans(client, metrics, types)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_waits_for_the_permissions_in_its_own_namespaces_and_no_other_does() {
    let clans = Clans::start(&["granted", "forbidden"]).await;
    let (toys, cluster) = (&clans.toys, &clans.toys.cluster);
    grant(cluster, "granted");
    toys.apply("Clan", "a", &spec("granted", "a")).await;
    clans.is_ready("a").await;
    toys.apply("Clan", "b", &spec("forbidden", "b")).await;
    let all = toys.clans();
    let (reason, message) = wait_for_condition(&all, "b", "Ready", "False").await;
    assert_eq!(reason, "ChildrenUnknown");
    let expected = "the watch on configmaps in the namespace `forbidden` is forbidden: grant `list` and `watch`";
    assert!(message.starts_with(expected), "{message}");
    wait_for_condition(&all, "b", "Valid", "True").await;
    let down = clans.metrics.disconnected_watches();
    assert_eq!(down.len(), 1, "{down:?}");
    assert!(down[0].contains("in the namespace `forbidden`"), "{down:?}");
    clans.is_repaired("granted", "a").await;

    // The failing watch keeps nothing from starting.
    let clans = clans.restart().await;
    clans.is_repaired("granted", "a").await;
    grant(&clans.toys.cluster, "forbidden");
    clans.is_ready("b").await;
    clans.is_repaired("forbidden", "b").await;
    assert_eq!(clans.metrics.disconnected_watches(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_deleted_with_their_owner_and_stay_if_the_deletion_orphans_them() {
    let toys = Toys::start_without_garbage_collector().await;
    let client = toys.cluster.client();
    let _namespace = TemporaryNamespace::make(client.clone(), "first").await;
    let metrics = Metrics::register(&mut Registry::default());
    let types = [
        OwnedType::namespaced::<ConfigMap>().watch_in(namespaces),
        // Owners of such children have a finalizer.
        OwnedType::namespaced::<ServiceAccount>().with_finalizer(),
    ];
    let _controller = Toys::run_clans(&client, &metrics, types);
    let (all, maps) = (toys.clans(), toys.of("ConfigMap", Some("first")));
    for name in ["a", "b"] {
        toys.apply("Clan", name, &spec("first", name)).await;
        wait_for_condition(&all, name, "Ready", "True").await;
    }
    let params = DeleteParams::default();
    all.delete("a", &params).await.expect("accepted");
    wait_until(&all, "a", "to be deleted", |found| found.is_none()).await;
    assert!(maps.get_opt("a").await.expect("an answer").is_none());
    let orphaning = PropagationPolicy::Orphan;
    let params = DeleteParams {
        propagation_policy: Some(orphaning),
        ..params
    };
    all.delete("b", &params).await.expect("accepted");
    // The finalizer for orphaning is that of the garbage collector.
    wait_until(&all, "b", "to be released", |found| {
        found.is_some_and(|found| found.finalizers() == ["orphan"])
    })
    .await;
    assert!(maps.get_opt("b").await.expect("an answer").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_is_watched_for_as_long_as_an_owner_has_children_there() {
    let clans = Clans::start(&["first", "second"]).await;
    for namespace in ["first", "second"] {
        grant(&clans.toys.cluster, namespace);
    }
    let toys = &clans.toys;
    toys.apply("Clan", "a", &spec("first", "a")).await;
    clans.is_ready("a").await;
    let first = clans.maps("first");
    let client = toys.cluster.client();
    let before = open_watches(&client).await.expect("metrics");
    assert!(before > 0, "the watch of the first namespace");
    // The watch of the new namespace starts, and that of the old one ends once the child in it is deleted.
    toys.apply("Clan", "a", &spec("second", "a")).await;
    wait_until(&first, "a", "to be deleted", |found| found.is_none()).await;
    clans.is_ready("a").await;
    clans.is_repaired("second", "a").await;
    let ended = eventually("the watch of the first namespace to end", async || {
        (open_watches(&client).await? == before).then_some(())
    });
    ended.await.expect("it ends");
    // It starts again when it is needed again.
    toys.apply("Clan", "a", &spec("first", "a")).await;
    clans.is_ready("a").await;
    clans.is_repaired("first", "a").await;
}

//! Chaos tests of a kind that refers to objects of others and owns a workload.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod};
use lockstep_controller::{
    OwnedType, ReconcileError, Reconciler, Reference, SyncReconciler, SyncRequest, SyncResponse,
    Watch,
};
use lockstep_shared_validation::ValidatedResource;
use lockstep_test::chaos::{ActualState, BrokenInvariant, Chaos, Property, chaos};
use lockstep_test::toy_crd;
use serde::Deserialize;
use serde_json::{Value, json};

/// Website with the content of a `ConfigMap`.
#[derive(Deserialize)]
struct Website {}

impl ValidatedResource for Website {
    const GROUP: &'static str = "toys.example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Website";

    fn crd() -> Value {
        let fields = json!({"content": {"type": "string"}, "replicas": {"type": "integer"}});
        let spec = json!({"type": "object", "properties": fields});
        toy_crd("Website", "websites", "Namespaced", &json!({"spec": spec}))
    }

    fn example() -> Value {
        json!({"spec": {"content": "pages", "replicas": 1}})
    }
}

/// Returns the Deployment of a website whose content is this one.
fn deployment(website: &Value, content: &str) -> Value {
    let name = &website["metadata"]["name"];
    let labels = json!({"site": name});
    let container = json!({"name": "server", "image": "example.com/server:1"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": website["spec"]["replicas"],
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {"toys.example.com/content": content}},
                "spec": {"containers": [container]},
            },
        },
    })
}

fn content_of(config_map: &Value) -> String {
    let text = config_map["data"]["text"].as_str();
    text.unwrap_or_default().to_owned()
}

fn sync(request: &SyncRequest<'_, Website>) -> Result<SyncResponse, ReconcileError> {
    let website = request.raw_parent();
    let name = website["spec"]["content"].as_str().unwrap_or_default();
    let Some(content) = request.related().get::<ConfigMap>(name)? else {
        let message = format!("the ConfigMap '{name}' does not exist");
        return Err(ReconcileError::permanent("ContentMissing", message));
    };
    SyncResponse::new().child(&deployment(website, &content_of(&json!(content))))
}

fn contents() -> Watch {
    Watch::new::<ConfigMap>(|website| {
        let name = website["spec"]["content"].as_str();
        let name = name.map(|name| Reference::Name(name.to_owned()));
        name.into_iter().collect()
    })
}

fn reconciler(watch: Watch) -> impl Reconciler<Kind = Website> {
    SyncReconciler::new(sync)
        .owns([OwnedType::namespaced::<Deployment>()])
        .watches_all([watch])
}

/// Returns an error if a Deployment has another content than the `ConfigMap` of its website.
fn contents_agree(actual: &ActualState) -> Result<(), BrokenInvariant> {
    for website in &actual.objects {
        let name = &website["metadata"]["name"];
        let is_content = |it: &&Value| it["metadata"]["name"] == website["spec"]["content"];
        let content = actual.related.iter().find(is_content).map(content_of);
        let of_website = actual
            .owned
            .iter()
            .find(|it| it["metadata"]["name"] == *name);
        let template = of_website.map(|it| &it["spec"]["template"]["metadata"]["annotations"]);
        let current = template.map(|it| &it["toys.example.com/content"]);
        if let (Some(content), Some(current)) = (content, current)
            && *current != json!(content)
        {
            return Err(BrokenInvariant {
                object: name.as_str().unwrap_or_default().to_owned(),
                found: format!("the content {current} instead of {content}"),
            });
        }
    }
    Ok(())
}

fn websites_test<R: Reconciler<Kind = Website>>(
    operator: impl Fn() -> R + Send + Sync + 'static,
    invariant: fn(&ActualState) -> Result<(), BrokenInvariant>,
) -> Chaos<R> {
    chaos(move |_| operator())
        .specs(|random, name| {
            let content = format!("{name}-{}", random.u32(..3));
            json!({"content": content, "replicas": random.u32(1..4)})
        })
        .related(|random, website| {
            vec![json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": website["spec"]["content"]},
                "data": {"text": random.u32(..).to_string()},
            })]
        })
        .expected_owned(|website| {
            let mut expected = deployment(website, "");
            expected["spec"]["template"] = json!({});
            vec![expected]
        })
        .invariant(invariant)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_with_a_workload_and_related_objects_passes() {
    let summary = websites_test(|| reconciler(contents()), contents_agree)
        .seeds(4)
        .run()
        .await;
    assert_eq!(summary.seeds, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_related_object_that_is_missed_is_found() {
    let created_or_deleted = || {
        // It misses changes of the content.
        let is_new = contents().filter(|change| change.before.is_none() || change.after.is_none());
        reconciler(is_new)
    };
    let failure = websites_test(created_or_deleted, contents_agree)
        .seeds(4)
        .try_run()
        .await;
    let failure = failure.expect_err("Deployments keep an old content");
    assert_eq!(failure.violation.property, Property::Invariant, "{failure}");
    // It does not know which websites refer to a ConfigMap.
    let without_references = || reconciler(Watch::new::<ConfigMap>(|_| Vec::new()));
    let failure = websites_test(without_references, contents_agree)
        .seeds(4)
        .try_run()
        .await;
    let failure = failure.expect_err("websites wait for a ConfigMap that exists");
    let property = failure.violation.property;
    assert!(
        matches!(
            property,
            Property::Status | Property::OwnedObjects | Property::Invariant
        ),
        "{failure}"
    );
}

/// Returns an object of each kind that a control plane rolls out, and a `ConfigMap`.
fn one_of_each(website: &Value) -> Vec<Value> {
    let name = &website["metadata"]["name"];
    let labels = json!({"site": name});
    let selector = json!({"matchLabels": labels});
    let container = json!({"name": "server", "image": "example.com/server:1"});
    let pod = json!({"containers": [container]});
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let replicas = &website["spec"]["replicas"];
    let storage = json!({"requests": {"storage": "1Gi"}});
    let never = json!({"containers": [container], "restartPolicy": "Never"});
    let specs = [
        (
            "apps/v1",
            "Deployment",
            json!({"replicas": replicas, "selector": selector, "template": template}),
        ),
        (
            "apps/v1",
            "ReplicaSet",
            json!({"replicas": replicas, "selector": selector, "template": template}),
        ),
        (
            "apps/v1",
            "StatefulSet",
            json!({"replicas": replicas, "serviceName": name, "selector": selector, "template": template}),
        ),
        (
            "apps/v1",
            "DaemonSet",
            json!({"selector": selector, "template": template}),
        ),
        ("batch/v1", "Job", json!({"template": {"spec": never}})),
        ("v1", "Pod", pod.clone()),
        (
            "v1",
            "PersistentVolumeClaim",
            json!({"accessModes": ["ReadWriteOnce"], "resources": storage}),
        ),
    ];
    let workloads = specs.into_iter().map(|(api_version, kind, spec)| {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})
    });
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"replicas": replicas.to_string()},
    });
    workloads.chain([settings]).collect()
}

fn sync_one_of_each(request: &SyncRequest<'_, Website>) -> Result<SyncResponse, ReconcileError> {
    let website = request.raw_parent();
    let name = website["spec"]["content"].as_str().unwrap_or_default();
    let content = request.related().get::<ConfigMap>(name)?;
    if content.is_none() {
        return Err(ReconcileError::permanent(
            "ContentMissing",
            "it does not exist",
        ));
    }
    let mut response = SyncResponse::new();
    for child in one_of_each(website) {
        response = response.child(&child)?;
    }
    Ok(response)
}

/// `ConfigMap`s are both owned and referred to.
#[tokio::test(flavor = "multi_thread")]
async fn workloads_of_every_kind_are_rolled_out_and_related_objects_are_not_owned() {
    let operator = || {
        SyncReconciler::new(sync_one_of_each)
            .owns([
                OwnedType::namespaced::<Deployment>(),
                OwnedType::namespaced::<ReplicaSet>(),
                OwnedType::namespaced::<StatefulSet>(),
                OwnedType::namespaced::<DaemonSet>(),
                OwnedType::namespaced::<Job>(),
                OwnedType::namespaced::<Pod>(),
                OwnedType::namespaced::<PersistentVolumeClaim>(),
                OwnedType::namespaced::<ConfigMap>(),
            ])
            .watches_all([contents()])
    };
    let names = |website: &Value| {
        let owned = one_of_each(website).into_iter();
        let named = owned.map(|child| {
            let (api_version, kind) = (&child["apiVersion"], &child["kind"]);
            json!({"apiVersion": api_version, "kind": kind, "metadata": child["metadata"]})
        });
        named.collect()
    };
    websites_test(operator, |_| Ok(()))
        .expected_owned(names)
        .seeds(2)
        .run()
        .await;
}

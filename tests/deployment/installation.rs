//! Steps and checks that every way to install Lockstep shares.

use kube::api::{Api, DynamicObject};
use lockstep_envtest::{Installation, eventually_within, wait_until_fail_closed};
use serde_json::{Value, json};

use crate::site::{NAMESPACE, PODS, Site};

/// Installs Lockstep with AWS settings for moto, and waits until the Pods are ready and the webhook fails closed.
///
/// `apply` may be kustomize, a chart, or any other way to apply the manifests to the namespace.
pub async fn install_by(site: &Site, apply: impl AsyncFnOnce(&Site)) {
    create_namespace(site, NAMESPACE);
    configure_aws(site, NAMESPACE);
    apply(site).await;
    wait_for_pods(site, NAMESPACE, "deployment/lockstep");
    let closed = wait_until_fail_closed(site.cluster()).await;
    closed.unwrap_or_else(|error| site.fail(&error.to_string()));
}

/// Creates a namespace in which only Pods without any privileges may run.
pub fn create_namespace(site: &Site, name: &str) {
    let enforce = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": enforce},
    });
    site.apply(&namespace).expect("a namespace");
}

/// Creates the `ConfigMap` from which the controller takes its AWS settings.
pub fn configure_aws(site: &Site, namespace: &str) {
    let settings: serde_json::Map<_, _> = site
        .moto
        .environment()
        .into_iter()
        .map(|(name, value)| (name, Value::from(value)))
        .collect();
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "lockstep-aws", "namespace": namespace},
        "data": settings,
    });
    site.apply(&settings).expect("a ConfigMap");
}

/// Waits until the Pods of the newest revision of a Deployment are ready and no others exist.
pub fn wait_for_pods(site: &Site, namespace: &str, deployment: &str) {
    let timeout = format!("--timeout={}s", PODS.as_secs());
    site.kubectl(&["rollout", "status", deployment, "-n", namespace, &timeout]);
}

/// Returns a valid database in the namespace `default`.
pub fn database(name: &str) -> Value {
    json!({
        "apiVersion": "database.example.com/v1alpha1",
        "kind": "CloudDatabase",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "engine": "postgres",
            "instanceClass": "db.t4g.micro",
            "storage": {"sizeGib": 100},
            "credentials": {"username": "app", "secretName": "credentials"},
            "deletionPolicy": "Delete",
            "deletionProtection": false,
        },
    })
}

/// Creates the Secret that the databases of a namespace name, and lets the controller read it.
pub async fn create_credentials(site: &Site, namespace: &str) {
    create_secret(site, namespace);
    let allowed = Installation::allow_secrets(site.cluster(), namespace).await;
    allowed.expect("a RoleBinding");
}

/// Creates the Secret that the databases of a namespace name.
pub fn create_secret(site: &Site, namespace: &str) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "credentials", "namespace": namespace},
        "stringData": {"username": "app", "password": "correct-horse"},
    });
    site.apply(&secret).expect("a Secret");
}

/// Checks that the webhook denies what only its Rust rules know.
pub fn denies_a_reserved_name(site: &Site) {
    let mut invalid = database("reserved");
    invalid["spec"]["credentials"]["username"] = json!("user");
    let denied = site.apply(&invalid).expect_err("the object is denied");
    assert!(denied.contains("[username-reserved]"), "{denied}");
}

/// Waits until a database is ready.
pub async fn becomes_ready(site: &Site, namespace: &str, name: &str) {
    let api = site.databases(namespace);
    let ready = eventually_within(PODS, "the readiness of the database", async || {
        has_condition(&api, name, "Ready").await.then_some(())
    });
    let ready = ready.await;
    ready.unwrap_or_else(|error| site.fail(&error.to_string()));
}

pub async fn has_condition(api: &Api<DynamicObject>, name: &str, type_: &str) -> bool {
    let Ok(object) = api.get(name).await else {
        return false;
    };
    let conditions = object.data["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == type_ && condition["status"] == "True")
}

/// Deletes a database and waits until its finalizer is gone.
pub async fn is_deleted(site: &Site, namespace: &str, name: &str) {
    let api = site.databases(namespace);
    let begun = api.delete(name, &Default::default()).await;
    begun.expect("the deletion begins");
    let gone = eventually_within(PODS, "the deletion of the database", async || {
        api.get_opt(name).await.ok()?.is_none().then_some(())
    });
    let gone = gone.await;
    gone.unwrap_or_else(|error| site.fail(&error.to_string()));
}

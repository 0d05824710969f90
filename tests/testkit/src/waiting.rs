//! Waiting for the results of a controller.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, PostParams};
use kube::{Client, ResourceExt};
use lockstep_envtest::eventually;
use serde_json::Value;

/// Creates a CRD and waits until it is established.
///
/// # Panics
///
/// If the JSON is not a CRD or the API server does not store it.
pub async fn install_crd(client: &Client, crd: Value) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crd: CustomResourceDefinition = serde_json::from_value(crd).expect("the JSON is a CRD");
    let created = crds.create(&PostParams::default(), &crd).await;
    created.expect("the API server stores the CRD");
    let name = crd.name_any();
    let established = eventually("the CRD to be established", async || {
        let status = crds.get(&name).await.ok()?.status?;
        let mut conditions = status.conditions.into_iter().flatten();
        conditions
            .any(|c| c.type_ == "Established" && c.status == "True")
            .then_some(())
    });
    established.await.expect("the CRD becomes established");
}

/// Waits for a condition of the current generation and returns its reason and message.
///
/// # Panics
///
/// If the condition does not get this status in time.
pub async fn wait_for_condition(
    api: &Api<DynamicObject>,
    name: &str,
    type_: &str,
    status: &str,
) -> (String, String) {
    let what = format!("condition {type_}={status} of {name}");
    let mut last = Value::Null;
    let found = eventually(&what, async || {
        let object = api.get(name).await.ok()?;
        last = object.data["status"].clone();
        let conditions = object.data["status"]["conditions"].as_array()?.iter();
        let mut conditions = conditions.filter(|condition| {
            condition["observedGeneration"].as_i64() == object.metadata.generation
        });
        let found = conditions.find(|c| c["type"] == type_ && c["status"] == status)?;
        let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
        Some((text("reason"), text("message")))
    });
    found
        .await
        .unwrap_or_else(|error| panic!("{error}; its last status: {last:#}"))
}

/// Waits until an object satisfies a predicate and returns it. `what` completes "waiting for NAME …".
///
/// # Panics
///
/// If the object does not satisfy the predicate in time.
pub async fn wait_until(
    api: &Api<DynamicObject>,
    name: &str,
    what: &str,
    is_so: impl Fn(Option<&DynamicObject>) -> bool,
) -> Option<DynamicObject> {
    let what = format!("{name} {what}");
    let mut last = None;
    let found = eventually(&what, async || {
        let found = api.get_opt(name).await.ok()?;
        last.clone_from(&found);
        is_so(found.as_ref()).then_some(found)
    });
    let found = found.await;
    found.unwrap_or_else(|error| panic!("{error}; its last state: {last:#?}"))
}

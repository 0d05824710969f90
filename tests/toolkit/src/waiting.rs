//! Waiting for what a loop makes of an object.

use control_plane::eventually;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, PostParams};
use kube::{Client, ResourceExt};
use serde_json::Value;

/// Stores a CRD and waits until its objects can be stored.
///
/// # Panics
///
/// If it is no CRD, or the API server does not take it.
pub async fn install_crd(client: &Client, crd: Value) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crd: CustomResourceDefinition = serde_json::from_value(crd).expect("a CRD");
    let created = crds.create(&PostParams::default(), &crd).await;
    created.expect("it is stored");
    let name = crd.name_any();
    let established = eventually("the CRD being established", async || {
        let status = crds.get(&name).await.ok()?.status?;
        let mut conditions = status.conditions.into_iter().flatten();
        conditions
            .any(|c| c.type_ == "Established" && c.status == "True")
            .then_some(())
    });
    established.await.expect("it is established");
}

/// Waits for a condition that speaks of what is now stored; gives its reason and message.
///
/// # Panics
///
/// If it does not come.
pub async fn stands(
    api: &Api<DynamicObject>,
    name: &str,
    type_: &str,
    status: &str,
) -> (String, String) {
    let what = format!("{name} having {type_}={status}");
    let mut last = Value::Null;
    let seen = eventually(&what, async || {
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
    seen.await
        .unwrap_or_else(|error| panic!("{error}; it has {last:#}"))
}

/// Waits until an object is as it is said to become.
///
/// # Panics
///
/// If it does not.
pub async fn becomes(
    api: &Api<DynamicObject>,
    name: &str,
    what: &str,
    is_so: impl Fn(Option<&DynamicObject>) -> bool,
) -> Option<DynamicObject> {
    let what = format!("{name} {what}");
    let mut last = None;
    let seen = eventually(&what, async || {
        let found = api.get_opt(name).await.ok()?;
        last.clone_from(&found);
        is_so(found.as_ref()).then_some(found)
    });
    let seen = seen.await;
    seen.unwrap_or_else(|error| panic!("{error}; it is {last:#?}"))
}

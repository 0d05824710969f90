//! Validation in the controller, without the webhook.

use kube::api::{DeleteParams, PostParams};
use lockstep_envtest::{Cluster, eventually};

use crate::cases::case_file::Case;
use crate::cases::check_result::CheckResult;
use crate::cases::objects::{api_of, named};
use crate::{wait_for_condition, wait_until};

/// Asserts that the controller reports the same result in the condition `Valid`.
pub(super) async fn is_equal(cluster: &Cluster, case: &Case, result: &CheckResult) {
    let objects = api_of(cluster, &case.object).await;
    let name = &case.name_or(&format!("stored-{}", case.name));
    let first = case.old.as_ref().unwrap_or(&case.object);
    let created = objects
        .create(&PostParams::default(), &named(first, name))
        .await;
    created.unwrap_or_else(|error| panic!("{case} is not stored: {error}"));
    if case.old.is_some() {
        wait_for_condition(&objects, name, "Valid", "True").await;
        let replaced = eventually(&case.name, async || {
            let mut object = objects.get(name).await.ok()?;
            object.data["spec"] = case.object["spec"].clone();
            match objects.replace(name, &PostParams::default(), &object).await {
                Err(kube::Error::Api(status)) if status.code == 409 => None,
                replaced => Some(replaced),
            }
        });
        let replaced = replaced.await.expect("the API server responds");
        replaced.unwrap_or_else(|error| panic!("{case} is not stored: {error}"));
    }
    let status = if result.is_valid() { "True" } else { "False" };
    let (_, message) = wait_for_condition(&objects, name, "Valid", status).await;
    if !result.is_valid() {
        assert_eq!(message, result.message(), "{case} in the controller");
    }
    let deleted = objects.delete(name, &DeleteParams::default()).await;
    deleted.expect("the object is deleted");
    wait_until(&objects, name, "to be deleted", |found| found.is_none()).await;
}

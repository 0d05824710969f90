//! Validation through an API server that calls the webhook.

use kube::api::{DeleteParams, PostParams};
use lockstep_envtest::{Cluster, eventually};

use crate::cases::case_file::Case;
use crate::cases::check_result::CheckResult;
use crate::cases::objects::{api_of, named};

/// Asserts that the API server gives a case the same result.
pub(super) async fn is_equal(cluster: &Cluster, case: &Case, result: &CheckResult) {
    let objects = api_of(cluster, &case.object).await;
    let name = &case.name_or(&case.name);
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    if let Some(old) = &case.old {
        let created = objects
            .create(&PostParams::default(), &named(old, name))
            .await;
        created.unwrap_or_else(|error| panic!("the old object of {case} is not stored: {error}"));
    }
    let causes = eventually(&case.name, async || {
        let response = if case.old.is_none() {
            objects.create(&dry_run, &named(&case.object, name)).await
        } else {
            let mut object = objects.get(name).await.ok()?;
            object.data["spec"] = case.object["spec"].clone();
            objects.replace(name, &dry_run, &object).await
        };
        match response {
            Ok(_) => Some(Vec::new()),
            // The controller writes to the object, too, and then the version that was read is outdated.
            Err(kube::Error::Api(status)) if status.code == 409 => None,
            Err(kube::Error::Api(status)) if status.code == 422 => Some(
                status
                    .details
                    .map(|details| details.causes)
                    .unwrap_or_default(),
            ),
            Err(error) => panic!("{case} through the API server: {error}"),
        }
    })
    .await
    .expect("the API server responds");
    let (found, expected) = (result.essences_of(&causes), result.through_api_server());
    assert!(
        found == expected,
        "{case}: the API server, with the object named `{name}`, has returned the errors {found:#?}, and `check` has found {expected:#?}"
    );
    if case.old.is_some() {
        let deleted = objects.delete(name, &DeleteParams::default()).await;
        deleted.expect("the old object is deleted");
    }
}

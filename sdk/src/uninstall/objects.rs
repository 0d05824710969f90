//! Deletion of the objects of the installed kinds.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, RemoveOperation, TestOperation};
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use kube::core::Request;
use kube::{Client, ResourceExt};
use lockstep_controller::CustomObject;
use lockstep_shared_validation::Validator;
use tokio::time::Instant;

use crate::installation::Installation;
use crate::installation::objects::{self, NamespaceSelection};
use crate::installation::stored_object::{StoredObject, is_own_finalizer};
use crate::printer;
use crate::uninstall::cascade::Cascade;
use crate::uninstall::plan::Plan;

/// Interval at which the remaining objects are listed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Maximum number of objects that are deleted concurrently.
const CONCURRENT: usize = 16;

/// Deletes the objects of the plan and waits until they no longer exist. Returns those that still exist at the
/// deadline.
///
/// # Guarantees
///
/// Objects that were created after the plan was made are not deleted.
pub(crate) async fn delete(
    installation: &Installation<'_>,
    plan: &Plan,
    cascade: Cascade,
    deadline: Instant,
) -> anyhow::Result<Vec<StoredObject>> {
    let planned = plan.objects.iter();
    let mut states: BTreeMap<String, String> = planned
        .map(|object| (object.stored.uid().to_owned(), String::new()))
        .collect();
    let total = states.len();
    let mut shown = total;
    while !states.is_empty() {
        let left = match remaining(installation, &states, cascade).await {
            Err(error) if is_transient(&error) && Instant::now() < deadline => {
                printer::print(&format!("{error}; trying again\n"))?;
                tokio::time::sleep(LOOK_EVERY).await;
                continue;
            }
            left => left.context("cannot delete the objects")?,
        };
        for object in left.iter().filter(|object| object.is_deleting()) {
            let state = object.state().unwrap_or_default();
            let known = states.get_mut(object.uid());
            if let Some(known) = known.filter(|known| **known != state) {
                printer::print(&format!("{}: {state}\n", object.shown()))?;
                *known = state;
            }
        }
        if left.len() != shown {
            shown = left.len();
            printer::print(&format!(
                "{} of {total} objects are deleted\n",
                total - shown
            ))?;
        }
        if left.is_empty() || Instant::now() >= deadline {
            return Ok(left);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(Vec::new())
}

/// Lists the objects of the plan that still exist, and requests the deletion of those that are not being deleted.
async fn remaining(
    installation: &Installation<'_>,
    planned: &BTreeMap<String, String>,
    cascade: Cascade,
) -> Result<Vec<StoredObject>, kube::Error> {
    let mut left = Vec::new();
    for (_, ruleset) in installation.kinds.iter() {
        let found =
            objects::list(installation, ruleset.as_ref(), NamespaceSelection::Watched).await?;
        let found = found
            .into_iter()
            .filter(|object| planned.contains_key(object.uid()));
        let found: Vec<_> = found.collect();
        let client = &installation.client;
        stream::iter(&found)
            .map(|object| delete_one(client, ruleset.as_ref(), object, cascade))
            .buffer_unordered(CONCURRENT)
            .try_collect::<Vec<()>>()
            .await?;
        left.extend(found);
    }
    Ok(left)
}

async fn delete_one(
    client: &Client,
    ruleset: &dyn Validator,
    stored: &StoredObject,
    cascade: Cascade,
) -> Result<(), kube::Error> {
    let api: Api<CustomObject> = match stored.object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &stored.resource),
        None => Api::all_with(client.clone(), &stored.resource),
    };
    let name = stored.object.name_any();
    if !stored.is_deleting() {
        let policy = match cascade {
            Cascade::Background => PropagationPolicy::Background,
            Cascade::Orphan => PropagationPolicy::Orphan,
        };
        let params = DeleteParams {
            propagation_policy: Some(policy),
            preconditions: Some(Preconditions {
                uid: Some(stored.uid().to_owned()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        // kube would read the response as any JSON, which may be nested deeper than it can.
        let request = Request::new(api.resource_url()).delete(&name, &params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        let deleted = client.request::<CustomObject>(request).await;
        return unless_gone(deleted.map(drop));
    }
    if cascade == Cascade::Orphan
        && let Some(patch) = release_patch(stored, ruleset)
    {
        let patch = Patch::<()>::Json(patch);
        return unless_gone(
            api.patch(&name, &PatchParams::default(), &patch)
                .await
                .map(drop),
        );
    }
    Ok(())
}

/// Returns the patch that removes one finalizer of our own. The test makes sure that no other one is removed.
fn release_patch(stored: &StoredObject, ruleset: &dyn Validator) -> Option<json_patch::Patch> {
    let mut finalizers = stored.object.finalizers().iter().enumerate();
    let (at, finalizer) = finalizers.find(|(_, name)| is_own_finalizer(ruleset, name))?;
    let path = PointerBuf::from_tokens(["metadata", "finalizers", &at.to_string()]);
    let value = finalizer.as_str().into();
    Some(json_patch::Patch(vec![
        PatchOperation::Test(TestOperation {
            path: path.clone(),
            value,
        }),
        PatchOperation::Remove(RemoveOperation { path }),
    ]))
}

/// Returns true if the API server or the connection to it may recover.
fn is_transient(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        _ => true,
    }
}

/// Turns errors that mean that the object has gone or has changed into success: the next list shows what is left.
fn unless_gone(result: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match result {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => Ok(()),
        result => result,
    }
}

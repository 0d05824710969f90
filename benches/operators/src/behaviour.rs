//! Check that an operator does the whole job, before it is measured: it reports a conflict and an error, and repeats
//! what has failed.

use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use lockstep_envtest::{Cluster, eventually_within};
use serde_json::json;

use crate::provider::Provider;
use crate::records::{TTLS, is_ready, object};

/// Time limit of each step.
const DEADLINE: Duration = Duration::from_mins(2);

/// Number of requests to the provider that fail.
const FAILURES: usize = 3;

pub(crate) async fn check(
    cluster: &Cluster,
    records: &Api<DynamicObject>,
    provider: &Provider,
) -> anyhow::Result<()> {
    let foreign = provider.add(json!({"name": "taken.example.com", "type": "A", "owner": ""}));
    create(records, "taken").await?;
    is_reported(cluster, records, "taken").await?;
    delete(records, "taken").await?;
    provider.remove(&foreign);
    provider.fail(FAILURES);
    create(records, "retried").await?;
    let what = "a reconciliation that has failed to be repeated";
    eventually_within(DEADLINE, what, async || {
        let object = records.get("retried").await.ok()?;
        is_ready(&object, TTLS[0]).then_some(())
    })
    .await?;
    delete(records, "retried").await
}

async fn create(records: &Api<DynamicObject>, name: &str) -> anyhow::Result<()> {
    let parameters = PostParams::default();
    records.create(&parameters, &object(name)).await?;
    Ok(())
}

/// Waits until an object has the condition `Ready` with the status `False`, and an Event.
async fn is_reported(
    cluster: &Cluster,
    records: &Api<DynamicObject>,
    name: &str,
) -> anyhow::Result<()> {
    let events: Api<Event> = Api::namespaced(cluster.client(), "default");
    eventually_within(DEADLINE, "a conflict to be reported", async || {
        let object = records.get(name).await.ok()?;
        let status = &object.data["status"];
        let mut conditions = status["conditions"].as_array()?.iter();
        let is_false = conditions.any(|one| one["type"] == "Ready" && one["status"] == "False");
        let is_observed = status["observedGeneration"].as_i64() == object.metadata.generation;
        let events = events.list(&ListParams::default()).await.ok()?;
        let has_event = events.iter().any(|event| {
            let regarding = event.regarding.as_ref();
            let is_warning = event.type_.as_deref() == Some("Warning");
            is_warning && regarding.is_some_and(|it| it.name.as_deref() == Some(name))
        });
        (is_false && is_observed && has_event).then_some(())
    })
    .await?;
    Ok(())
}

async fn delete(records: &Api<DynamicObject>, name: &str) -> anyhow::Result<()> {
    records.delete(name, &DeleteParams::default()).await?;
    eventually_within(DEADLINE, "an object to be deleted", async || {
        records
            .get_metadata_opt(name)
            .await
            .ok()?
            .is_none()
            .then_some(())
    })
    .await?;
    Ok(())
}

//! Report of a reconciliation, in the status and in Events.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::events::{Event, EventType, Recorder};
use kube::{Resource, ResourceExt};
use serde_json::json;

use crate::dns_api::StoredRecord;
use crate::error::Error;
use crate::record::DnsRecord;

const READY: &str = "Ready";

/// Writes the status of an object, if it has changed, and publishes an Event about a failure and about its end.
pub(crate) async fn write(
    records: &Api<DnsRecord>,
    record: &DnsRecord,
    result: &Result<StoredRecord, Error>,
    recorder: &Recorder,
) -> Result<(), kube::Error> {
    let before = record.status.clone().unwrap_or_default();
    let earlier = before.conditions.iter().find(|it| it.type_ == READY);
    let condition = condition(record, result, earlier);
    let event = match result {
        Err(_) => Some(EventType::Warning),
        Ok(_) => earlier
            .is_some_and(|it| it.status == "False")
            .then_some(EventType::Normal),
    };
    if let Some(type_) = event {
        let event = Event {
            type_,
            reason: condition.reason.clone(),
            note: Some(condition.message.clone()),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        if let Err(error) = recorder.publish(&event, &record.object_ref(&())).await {
            tracing::warn!(%error, "the Event cannot be published");
        }
    }
    let mut after = before.clone();
    after.observed_generation = record.metadata.generation;
    after.conditions.retain(|it| it.type_ != READY);
    after.conditions.push(condition);
    if let Ok(stored) = result {
        after.record_id = Some(stored.id.clone());
        after.served_name = Some(stored.content.name.clone());
    }
    if after != before {
        let patch = Patch::Merge(json!({"status": after}));
        let parameters = PatchParams::default();
        records
            .patch_status(&record.name_any(), &parameters, &patch)
            .await?;
    }
    Ok(())
}

/// Returns the condition `Ready`. The time of its last transition changes only with its status.
fn condition(
    record: &DnsRecord,
    result: &Result<StoredRecord, Error>,
    earlier: Option<&Condition>,
) -> Condition {
    let (status, reason, message) = match result {
        Ok(_) => ("True", "Available", "the record is up to date".to_owned()),
        Err(error) => ("False", error.reason(), error.to_string()),
    };
    let unchanged = earlier.filter(|it| it.status == status);
    Condition {
        type_: READY.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: record.metadata.generation,
        last_transition_time: unchanged.map_or_else(
            || Time(Timestamp::now()),
            |it| it.last_transition_time.clone(),
        ),
    }
}

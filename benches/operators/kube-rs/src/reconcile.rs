//! Reconciliation of one object.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::events::Recorder;
use kube::runtime::finalizer::{Event, finalizer};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;

use crate::dns_api::{DnsApi, StoredRecord};
use crate::error::Error;
use crate::record::DnsRecord;
use crate::report;

const FINALIZER: &str = "dns.example.com/record";

/// Field manager of the `ConfigMap`s.
const MANAGER: &str = "dns-record";

/// Delay before the first retry, which each further failure doubles.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// Longest delay before a retry.
const LAST_RETRY: Duration = Duration::from_mins(15);

/// State that all reconciliations share.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) dns: DnsApi,
    pub(crate) recorder: Recorder,
    /// Interval at which changes that were made outside the cluster are looked for.
    pub(crate) resync: Duration,
    /// Number of successive failures, by the UID of the object.
    pub(crate) failures: Mutex<HashMap<String, u32>>,
}

/// Brings the record of an object to the desired state.
pub(crate) async fn reconcile(
    record: Arc<DnsRecord>,
    context: Arc<Context>,
) -> Result<Action, Error> {
    let namespace = record.namespace().ok_or(Error::Incomplete("namespace"))?;
    let records: Api<DnsRecord> = Api::namespaced(context.client.clone(), &namespace);
    let uid = record.uid().unwrap_or_default();
    let action = finalizer(&records, FINALIZER, record, |event| async {
        match event {
            Event::Apply(record) => {
                let result = apply(&record, &namespace, &context).await;
                report::write(&records, &record, &result, &context.recorder).await?;
                result.map(|_| Action::requeue(context.resync))
            }
            Event::Cleanup(record) => {
                for stored in context.dns.of_owner(&record.desired().owner).await? {
                    context.dns.delete(&stored.id).await?;
                }
                Ok(Action::await_change())
            }
        }
    })
    .await
    .map_err(|error| Error::Finalizer(Box::new(error)))?;
    context.failures().remove(&uid);
    Ok(action)
}

/// Returns when an object is reconciled again after an error.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature is that of kube"
)]
pub(crate) fn error_policy(record: Arc<DnsRecord>, error: &Error, context: Arc<Context>) -> Action {
    tracing::warn!(name = record.name_any(), %error, "reconciliation failed");
    if error.is_permanent() {
        return Action::requeue(LAST_RETRY);
    }
    let mut failures = context.failures();
    let count = failures
        .entry(record.uid().unwrap_or_default())
        .or_default();
    let delay = FIRST_RETRY.saturating_mul(1_u32.checked_shl(*count).unwrap_or(u32::MAX));
    *count = count.saturating_add(1);
    Action::requeue(delay.min(LAST_RETRY))
}

impl Context {
    fn failures(&self) -> std::sync::MutexGuard<'_, HashMap<String, u32>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates or updates the record and the `ConfigMap`, for programs that need the name.
async fn apply(
    record: &DnsRecord,
    namespace: &str,
    context: &Context,
) -> Result<StoredRecord, Error> {
    let stored = bring(record, &context.dns).await?;
    let owner = record.controller_owner_ref(&());
    let config_map: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": record.name_any(), "ownerReferences": [owner]},
        "data": {"name": stored.content.name},
    }))
    .map_err(kube::Error::SerdeError)?;
    let config_maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), namespace);
    let parameters = PatchParams::apply(MANAGER).force();
    let patch = Patch::Apply(&config_map);
    config_maps
        .patch(&record.name_any(), &parameters, &patch)
        .await?;
    Ok(stored)
}

/// Brings the records of an object to the desired state and returns the one that is left.
async fn bring(record: &DnsRecord, dns: &DnsApi) -> Result<StoredRecord, Error> {
    let desired = record.desired();
    let mut named = dns.with_name(&desired.name).await?.into_iter();
    let of_other = |it: &StoredRecord| {
        it.content.r#type == desired.r#type && it.content.owner != desired.owner
    };
    if let Some(StoredRecord { id, content, .. }) = named.find(of_other) {
        let name = content.name;
        return Err(Error::NameTaken { name, id });
    }
    let mut own = dns.of_owner(&desired.owner).await?;
    let kept = own
        .iter()
        .position(|it| (&it.content.name, &it.content.r#type) == (&desired.name, &desired.r#type));
    let stored = match kept.map(|at| own.swap_remove(at)) {
        Some(stored) if stored.content == desired => stored,
        Some(stored) => dns.update(&stored, &desired).await?,
        None => dns.create(&desired).await?,
    };
    // Records with an earlier name, and duplicates after a creation without an answer.
    for surplus in own {
        dns.delete(&surplus.id).await?;
    }
    Ok(stored)
}

//! Reconciler of the instances of one region and role. [Creation](crate::origin::creation), the [comparison](crate::instance::sync) of an
//! instance with the spec and [finalization](crate::deletion::finalization) are separate modules.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aws_sdk_rds::types::DbInstance;
use kube::Client;
use lockstep_cloud_database_api::{CloudDatabaseStatus, Endpoint};
use lockstep_controller::{
    OperatorCondition, Readiness, ReconcileError, ReconcileOutput, SecretAccess,
};

use crate::aws::access::Access;
use crate::aws::call_error::CallError;
use crate::aws::location::Location;
use crate::aws::rds_client::RdsClient;
use crate::aws::rds_client::left::Left;
use crate::aws::rds_clients::RdsClients;
use crate::aws::rds_events::RdsEvents;
use crate::aws::shared_list::SharedList;
use crate::clock;
use crate::credentials::known_passwords::KnownPasswords;
use crate::deletion::refused::RefusedDeletions;
use crate::instance::certificate::CertificateExpiry;
use crate::instance::enqueue::Enqueue;
use crate::instance::modification::outcomes::SYNCED;
use crate::instance::modification::requested::RequestedModifications;
use crate::instance::modification::unaccepted_changes::UnacceptedChanges;
use crate::instance::record::Record;
use crate::instance::step_error::StepError;
use crate::instance::tags::{self, OWNER_TAG};
use crate::origin::source_policy::SourcePolicy;
use crate::quota::ledger::Ledger;

/// Intervals of the calls to RDS.
#[derive(Clone, Copy, Debug)]
pub struct RdsConfig {
    /// Interval while a change is in progress. RDS needs minutes to create or delete an instance.
    pub poll_interval: Duration,
    /// Interval while the instance is up to date, to detect changes by other clients.
    pub resync_period: Duration,
    /// The same while events report such changes. Not every change has an event.
    pub resync_period_with_events: Duration,
    /// Time for which RDS must not list an instance before it counts as missing, or as deleted if its object is being
    /// deleted. RDS lists a new instance only some time after it has accepted the creation.
    pub not_found_grace_period: Duration,
    /// Time for which calls to RDS must fail, for example because they are throttled, before an instance that served
    /// clients counts as not ready. Until then, the last known state is reported.
    pub unavailable_grace_period: Duration,
}

impl Default for RdsConfig {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_secs(30),
            resync_period: Duration::from_mins(10),
            resync_period_with_events: Duration::from_hours(1),
            not_found_grace_period: Duration::from_mins(2),
            unavailable_grace_period: Duration::from_mins(10),
        }
    }
}

/// Clients and settings that the reconcilers of all regions and roles share.
#[derive(Clone)]
pub(crate) struct Shared {
    /// Names by which an administrator grants the rights on Secrets.
    pub(crate) secret_access: SecretAccess,
    /// Client of the API server.
    pub(crate) client: Client,
    pub(crate) config: RdsConfig,
    /// CA certificates of RDS for applications, in PEM format.
    pub(crate) ca_bundle: Option<Arc<str>>,
    pub(crate) certificate_expiry: CertificateExpiry,
    pub(crate) source_policy: SourcePolicy,
    /// Has an object reconciled.
    pub(crate) enqueue: Enqueue,
    /// Usage of the quotas of namespaces.
    pub(crate) quotas: Ledger,
    pub(crate) events: RdsEvents,
    pub(crate) clients: RdsClients,
    /// If true, the annotations of Namespaces count.
    pub(crate) watches_namespaces: bool,
}

/// Reconciler of the instances of one region and role, with what it remembers of them. Identifiers of instances are valid
/// only there.
pub(crate) struct InstanceReconciler {
    pub(crate) shared: Shared,
    pub(crate) access: Access,
    pub(crate) rds: RdsClient,
    pub(crate) requested: RequestedModifications,
    pub(crate) unaccepted: UnacceptedChanges,
    pub(crate) passwords: KnownPasswords,
    /// Last known region and account of the instances.
    location: Mutex<Option<Location>>,
    /// Instances that RDS does not list, with the time since then.
    pub(crate) unseen_since: Mutex<HashMap<String, Instant>>,
    /// Adopted instances of objects that are being deleted, without the owner tag, with the time since then.
    pub(crate) unowned_since: Mutex<HashMap<String, Instant>>,
    /// Objects whose deletion is refused for a reason outside of their instances.
    pub(crate) refused: RefusedDeletions,
    /// Instances for which calls fail, with the time since then.
    pub(crate) failing_since: Mutex<HashMap<String, Instant>>,
    /// Instances whose region this process has recorded, and whose creation it has not requested since then, with that time.
    pub(crate) first_creations: Mutex<HashMap<String, tokio::time::Instant>>,
    /// Instances and data that earlier objects have left.
    pub(crate) listed_instances: SharedList<Left, CallError>,
    pub(crate) listed_snapshots: SharedList<Left, CallError>,
    pub(crate) listed_backups: SharedList<Left, CallError>,
}

/// Reason of an operation that is not complete.
const IN_PROGRESS: &str = "InProgress";

impl InstanceReconciler {
    /// Creates a reconciler that remembers nothing.
    pub(crate) fn new(shared: Shared, access: Access, rds: RdsClient) -> Self {
        Self {
            shared,
            access,
            rds,
            requested: RequestedModifications::default(),
            unaccepted: UnacceptedChanges::default(),
            passwords: KnownPasswords::default(),
            location: Mutex::default(),
            unseen_since: Mutex::default(),
            unowned_since: Mutex::default(),
            refused: RefusedDeletions::default(),
            failing_since: Mutex::default(),
            first_creations: Mutex::default(),
            listed_instances: SharedList::default(),
            listed_snapshots: SharedList::default(),
            listed_backups: SharedList::default(),
        }
    }

    /// Returns the region and account of the instances, if that of an object is there.
    ///
    /// # Errors
    ///
    /// The instance is elsewhere, or the account is unknown.
    pub(crate) async fn locate(
        &self,
        id: &str,
        record: &Record,
    ) -> Result<Location, ReconcileError> {
        let location = self.rds.location().await;
        let location = location.map_err(|error| self.without_answer(id, error))?;
        location.require(id, record)?;
        let mut known = self.location.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref() != Some(&location) {
            *known = Some(location.clone());
        }
        Ok(location)
    }

    /// Returns the interval while an instance is up to date, and the maximum age of its description then, which adds at most a
    /// quarter to the time until a change by another client is noticed.
    pub(crate) fn steady_state(&self) -> (Duration, Duration) {
        let usual = self.shared.config.resync_period;
        let location = self.location.lock();
        let location = location.unwrap_or_else(PoisonError::into_inner).clone();
        let receiving = location.and_then(|it| self.shared.events.health.receiving_since(&it));
        let Some(since) = receiving else {
            return (usual, usual / 4);
        };
        let period = self.shared.config.resync_period_with_events.max(usual);
        // The changes before were not reported.
        (period, (period / 4).min(since.elapsed().max(usual / 4)))
    }

    /// Returns true if RDS has not listed an instance for long enough to count as missing. A creation with a lost
    /// response may still be executed, and RDS lists a new instance only some time after it has accepted the
    /// creation.
    pub(crate) fn is_past_grace_period(&self, id: &str) -> bool {
        self.is_past(&self.unseen_since, id)
    }

    /// Returns true if RDS has shown an instance without the owner tag for long enough to count as one without an owner.
    pub(crate) fn is_unowned_for_long(&self, id: &str) -> bool {
        self.is_past(&self.unowned_since, id)
    }

    /// Returns true if the grace period has passed since an instance was added to these.
    fn is_past(&self, instances: &Mutex<HashMap<String, Instant>>, id: &str) -> bool {
        let mut instances = instances.lock().unwrap_or_else(PoisonError::into_inner);
        let since = instances
            .entry(id.to_owned())
            .or_insert_with(clock::instant);
        clock::instant().duration_since(*since) >= self.shared.config.not_found_grace_period
    }

    /// Returns the result about an instance that serves clients.
    pub(crate) fn available(
        &self,
        status: &mut CloudDatabaseStatus,
        instance: &DbInstance,
        message: String,
    ) -> ReconcileOutput {
        let phase = instance.db_instance_status().unwrap_or_default();
        let endpoint = instance
            .endpoint()
            .and_then(|endpoint| Some((endpoint.address()?, endpoint.port()?)));
        let Some((host, port)) = endpoint else {
            // The instance is available but has no address yet; RDS sets it a moment later.
            return self.waiting(status, phase);
        };
        status.phase = Some(phase.to_owned());
        status.message = Some(message.clone());
        status.endpoint = Some(Endpoint {
            host: host.to_owned(),
            port,
        });
        ReconcileOutput {
            readiness: Some(Readiness {
                ready: true,
                reason: "Available",
                message,
            }),
            requeue_after: self.steady_state().0,
            ..ReconcileOutput::default()
        }
    }

    /// Returns the progress of an instance that has not reached its final phase.
    pub(crate) fn waiting(&self, status: &mut CloudDatabaseStatus, phase: &str) -> ReconcileOutput {
        status.phase = Some(phase.to_owned());
        self.in_progress(status, format!("RDS reports the instance as '{phase}'"))
    }

    /// Returns the progress of an instance that RDS does not list yet.
    pub(crate) fn unseen(&self, id: &str, status: &mut CloudDatabaseStatus) -> ReconcileOutput {
        status.phase = None;
        self.in_progress(status, format!("RDS does not list the instance '{id}'"))
    }

    /// Returns the progress of an operation that is not complete.
    pub(crate) fn in_progress(
        &self,
        status: &mut CloudDatabaseStatus,
        message: String,
    ) -> ReconcileOutput {
        status.message = Some(message.clone());
        ReconcileOutput {
            readiness: Some(Readiness {
                ready: false,
                reason: IN_PROGRESS,
                message: message.clone(),
            }),
            conditions: vec![OperatorCondition {
                type_: SYNCED,
                is_true: false,
                reason: IN_PROGRESS,
                message,
            }],
            requeue_after: self.shared.config.poll_interval,
            ..ReconcileOutput::default()
        }
    }

    /// Wraps an error so that the object is reconciled again later: the cause may be resolved in RDS, which no watch
    /// observes.
    pub(crate) fn requeue(&self, error: ReconcileError) -> ReconcileError {
        ReconcileError::RequeueAfter {
            after: self.shared.config.resync_period,
            error: Box::new(error),
        }
    }

    /// Returns the result that reports an error. Whatever RDS has rejected for a reason outside of the object is tried again
    /// within the resync period.
    pub(crate) fn output_of(
        &self,
        error: StepError,
        status: &mut CloudDatabaseStatus,
    ) -> ReconcileOutput {
        let mut output = error.into_output(status);
        output.error = output.error.map(|error| self.soon(error));
        output
    }

    fn soon(&self, error: ReconcileError) -> ReconcileError {
        match error {
            ReconcileError::RequeueAfter { after, error } => ReconcileError::RequeueAfter {
                after: after.min(self.shared.config.resync_period),
                error: Box::new(self.soon(*error)),
            },
            ReconcileError::Inconclusive(error) => {
                ReconcileError::Inconclusive(Box::new(self.soon(*error)))
            }
            error => error,
        }
    }

    /// Records that RDS lists an instance.
    pub(crate) fn record_seen(&self, id: &str) {
        self.unseen_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(id);
    }

    /// Records that an instance has the owner tag.
    pub(crate) fn record_owned(&self, id: &str) {
        self.unowned_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(id);
    }

    pub(crate) fn forget(&self, id: &str) {
        self.record_seen(id);
        self.record_owned(id);
        self.record_answer(id);
        self.requested.retain(id, &[]);
        self.unaccepted.take(id);
        self.passwords.forget(id);
        self.rds.descriptions.forget(id);
        self.first_creations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(id);
    }

    /// Records that RDS has answered a question about an instance.
    pub(crate) fn record_answer(&self, id: &str) {
        self.failing_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(id);
    }

    /// Marks an error as one that says nothing about the instance, for a limited time: there was no answer of AWS, or it
    /// does not let the controller in.
    pub(crate) fn without_answer(&self, id: &str, error: ReconcileError) -> ReconcileError {
        let (ReconcileError::Transient { .. } | ReconcileError::RequeueAfter { .. }) = error else {
            return error;
        };
        // After an outage of AWS, objects must not wait for hours.
        let error = self.requeue(error);
        let mut failing = self
            .failing_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let since = failing.entry(id.to_owned()).or_insert_with(clock::instant);
        if clock::instant().duration_since(*since) < self.shared.config.unavailable_grace_period {
            ReconcileError::Inconclusive(Box::new(error))
        } else {
            error
        }
    }
}

pub(crate) fn require_ours(
    instance: &DbInstance,
    id: &str,
    uid: Option<&str>,
) -> Result<(), ReconcileError> {
    if tags::is_owned_by(instance, uid) {
        return Ok(());
    }
    Err(ReconcileError::Permanent {
        reason: "InstanceNotOwned",
        message: format!(
            "the RDS instance '{id}' does not have the tag '{OWNER_TAG}' with the UID of this object; restore the tag, or delete the instance"
        ),
    })
}

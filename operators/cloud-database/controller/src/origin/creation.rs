//! Creation of an object's instance, and the cases in which none is created: the instance is missing, was renamed, or
//! was left by an earlier object.
//!
//! missing? → object still exists? → credentials → within the quota? → instance of an earlier object? → record region and account →
//! create, restore or replicate
//!
//! Region and account are recorded before the call: if its response is lost, the instance can only exist there.
//! Once they are recorded, instances of earlier objects are no longer searched: those objects were deleted before
//! this one was created.

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use kube::ResourceExt;
use lockstep_cloud_database_api::{
    CloudDatabase, CloudDatabaseStatus, PointInTime, REPLACES_INSTANCE,
};
use lockstep_controller::{ReconcileError, ReconcileOutput};
use tokio::time::Instant;

use crate::aws::call_error::CallError;
use crate::credentials::master_user::{MasterPassword, MasterUser, UNKNOWN_VERSION};
use crate::instance::applied_values;
use crate::instance::drift;
use crate::instance::instance_reconciler::{InstanceReconciler, require_ours};
use crate::instance::observed_status;
use crate::instance::step_error::{Shown, StepError};
use crate::instance::sync::Subject;
use crate::origin::replacement::replaced;
use crate::origin::source_owner::{FoundSource, SourceName};
use crate::quota::enforcement::Part;
use crate::quota::usage::Usage;

/// Origin of an instance that is about to be created.
pub(crate) enum Origin<'a> {
    /// No data, and this master user.
    Empty(MasterUser),
    /// Snapshot with this identifier.
    Snapshot(&'a str),
    /// Earlier state of another instance.
    PointInTime(&'a PointInTime),
    /// Instance with this identifier, which is replicated.
    Replica(String),
}

impl<'a> Origin<'a> {
    /// Returns the origin that the spec names. The master user of a restored instance is needed as soon as the instance is
    /// available, and that of a replica only after its promotion.
    fn of(
        object: &'a CloudDatabase,
        user: Result<MasterUser, ReconcileError>,
        source: Option<Result<String, ReconcileError>>,
    ) -> Result<Self, ReconcileError> {
        if let Some(source) = source {
            return Ok(Self::Replica(source?));
        }
        let user = user?;
        let backup = object.spec.restore_from.as_ref();
        let snapshot = backup.and_then(|backup| backup.snapshot.as_deref());
        let point_in_time = backup.and_then(|backup| backup.point_in_time.as_ref());
        Ok(match (snapshot, point_in_time) {
            (Some(snapshot), _) => Self::Snapshot(snapshot),
            (None, Some(source)) => Self::PointInTime(source),
            (None, None) => Self::Empty(user),
        })
    }

    /// Returns true if an instance is the one whose data the new instance gets.
    pub(crate) fn is(&self, instance: &str, resource_id: &str) -> bool {
        match self {
            Self::Empty(_) | Self::Snapshot(_) => false,
            Self::PointInTime(point) => {
                point.source_instance.as_deref() == Some(instance)
                    || point.source_resource_id.as_deref() == Some(resource_id)
            }
            Self::Replica(source) => source == instance,
        }
    }

    /// Returns the version of the Secret whose password the instance is created with.
    fn credentials_version(&self) -> Option<&str> {
        match self {
            Self::Empty(user) => user.password.version(),
            // That of its source, which is not known here.
            Self::Snapshot(_) | Self::PointInTime(_) | Self::Replica(_) => Some(UNKNOWN_VERSION),
        }
    }

    /// Returns the instance that the new one replicates.
    fn replicated(&self) -> Option<String> {
        match self {
            Self::Replica(source) => Some(source.clone()),
            Self::Empty(_) | Self::Snapshot(_) | Self::PointInTime(_) => None,
        }
    }

    /// Returns true if the call needs a password that would be lost if this process ended.
    fn is_password_missing(&self) -> bool {
        matches!(self, Self::Empty(user) if matches!(user.password, MasterPassword::NotStored))
    }
}

impl InstanceReconciler {
    /// Creates the instance that RDS does not list, unless RDS has listed it before.
    pub(crate) async fn create(
        &self,
        id: &str,
        subject: Subject<'_>,
        status: &mut CloudDatabaseStatus,
    ) -> Result<ReconcileOutput, StepError> {
        let Subject {
            request, record, ..
        } = subject;
        let object = request.parent();
        if let Some(shown) = record.listed_id() {
            if !self.is_past_grace_period(id) {
                return Ok(self.unseen(id, status));
            }
            if !replaced(object).contains(shown) {
                return Err(self.missing(id, shown));
            }
        }
        self.require_current(object).await?;
        let origin = Origin::of(object, subject.user, subject.source)?;
        let source = self.require_allowed_origin(object, &origin).await?;
        if origin.is_password_missing() {
            let message = format!("the RDS instance '{id}' is created once its password is stored");
            return Ok(self.in_progress(status, message));
        }
        // Before each call: the spec may demand more than when the region was recorded.
        let new = Part::New { source };
        if let Some(problem) = self.exceeded_quota(request, new).await? {
            return Err(self.stalled("QuotaExceeded", problem));
        }
        if record.region.is_none() || record.account_id.is_none() {
            let events = self.require_first(id, object, record, &origin).await?;
            let located = self.locating(id, &origin, status).await?;
            return Ok(ReconcileOutput { events, ..located });
        }
        let replicated = origin.replicated();
        if replicated.is_some() && record.replica_of != replicated {
            return Ok(self.naming_source(id, &origin, status));
        }
        if let Some(since) = self.located_at(id) {
            self.require_first_again(object, &origin, since).await?;
        }
        // Whatever this call leads to, no later one is the first.
        let is_first = self.first_creations().remove(id).is_some() && record.listed_id().is_none();
        // An instance that this call makes has a grace period of its own.
        self.record_seen(id);
        let requested = self.request_new(id, object, &origin).await;
        let instance = self
            .created(id, object, requested, is_first, status)
            .await?;
        let progress = self.waiting(status, instance.db_instance_status().unwrap_or("creating"));
        observed_status::record(status, &instance);
        self.record_origin(id, object, &origin, status);
        Ok(progress)
    }

    /// Returns the instance of which RDS was asked for the creation.
    async fn created(
        &self,
        id: &str,
        object: &CloudDatabase,
        requested: Result<DbInstance, CallError>,
        is_first: bool,
        status: &mut CloudDatabaseStatus,
    ) -> Result<DbInstance, StepError> {
        let error = match requested {
            Ok(instance) => {
                tracing::info!(instance = id, "requested a new instance from RDS");
                let enforced = drift::enforced_at_creation().into_iter();
                status.enforced_fields = enforced.map(String::from).collect();
                return Ok(instance);
            }
            Err(error) => error,
        };
        // An earlier call was executed and its response lost.
        if error.is("DBInstanceAlreadyExists") {
            return Ok(self.created_before(id, object).await?);
        }
        // RDS has rejected each attempt of the first call, so that nothing was created. After an attempt whose answer was lost, a
        // rejection can be its effect: it took the rest of a quota.
        if is_first && is_not_made(&error) {
            status.region = None;
            status.account_id = None;
        }
        Err(error.into())
    }

    async fn request_new(
        &self,
        id: &str,
        object: &CloudDatabase,
        origin: &Origin<'_>,
    ) -> Result<DbInstance, CallError> {
        match origin {
            Origin::Empty(user) => self.rds.create(id, object, user).await,
            Origin::Snapshot(snapshot) => self.rds.restore_snapshot(id, object, snapshot).await,
            Origin::PointInTime(source) => self.rds.restore_point_in_time(id, object, source).await,
            Origin::Replica(source) => self.rds.create_replica(id, object, source).await,
        }
    }

    /// Returns the instance of an object that RDS says exists.
    async fn created_before(
        &self,
        id: &str,
        object: &CloudDatabase,
    ) -> Result<DbInstance, ReconcileError> {
        let Some(instance) = self.rds.describe(id).await? else {
            return Err(ReconcileError::Transient {
                reason: "InstanceNotFoundYet",
                message: format!(
                    "RDS reports that the instance '{id}' exists, but does not list it yet"
                ),
            });
        };
        require_ours(&instance, id, object.uid().as_deref())?;
        Ok(instance)
    }

    /// Returns an error if the data of an instance would be those of others without the consent of an administrator, or if RDS cannot use
    /// them. Returns the part of a quota that an instance takes with their storage.
    async fn require_allowed_origin(
        &self,
        object: &CloudDatabase,
        origin: &Origin<'_>,
    ) -> Result<Usage, StepError> {
        let (name, source) = match origin {
            Origin::Empty(_) => return Ok(Usage::default()),
            Origin::Snapshot(snapshot) => (
                SourceName::Snapshot(snapshot),
                self.rds.source_snapshot(snapshot).await?,
            ),
            Origin::PointInTime(point) => {
                let instance = point.source_instance.as_deref();
                let instance = instance.or(point.source_resource_id.as_deref());
                let source = self.rds.source_point_in_time(point).await?;
                (SourceName::Instance(instance.unwrap_or_default()), source)
            }
            // An object of the namespace that names the source may only observe it: that says nothing about the owner.
            Origin::Replica(instance) => (
                SourceName::Instance(instance),
                self.rds.source_instance(instance).await?,
            ),
        };
        let found = FoundSource {
            name,
            arn: source.arn.as_deref(),
            tags: &source.tags,
        };
        self.require_allowed(object, found).await?;
        let unencrypted = || match (source.is_encrypted, name) {
            _ if !object.spec.encryption.enabled => None,
            (Some(false), _) => Some(without_encryption(name)),
            (None, SourceName::Snapshot(_)) => Some(of_unknown_encryption(name)),
            _ => None,
        };
        match source.problem.clone().or_else(unencrypted) {
            Some(problem) => Err(self.stalled("SourceNotUsable", problem)),
            None => Ok(source.usage),
        }
    }

    /// Records the storage and the origin of an instance that has been created.
    fn record_origin(
        &self,
        id: &str,
        object: &CloudDatabase,
        origin: &Origin<'_>,
        status: &mut CloudDatabaseStatus,
    ) {
        status.applied_storage = Some(applied_values::storage_at_creation(&object.spec));
        if let Origin::Empty(_) = origin {
            return;
        }
        // An earlier instance of the object may have had the password.
        self.passwords.forget(id);
        status.credentials_version = origin.credentials_version().map(String::from);
    }

    /// Records the region and account in which the instance is about to be created, and the version of the Secret with its
    /// password. The next reconciliation creates it.
    async fn locating(
        &self,
        id: &str,
        origin: &Origin<'_>,
        status: &mut CloudDatabaseStatus,
    ) -> Result<ReconcileOutput, ReconcileError> {
        let location = self.rds.location().await?;
        self.first_creations().insert(id.to_owned(), Instant::now());
        status.region = Some(location.region);
        status.account_id = Some(location.account_id);
        status.credentials_version = origin.credentials_version().map(String::from);
        Ok(self.naming_source(id, origin, status))
    }

    /// Records what the instance that is about to be created replicates. If the status after the call were lost, a replica that is
    /// to be promoted would look like one that another client has made.
    fn naming_source(
        &self,
        id: &str,
        origin: &Origin<'_>,
        status: &mut CloudDatabaseStatus,
    ) -> ReconcileOutput {
        // What an earlier call replicates stays recorded: it may be carried out late.
        if let Some(source) = origin.replicated() {
            status.replica_of = Some(source);
        }
        let message = format!("the RDS instance '{id}' is about to be created");
        ReconcileOutput {
            requeue_after: Duration::ZERO,
            ..self.in_progress(status, message)
        }
    }

    /// Returns the error for an instance that RDS has listed before and no longer finds. A new instance would be
    /// empty, and would take the place of a database that may have to be restored.
    fn missing(&self, id: &str, shown: &str) -> StepError {
        self.stalled(
            "InstanceMissing",
            format!(
                "the RDS instance '{id}' ({shown}) no longer exists, and this controller did not delete it. No new instance is created, because it would not have its data. Restore a snapshot as '{id}' with the tags of the instance, or set the annotation {REPLACES_INSTANCE}={shown} to create a new instance as the spec says"
            ),
        )
    }

    /// Returns an error that only a user or an administrator can resolve, possibly in RDS. There is no instance.
    pub(crate) fn stalled(&self, reason: &'static str, message: String) -> StepError {
        self.stalled_in(None, reason, message)
    }

    /// Returns the same for an instance that has the status `phase` in RDS, if there is one.
    pub(crate) fn stalled_in(
        &self,
        phase: Option<&str>,
        reason: &'static str,
        message: String,
    ) -> StepError {
        let shown = Shown {
            phase: phase.map(String::from),
            message: message.clone(),
        };
        let error = self.requeue(ReconcileError::Permanent { reason, message });
        StepError::from(error).with_shown(shown)
    }

    /// Returns the time at which this process has recorded the region of an instance, unless it has requested the creation since
    /// then.
    fn located_at(&self, id: &str) -> Option<Instant> {
        self.first_creations().get(id).copied()
    }

    fn first_creations(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        let first = self.first_creations.lock();
        first.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if a call has certainly made no instance.
fn is_not_made(error: &CallError) -> bool {
    error.is_rejected() && !error.may_be_done()
}

/// Returns the problem of a source without encryption for an object whose instance is to be encrypted.
fn without_encryption(source: SourceName<'_>) -> String {
    format!(
        "{source} is not encrypted, and RDS makes only unencrypted instances from it, which can never be encrypted. Take a snapshot, copy it with a KMS key, and create the object with `spec.restoreFrom.snapshot` of the copy; or, to have an instance without encryption, create the object with `spec.encryption.enabled: false`"
    )
}

/// Returns the problem of a snapshot of another account, of which RDS does not say here that it is encrypted.
fn of_unknown_encryption(source: SourceName<'_>) -> String {
    format!(
        "{source} is one of another account, so that it is not known to be encrypted, and an instance that RDS makes from an unencrypted one can never be encrypted. Copy it into this account with a KMS key, and create the object with `spec.restoreFrom.snapshot` of the copy; or, to have an instance without encryption, create the object with `spec.encryption.enabled: false`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_first_call_that_was_certainly_not_carried_out_leaves_no_region() {
        let forgets_region = |code: &str, may_be_done: bool, is_first: bool| {
            is_first && is_not_made(&CallError::answered(Some(code), Some(400), may_be_done))
        };
        for code in [
            "InvalidParameterValue",
            "DBSubnetGroupNotFoundFault",
            "InstanceQuotaExceeded",
            "AccessDenied",
        ] {
            assert!(forgets_region(code, false, true), "{code}");
            // An attempt whose answer was lost may have made the instance.
            assert!(!forgets_region(code, true, true), "{code}");
            assert!(!forgets_region(code, false, false), "{code}");
        }
        assert!(!forgets_region("InvalidDBInstanceState", false, true));
    }
}

//! Release of an instance that its object leaves: the owner tag is removed, so that another object can adopt the instance.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use lockstep_cloud_database_api::DeletionPolicy;
use lockstep_controller::{FinalizeOutcome, FinalizeRequest, ReconcileError};

use crate::deletion_policy::{self, deletion_began};
use crate::identity::Identity;
use crate::instance_reconciler::InstanceReconciler;
use crate::recorded_instance::RecordedInstance;
use crate::tags;

impl InstanceReconciler {
    /// Removes the owner tag of the instance, and ends the finalization. The instance is kept in any case: an object whose
    /// instance cannot be reached goes without it, after a grace period if another attempt may succeed.
    pub(crate) async fn release(
        &self,
        identity: &Identity,
        deleted: &FinalizeRequest<'_>,
        record: &RecordedInstance<'_>,
        uid: Option<&str>,
    ) -> Result<FinalizeOutcome, ReconcileError> {
        let id = &identity.id;
        let description = record.arn.map_or(String::new(), |arn| format!(" ({arn})"));
        let mut message = format!(
            "the RDS instance '{id}'{description} is retained because of the deletion policy Retain"
        );
        match self.untag(identity, record, uid).await {
            Ok(()) => {}
            Err(ReconcileError::Transient { reason, message })
                if deletion_age(deleted) < self.shared.config.not_found_grace_period =>
            {
                return Err(self.requeue(ReconcileError::Transient { reason, message }));
            }
            Err(error) => {
                message += &format!(
                    ". Its tags are kept, so that no other object can adopt it before they are removed in RDS: {error}"
                );
            }
        }
        self.forget(id);
        Ok(FinalizeOutcome::Retained(message))
    }

    async fn untag(
        &self,
        identity: &Identity,
        record: &RecordedInstance<'_>,
        uid: Option<&str>,
    ) -> Result<(), ReconcileError> {
        // Without a region, no instance was ever requested. One may have been adopted just now.
        if record.region.is_none() && !identity.is_adopted {
            return Ok(());
        }
        let id = &identity.id;
        let location = self.rds.location().await?;
        location.require(id, record)?;
        let Some(instance) = self.rds.describe(id).await? else {
            return Ok(());
        };
        if !tags::is_owned_by(&instance, uid) {
            return Ok(());
        }
        let arn = instance.db_instance_arn().unwrap_or_default();
        let keys = tags::to_release(&instance, identity.is_adopted);
        match self.rds.untag(arn, keys).await {
            Err(error) if error.is_rejected() => Err(ReconcileError::Permanent {
                reason: "RejectedByRds",
                message: error.text(),
            }),
            result => Ok(result?),
        }
    }
}

/// Returns the end of the finalization of an object without access to its region and role, for this error. An object whose
/// instance is to be retained goes without it, and so does one for which no instance was ever requested.
pub(crate) fn without_access(
    deleted: &FinalizeRequest<'_>,
    error: ReconcileError,
) -> Result<FinalizeOutcome, ReconcileError> {
    let identity = Identity::of_deleted(deleted)?;
    let id = &identity.id;
    let record = RecordedInstance::from_status(deleted.object, id);
    if deletion_policy::is_observed(deleted) {
        return Ok(FinalizeOutcome::Retained(format!(
            "the RDS instance '{id}' is retained: it was only observed"
        )));
    }
    let was_requested = record.region.is_some() || record.listed_id().is_some();
    if !was_requested && !identity.is_adopted {
        return Ok(FinalizeOutcome::Done);
    }
    let is_retained = deletion_policy::safer_policy(deleted) == DeletionPolicy::Retain;
    if is_retained || !was_requested {
        return Ok(FinalizeOutcome::Retained(format!(
            "the RDS instance '{id}' is retained. Its tags are kept, if it has any, so that no other object can adopt it before they are removed in RDS: {error}"
        )));
    }
    Err(error)
}

/// Returns the time since the deletion of an object began.
pub(crate) fn deletion_age(deleted: &FinalizeRequest<'_>) -> Duration {
    let age = Timestamp::now().as_second() - deletion_began(deleted);
    Duration::from_secs(age.try_into().unwrap_or_default())
}

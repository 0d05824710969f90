//! Release of an instance that its object leaves: the owner tag is removed, so that another object can adopt the instance.

use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::DeletionPolicy;
use lockstep_controller::{FinalizeOutcome, FinalizeRequest, ReconcileError};

use crate::clock;
use crate::deletion::absence::Requested;
use crate::deletion::absence::SecondDescription;
use crate::deletion::deleted::Deleted;
use crate::deletion::deletion_policy::{self, deletion_began};
use crate::instance::instance_reconciler::InstanceReconciler;
use crate::instance::record::Record;
use crate::instance::tags::{self, ObjectTags};

impl InstanceReconciler {
    /// Removes the owner tag of the instance, and ends the finalization. The instance is kept in any case: an object whose
    /// instance cannot be reached goes without it, after a grace period if another attempt may succeed.
    pub(crate) async fn release(
        &self,
        deleted: &Deleted<'_>,
    ) -> Result<FinalizeOutcome, ReconcileError> {
        let Deleted { record, .. } = *deleted;
        let id = deleted.id();
        let description = record.arn.as_ref();
        let description = description.map_or(String::new(), |arn| format!(" ({arn})"));
        let mut message = format!(
            "the RDS instance '{id}'{description} is retained because of the deletion policy Retain"
        );
        let owner = ObjectTags::of_deleted(deleted.request.object);
        match self.untag(deleted, &owner).await {
            Ok(()) => {}
            Err(ReconcileError::Transient { reason, message })
                if deletion_age(deleted.request) < self.shared.config.not_found_grace_period =>
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

    async fn untag(&self, deleted: &Deleted<'_>, owner: &ObjectTags) -> Result<(), ReconcileError> {
        let Deleted {
            identity, record, ..
        } = *deleted;
        if record.requested() == Requested::Never {
            return Ok(());
        }
        let id = &identity.id;
        let location = self.rds.location().await?;
        location.require(id, record)?;
        let instance = match self.rds.describe(id).await? {
            Some(instance) => instance,
            None => self.described_again(id, owner, record).await?,
        };
        if !tags::is_owned_by(&instance, deleted.uid()) {
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

    /// Returns an instance that RDS has not found by its identifier, and that may have the tags of the object.
    ///
    /// # Errors
    ///
    /// RDS does not list the instance. It may do so later.
    async fn described_again(
        &self,
        id: &str,
        owner: &ObjectTags,
        record: &Record,
    ) -> Result<DbInstance, ReconcileError> {
        match self.describe_again(id, record, owner).await? {
            SecondDescription::Listed(instance) => Ok(*instance),
            SecondDescription::Absent => Err(ReconcileError::Transient {
                reason: "InstanceNotFoundYet",
                message: format!("RDS does not list the instance '{id}'"),
            }),
            SecondDescription::Renamed(now) => Err(ReconcileError::Permanent {
                reason: "InstanceRenamed",
                message: format!("it was renamed to '{now}'"),
            }),
        }
    }
}

/// Returns the end of the finalization of an object without access to its region and role, because of this error. An object
/// whose instance is to be retained goes without it, and so does one for which no instance was ever requested. All others
/// wait.
pub(crate) fn without_access(
    deleted: &Deleted<'_>,
    error: &ReconcileError,
) -> Option<FinalizeOutcome> {
    let id = deleted.id();
    if deletion_policy::is_observed(deleted.request) {
        return Some(FinalizeOutcome::Retained(format!(
            "the RDS instance '{id}' is retained: it was only observed"
        )));
    }
    if deleted.record.requested() == Requested::Never {
        return Some(FinalizeOutcome::Done);
    }
    (deleted.policy == DeletionPolicy::Retain).then(|| {
        FinalizeOutcome::Retained(format!(
            "the RDS instance '{id}' is retained. Its tags are kept, if it has any, so that no other object can adopt it before they are removed in RDS: {error}"
        ))
    })
}

/// Returns the time since the deletion of an object began.
pub(crate) fn deletion_age(deleted: &FinalizeRequest<'_>) -> Duration {
    let age = clock::now().as_second() - deletion_began(deleted);
    Duration::from_secs(age.try_into().unwrap_or_default())
}

//! Description of an instance for a reconciliation: one from a sweep if it only confirms what is recorded, and
//! otherwise one from a single call.
//!
//! A description from a sweep is old by seconds or minutes, so that nothing is written because of it, and nothing
//! irreversible follows from it.

use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use kube::ResourceExt;
use lockstep_cloud_database_api::CloudDatabase;
use lockstep_controller::ReconcileError;

use crate::applied_values;
use crate::call_error::CallError;
use crate::drift;
use crate::instance_reconciler::InstanceReconciler;
use crate::master_user::MasterUser;
use crate::observation::is_observed;
use crate::rds_events::changed_instances::Change;
use crate::recent::Description;
use crate::recorded_instance::RecordedInstance;
use crate::replication::Replication;
use crate::tags;

impl InstanceReconciler {
    /// Returns the maximum age of the description of an instance with a recorded status. While a change is in progress, it
    /// adds at most half to the time until its end is noticed.
    pub(crate) fn max_age(&self, phase: Option<&str>) -> Duration {
        match phase {
            Some("available") => self.steady_state().1,
            _ => self.shared.config.poll_interval / 2,
        }
    }

    /// Returns the instance of an object, or `None` if it does not exist. After a `change`, its description is a later one.
    pub(crate) async fn describe(
        &self,
        id: &str,
        object: &CloudDatabase,
        record: &RecordedInstance<'_>,
        user: &Result<MasterUser, ReconcileError>,
        change: Option<&Change>,
    ) -> Result<Option<DbInstance>, CallError> {
        if record.listed_id().is_none() {
            return self.rds.describe(id).await;
        }
        let max_age = self.max_age(record.phase);
        let max_age = change.map_or(max_age, |change| max_age.min(change.max_age()));
        match self.rds.recent(id, max_age).await? {
            Description::Single(instance) => Ok(instance.map(|it| *it)),
            Description::Swept(instance) => {
                if self.confirms(id, object, record, user, &instance) {
                    return Ok(Some(DbInstance::clone(&instance)));
                }
                self.rds.describe(id).await
            }
        }
    }

    /// Returns true if a description leads to no write, and shows the recorded status.
    fn confirms(
        &self,
        id: &str,
        object: &CloudDatabase,
        record: &RecordedInstance<'_>,
        user: &Result<MasterUser, ReconcileError>,
        instance: &DbInstance,
    ) -> bool {
        let is_same = instance.db_instance_status() == record.phase
            && instance.dbi_resource_id() == record.resource_id;
        if is_observed(object) {
            return is_same;
        }
        let spec = &object.spec;
        let enforced = drift::enforced(spec, instance, &record.enforced_fields);
        let when = spec.apply_changes;
        let change = drift::between(spec, when, instance, &enforced, record);
        let expected = tags::managed_tags(object, self.rds.cluster_name());
        let removed = applied_values::removed_tags(&expected, instance, &record.applied_tags);
        let missing = drift::missing_tags(expected, instance.tag_list());
        let replication = Replication::of(object, instance, record.replica_of);
        let is_replica = matches!(replication, Replication::Replica(_));
        let password = user.as_ref().ok().filter(|_| !is_replica).and_then(|user| {
            let mut version = self.credentials_version(id, object, instance, record);
            self.password_change(id, &user.password, instance, record, &mut version)
        });
        is_same
            && tags::is_owned_by(instance, object.uid().as_deref())
            && !matches!(replication, Replication::ToPromote(_))
            && change.is_empty()
            && removed.is_empty()
            && missing.is_empty()
            && password.is_none()
    }
}

#[cfg(test)]
mod measurement;
#[cfg(test)]
mod tests;

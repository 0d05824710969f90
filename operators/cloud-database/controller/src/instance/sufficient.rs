//! Description of an instance for a reconciliation: one from a sweep if it only confirms what is recorded, and
//! otherwise one from a single call.
//!
//! A description from a sweep is old by seconds or minutes, so that nothing is written because of it, and nothing
//! irreversible follows from it.

use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::CloudDatabase;
use lockstep_controller::ReconcileError;

use crate::aws::call_error::CallError;
use crate::aws::rds_events::changed_instances::Change;
use crate::aws::recent::Description;
use crate::credentials::master_user::MasterUser;
use crate::instance::described::Described;
use crate::instance::instance_reconciler::InstanceReconciler;
use crate::instance::record::Record;

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
        record: &Record,
        user: &Result<MasterUser, ReconcileError>,
        change: Option<&Change>,
    ) -> Result<Option<DbInstance>, CallError> {
        if record.listed_id().is_none() {
            return self.rds.describe(id).await;
        }
        let max_age = self.max_age(record.phase.as_deref());
        let max_age = change.map_or(max_age, |change| max_age.min(change.max_age()));
        match self.rds.recent(id, max_age).await? {
            Description::Single(instance) => Ok(instance.map(|instance| *instance)),
            Description::Swept(instance) => {
                let described = Described {
                    id,
                    object,
                    instance: &instance,
                    record,
                    user,
                };
                if self.is_confirmed(&described) {
                    return Ok(Some(DbInstance::clone(&instance)));
                }
                self.rds.describe(id).await
            }
        }
    }
}

#[cfg(test)]
mod measurement;
#[cfg(test)]
mod tests;

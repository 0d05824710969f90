//! Second description of an instance that RDS does not find by its identifier, by another question: the list of the
//! instances with its resource ID, which stays the same when the instance is renamed.

use aws_sdk_rds::types::DbInstance;
use kube::ResourceExt;
use lockstep_cloud_database_api::CloudDatabase;

use crate::aws::call_error::CallError;
use crate::deletion::absence::SecondDescription;
use crate::instance::instance_reconciler::InstanceReconciler;
use crate::instance::record::Record;
use crate::instance::step_error::StepError;
use crate::instance::tags::ObjectTags;

impl InstanceReconciler {
    /// Asks RDS again for an instance that it has not found by its identifier. Without a recorded resource ID, the list
    /// of the instances with the identifier is asked for.
    pub(crate) async fn describe_again(
        &self,
        id: &str,
        record: &Record,
        owner: &ObjectTags,
    ) -> Result<SecondDescription, CallError> {
        let found = match record.resource_id.as_deref() {
            Some(resource_id) => self.rds.by_resource_id(resource_id).await?,
            None => self.rds.by_identifier(id).await?,
        };
        let name_of = |it: &DbInstance| it.db_instance_identifier().unwrap_or_default().to_owned();
        if let Some(instance) = found.iter().find(|it| name_of(it) == id) {
            return Ok(SecondDescription::Listed(Box::new(instance.clone())));
        }
        // An instance without tags still counts; one with a tag of another object does not.
        let renamed = found.iter().find(|it| !owner.contradict(it));
        Ok(renamed.map_or(SecondDescription::Absent, |it| {
            SecondDescription::Renamed(name_of(it))
        }))
    }

    /// Returns the instance of an object that RDS has listed before and has not found by its identifier now, if it lists
    /// it nevertheless.
    ///
    /// # Errors
    ///
    /// The instance was renamed, or the error of the call.
    pub(crate) async fn found_again(
        &self,
        id: &str,
        object: &CloudDatabase,
        record: &Record,
    ) -> Result<Option<DbInstance>, StepError> {
        let owner = ObjectTags::of(object);
        let second = self.describe_again(id, record, &owner).await;
        match second.map_err(|error| self.without_answer(id, error.into()))? {
            SecondDescription::Absent => Ok(None),
            SecondDescription::Listed(instance) => {
                let name = object.name_any();
                tracing::info!(
                    instance = id,
                    name,
                    "RDS lists an instance that it did not find"
                );
                Ok(Some(*instance))
            }
            SecondDescription::Renamed(now) => Err(self.renamed(id, record, &now)),
        }
    }

    /// Returns the error for an instance that has another identifier now.
    pub(crate) fn renamed(&self, id: &str, record: &Record, now: &str) -> StepError {
        let resource_id = record.resource_id.as_deref().unwrap_or_default();
        self.stalled(
            "InstanceRenamed",
            format!(
                "the RDS instance '{id}' ({resource_id}) was renamed to '{now}' and is not modified; rename it to '{id}' in RDS"
            ),
        )
    }
}

//! Status fields that record the instance of an object and the requests to RDS for it.

use k8s_openapi::jiff::Timestamp;
use lockstep_cloud_database_api::{AcceptedChange, AppliedStorage, DeletionRequest};
use serde::Deserialize;
use serde_json::Value;

use crate::absence::{Deletion, Requested};

/// Recorded fields of an object. They are parsed one by one, so that an invalid field does not hide the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordedInstance<'a> {
    /// Recorded before the first call to RDS.
    pub(crate) instance_id: Option<&'a str>,
    /// Recorded before the instance is created, and again once RDS has listed it.
    pub(crate) region: Option<&'a str>,
    /// Recorded with the region.
    pub(crate) account_id: Option<&'a str>,
    /// Recorded once RDS has listed the instance.
    pub(crate) arn: Option<&'a str>,
    /// Recorded with the ARN.
    pub(crate) resource_id: Option<&'a str>,
    /// If true, RDS has listed the instance with an address.
    pub(crate) has_endpoint: bool,
    /// Status of the instance in RDS.
    pub(crate) phase: Option<&'a str>,
    pub(crate) enforced_fields: Vec<&'a str>,
    pub(crate) applied_storage: AppliedStorage,
    pub(crate) applied_tags: Vec<&'a str>,
    /// Instance that this one replicates, while the spec names one.
    pub(crate) replica_of: Option<&'a str>,
    /// Version of the Secret whose password the instance has.
    pub(crate) credentials_version: Option<&'a str>,
    /// Version of the Secret whose password was requested, and not accepted yet.
    pub(crate) requested_credentials_version: Option<&'a str>,
    pub(crate) storage_modified_at: Option<Timestamp>,
    /// Last size of the storage that RDS has accepted.
    pub(crate) accepted_storage_gib: Option<i32>,
    pub(crate) deletion_request: Option<DeletionRequest>,
    /// If true, the status has not been erased since nothing had been requested for the object.
    pub(crate) is_complete: bool,
    /// Changes that RDS has accepted and may not have applied yet.
    pub(crate) accepted_changes: Vec<AcceptedChange>,
}

impl<'a> RecordedInstance<'a> {
    /// Returns the recorded fields of the instance with an identifier. A status that was copied from another
    /// object, for example by a restore, records another instance and is ignored.
    pub(crate) fn from_status(object: &'a Value, id: &str) -> Self {
        let status = &object["status"];
        let text = |field: &str| status[field].as_str().filter(|text| !text.is_empty());
        let instance_id = text("instanceId");
        if instance_id.is_some_and(|recorded| recorded != id) {
            return Self::default();
        }
        let arn = text("arn");
        // `arn:PARTITION:rds:REGION:ACCOUNT:db:IDENTIFIER`
        let of_arn = |part: usize| {
            let part = arn?.split(':').nth(part)?;
            Some(part).filter(|part| !part.is_empty())
        };
        let list = |field: &str| {
            let list = status[field].as_array().into_iter().flatten();
            list.filter_map(Value::as_str).collect()
        };
        Self {
            instance_id,
            region: text("region").or_else(|| of_arn(3)),
            account_id: text("accountId").or_else(|| of_arn(4)),
            arn,
            resource_id: text("resourceId"),
            has_endpoint: status["endpoint"].is_object(),
            phase: text("phase"),
            enforced_fields: list("enforcedFields"),
            applied_storage: AppliedStorage::deserialize(&status["appliedStorage"])
                .unwrap_or_default(),
            applied_tags: list("appliedTags"),
            replica_of: text("replicaOf"),
            credentials_version: text("credentialsVersion"),
            requested_credentials_version: text("requestedCredentialsVersion"),
            accepted_storage_gib: status["acceptedStorageGib"]
                .as_i64()
                .and_then(|size| size.try_into().ok()),
            storage_modified_at: text("storageModifiedAt").and_then(|time| time.parse().ok()),
            deletion_request: DeletionRequest::deserialize(&status["deletionRequest"]).ok(),
            is_complete: text("completeFor")
                .is_some_and(|uid| object["metadata"]["uid"].as_str() == Some(uid)),
            accepted_changes: status["acceptedChanges"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|change| AcceptedChange::deserialize(change).ok())
                .collect(),
        }
    }

    /// Returns the ID of an instance that RDS has listed: its resource ID, or its identifier if an earlier release
    /// has not recorded the resource ID. Returns `None` if RDS has never listed the instance.
    pub(crate) fn listed_id(&self) -> Option<&'a str> {
        let identifier = self.instance_id.filter(|_| self.has_endpoint);
        self.resource_id.or(identifier)
    }

    /// Returns what the status says about requests for the instance. The location is recorded before the first one.
    pub(crate) fn requested(&self) -> Requested {
        if self.listed_id().is_some() {
            Requested::Listed
        } else if self.region.is_some() {
            Requested::Located
        } else if self.is_complete {
            Requested::Never
        } else {
            Requested::Unknown
        }
    }

    /// Returns the progress of the deletion that the controller has requested.
    pub(crate) fn deletion(&self) -> Deletion {
        match &self.deletion_request {
            None => Deletion::None,
            Some(request) if request.accepted_at.is_none() => Deletion::Recorded,
            Some(request) if request.seen_deleting => Deletion::Deleting,
            Some(_) => Deletion::Accepted,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_that_was_copied_from_another_object_is_ignored() {
        let object = json!({"status": {"instanceId": "cdb-1", "resourceId": "db-A", "region": "eu-central-1"}});
        assert_eq!(
            RecordedInstance::from_status(&object, "cdb-1").resource_id,
            Some("db-A")
        );
        assert_eq!(
            RecordedInstance::from_status(&object, "cdb-2"),
            RecordedInstance::default()
        );
    }

    #[test]
    fn an_instance_that_an_earlier_release_has_recorded_counts_as_listed() {
        let shown = |status: &Value| {
            let object = json!({"status": status});
            RecordedInstance::from_status(&object, "cdb-1")
                .listed_id()
                .map(String::from)
        };
        let endpoint = json!({"host": "h", "port": 1});
        assert_eq!(shown(&json!({"instanceId": "cdb-1"})), None);
        let earlier = json!({"instanceId": "cdb-1", "endpoint": endpoint});
        assert_eq!(shown(&earlier).as_deref(), Some("cdb-1"));
        let now = json!({"instanceId": "cdb-1", "endpoint": endpoint, "resourceId": "db-A"});
        assert_eq!(shown(&now).as_deref(), Some("db-A"));
    }

    #[test]
    fn only_a_status_that_was_not_erased_proves_that_nothing_was_requested() {
        let requested = |status: &Value| {
            let object = json!({"metadata": {"uid": "1"}, "status": status});
            RecordedInstance::from_status(&object, "cdb-1").requested()
        };
        assert_eq!(requested(&json!({})), Requested::Unknown);
        assert_eq!(requested(&json!({"completeFor": "2"})), Requested::Unknown);
        assert_eq!(requested(&json!({"completeFor": "1"})), Requested::Never);
        let located = json!({"completeFor": "1", "region": "eu-central-1"});
        assert_eq!(requested(&located), Requested::Located);
        let listed = json!({"instanceId": "cdb-1", "resourceId": "db-A"});
        assert_eq!(requested(&listed), Requested::Listed);
        let copied = json!({"completeFor": "1", "instanceId": "cdb-2"});
        assert_eq!(requested(&copied), Requested::Unknown);
    }

    #[test]
    fn region_and_account_are_read_from_the_arn() {
        let arn = "arn:aws:rds:eu-central-1:123456789012:db:cdb-1";
        let object = json!({"status": {"arn": arn}});
        let record = RecordedInstance::from_status(&object, "cdb-1");
        assert_eq!(record.region, Some("eu-central-1"));
        assert_eq!(record.account_id, Some("123456789012"));
    }
}

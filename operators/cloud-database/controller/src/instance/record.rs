//! Status of an object before a reconciliation: what it records of the instance and of the requests to RDS for it.

use std::ops::Deref;

use k8s_openapi::jiff::Timestamp;
use lockstep_cloud_database_api::CloudDatabaseStatus;
use lockstep_controller::read_status;
use serde_json::Value;

use crate::deletion::absence::{Deletion, Requested};

/// Status of an object before a reconciliation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    status: CloudDatabaseStatus,
    /// If true, the status has not been erased since nothing had been requested for the object.
    pub(crate) is_complete: bool,
}

impl Deref for Record {
    type Target = CloudDatabaseStatus;

    fn deref(&self) -> &CloudDatabaseStatus {
        &self.status
    }
}

#[cfg(test)]
impl From<CloudDatabaseStatus> for Record {
    fn from(status: CloudDatabaseStatus) -> Self {
        Self {
            status,
            is_complete: false,
        }
    }
}

impl Record {
    /// Reads the status of an object whose instance has an identifier. A status that was copied from another object, for
    /// example by a restore, records another instance and is ignored.
    pub(crate) fn from_object(object: &Value, id: &str) -> Self {
        let mut status: CloudDatabaseStatus = read_status(&object["status"]);
        for identity in [
            &mut status.instance_id,
            &mut status.arn,
            &mut status.resource_id,
            &mut status.region,
            &mut status.account_id,
        ] {
            identity.take_if(|text| text.is_empty());
        }
        if status
            .instance_id
            .as_deref()
            .is_some_and(|recorded| recorded != id)
        {
            return Self::default();
        }
        let uid = object["metadata"]["uid"].as_str();
        let is_complete = uid.is_some() && status.complete_for.as_deref() == uid;
        // `arn:PARTITION:rds:REGION:ACCOUNT:db:IDENTIFIER`
        let of_arn = |part: usize| {
            let part = status.arn.as_deref()?.split(':').nth(part)?;
            Some(part.to_owned()).filter(|part| !part.is_empty())
        };
        let (region, account_id) = (of_arn(3), of_arn(4));
        status.region = status.region.or(region);
        status.account_id = status.account_id.or(account_id);
        Self {
            status,
            is_complete,
        }
    }

    /// Returns the status after a reconciliation that has changed nothing yet.
    pub(crate) fn next(&self, id: &str) -> CloudDatabaseStatus {
        CloudDatabaseStatus {
            instance_id: Some(id.to_owned()),
            ..self.status.clone()
        }
    }

    /// Returns the ID of an instance that RDS has listed: its resource ID, or its identifier if an earlier release
    /// has not recorded the resource ID. Returns `None` if RDS has never listed the instance.
    pub(crate) fn listed_id(&self) -> Option<&str> {
        let identifier = self
            .instance_id
            .as_ref()
            .filter(|_| self.endpoint.is_some());
        self.resource_id.as_ref().or(identifier).map(String::as_str)
    }

    /// Returns the time at which RDS last accepted a change of the storage.
    pub(crate) fn storage_modified_at(&self) -> Option<Timestamp> {
        self.status.storage_modified_at.as_ref()?.parse().ok()
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
            Record::from_object(&object, "cdb-1").resource_id,
            Some("db-A".to_owned())
        );
        assert_eq!(Record::from_object(&object, "cdb-2"), Record::default());
    }

    #[test]
    fn an_instance_that_an_earlier_release_has_recorded_counts_as_listed() {
        let shown = |status: &Value| {
            let object = json!({"status": status});
            Record::from_object(&object, "cdb-1")
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
            Record::from_object(&object, "cdb-1").requested()
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
        let record = Record::from_object(&object, "cdb-1");
        assert_eq!(record.region.as_deref(), Some("eu-central-1"));
        assert_eq!(record.account_id.as_deref(), Some("123456789012"));
    }
}

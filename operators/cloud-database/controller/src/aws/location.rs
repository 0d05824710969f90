//! AWS region and account of this process, compared with those of an object's instance.

use lockstep_controller::ReconcileError;

use crate::aws::rds_events::event::InstanceKey;
use crate::instance::record::Record;

/// Region of an account. The identifier of an instance is valid only within it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Location {
    pub(crate) region: String,
    pub(crate) account_id: String,
}

impl Location {
    /// Returns the key of an instance here.
    pub(crate) fn instance(&self, id: &str) -> InstanceKey {
        InstanceKey {
            account_id: self.account_id.clone(),
            region: self.region.clone(),
            id: id.to_owned(),
        }
    }

    /// Returns an error if the instance of an object, if one was ever requested, is in another region or account.
    ///
    /// An instance that RDS does not find because it is elsewhere must neither be created again nor count as deleted.
    pub(crate) fn require(&self, id: &str, record: &Record) -> Result<(), ReconcileError> {
        let region = record.region.as_deref().unwrap_or(&self.region);
        let account_id = record.account_id.as_deref().unwrap_or(&self.account_id);
        let reason = if region != self.region {
            "RegionMismatch"
        } else if account_id != self.account_id {
            "AccountMismatch"
        } else {
            return Ok(());
        };
        Err(ReconcileError::Permanent {
            reason,
            message: format!(
                "the RDS instance '{id}' belongs to region {region} of account {account_id}, and this controller works in region {} of account {}; RDS was not called. Run the controller with the region and credentials of the instance. To delete the object and keep the instance, set `spec.deletionPolicy` to Retain",
                self.region, self.account_id
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_instance_elsewhere_is_reported_by_region_and_then_by_account() {
        let here = Location {
            region: "eu-central-1".to_owned(),
            account_id: "123456789012".to_owned(),
        };
        let reason = |status: serde_json::Value| {
            let object = json!({"status": status});
            match here.require("cdb-1", &Record::from_object(&object, "cdb-1")) {
                Err(ReconcileError::Permanent { reason, .. }) => Some(reason),
                _ => None,
            }
        };
        assert_eq!(reason(json!(null)), None, "not requested yet");
        let same = json!({"region": "eu-central-1", "accountId": "123456789012"});
        assert_eq!(reason(same), None);
        let region = json!({"region": "us-east-1", "accountId": "123456789012"});
        assert_eq!(reason(region), Some("RegionMismatch"));
        let account = json!({"region": "eu-central-1", "accountId": "210987654321"});
        assert_eq!(reason(account), Some("AccountMismatch"));
    }
}

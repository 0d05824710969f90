//! Status fields that record what an object's instance is and what was asked of RDS for it.

use cloud_database_rules::DeletionRequest;
use serde::Deserialize;
use serde_json::Value;

/// The recorded fields of an object. Read one by one, so that one that cannot be read does not hide the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    /// Recorded before RDS was first asked for anything.
    pub(crate) instance_id: Option<&'a str>,
    /// Recorded once RDS has shown the instance.
    pub(crate) arn: Option<&'a str>,
    /// Recorded with the ARN.
    pub(crate) resource_id: Option<&'a str>,
    pub(crate) region: Option<&'a str>,
    pub(crate) account_id: Option<&'a str>,
    pub(crate) enforced_fields: Vec<&'a str>,
    pub(crate) deletion_request: Option<DeletionRequest>,
}

impl<'a> Record<'a> {
    pub(crate) fn of(object: &'a Value) -> Self {
        let status = &object["status"];
        let text = |field: &str| status[field].as_str().filter(|text| !text.is_empty());
        let enforced = status["enforcedFields"].as_array().into_iter().flatten();
        Self {
            instance_id: text("instanceId"),
            arn: text("arn"),
            resource_id: text("resourceId"),
            region: text("region"),
            account_id: text("accountId"),
            enforced_fields: enforced.filter_map(Value::as_str).collect(),
            deletion_request: DeletionRequest::deserialize(&status["deletionRequest"]).ok(),
        }
    }
}

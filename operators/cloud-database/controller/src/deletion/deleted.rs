//! Object that is being deleted, with what its status records.

use lockstep_cloud_database_api::DeletionPolicy;
use lockstep_controller::FinalizeRequest;
use serde_json::Value;

use crate::deletion::deletion_policy;
use crate::instance::identity::Identity;
use crate::instance::record::Record;

/// Object that is being deleted.
pub(crate) struct Deleted<'a> {
    pub(crate) request: &'a FinalizeRequest<'a>,
    pub(crate) identity: &'a Identity,
    /// Status before this step.
    pub(crate) record: &'a Record,
    pub(crate) policy: DeletionPolicy,
}

impl<'a> Deleted<'a> {
    pub(crate) fn new(
        request: &'a FinalizeRequest<'a>,
        identity: &'a Identity,
        record: &'a Record,
    ) -> Self {
        Self {
            request,
            identity,
            record,
            policy: deletion_policy::safer_policy(request),
        }
    }

    pub(crate) fn id(&self) -> &'a str {
        &self.identity.id
    }

    pub(crate) fn uid(&self) -> Option<&'a str> {
        let uid = self.request.object.pointer("/metadata/uid");
        uid.and_then(Value::as_str)
    }
}

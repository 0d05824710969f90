//! Tags. Their change is not found here: the controller has tags of its own beside those of the spec.

use std::collections::BTreeMap;

use lockstep_cloud_database_api::CloudDatabaseSpec;

use crate::aws::rds_client::request::Request;
use crate::settings::setting::{Call, Setting};

pub(crate) struct Tags;

/// Tags to add or change, and keys of those to remove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TagChange {
    pub(crate) set: BTreeMap<String, String>,
    pub(crate) removed: Vec<String>,
}

impl Setting for Tags {
    type Value = TagChange;
    const FIELD: &'static str = "tags";
    const CALL: Call = Call::Tags;

    fn desired(_: &CloudDatabaseSpec) -> Option<TagChange> {
        None
    }

    /// They have calls of their own.
    fn put(_: &TagChange, request: Request) -> Request {
        request
    }
}

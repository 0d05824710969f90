//! Instance as RDS describes it, beside its object.

use std::collections::BTreeMap;

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::{
    ApplyChanges, CloudDatabase, CloudDatabaseSpec, ManagementPolicy,
};
use lockstep_controller::ReconcileError;

use crate::credentials::master_user::MasterUser;
use crate::instance::instance_status::{self, Accepts, Meaning};
use crate::instance::record::Record;
use crate::instance::{applied_values, drift};
use crate::settings::TagChange;

/// Instance that RDS lists, beside what its object says of it.
#[derive(Clone, Copy)]
pub(crate) struct Described<'a> {
    pub(crate) id: &'a str,
    pub(crate) object: &'a CloudDatabase,
    pub(crate) instance: &'a DbInstance,
    /// Status before the reconciliation.
    pub(crate) record: &'a Record,
    /// Master user that the instance is to have.
    pub(crate) user: &'a Result<MasterUser, ReconcileError>,
}

impl<'a> Described<'a> {
    pub(crate) fn spec(&self) -> &'a CloudDatabaseSpec {
        &self.object.spec
    }

    /// Returns true if the instance is only observed.
    pub(crate) fn is_observed(&self) -> bool {
        is_observed(self.object)
    }

    /// Returns what the status of the instance means.
    pub(crate) fn meaning(&self) -> Meaning {
        meaning_of(self.instance)
    }

    /// Returns the tags to add, to correct and to remove, so that the instance has the expected ones.
    pub(crate) fn tags_to_change(&self, expected: BTreeMap<String, String>) -> Option<TagChange> {
        let before = &self.record.applied_tags;
        let change = TagChange {
            removed: applied_values::removed_tags(&expected, self.instance, before),
            set: drift::missing_tags(expected, self.instance.tag_list()),
        };
        (change != TagChange::default()).then_some(change)
    }

    /// Returns when RDS is to apply changes. Full storage does not wait for the maintenance window.
    pub(crate) fn time_of_changes(&self) -> ApplyChanges {
        match self.meaning().accepts {
            Accepts::OnlyStorage => ApplyChanges::Immediately,
            _ => self.spec().apply_changes,
        }
    }
}

pub(crate) fn meaning_of(instance: &DbInstance) -> Meaning {
    instance_status::meaning(instance.db_instance_status().unwrap_or_default())
}

/// Returns true if the instance of an object is only observed.
pub(crate) fn is_observed(object: &CloudDatabase) -> bool {
    object.spec.management_policy == ManagementPolicy::Observe
}

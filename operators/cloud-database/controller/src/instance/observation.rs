//! Comparison of an instance that is only observed: what differs from the spec is reported, and nothing is requested.

use aws_sdk_rds::types::DbInstance;
use kube::ResourceExt;
use lockstep_cloud_database_api::{CloudDatabase, CloudDatabaseStatus};

use crate::credentials::master_user::{MasterPassword, MasterUser};
use crate::instance::described::Described;
use crate::instance::drift;
use crate::instance::instance_reconciler::InstanceReconciler;
use crate::instance::modification::outcomes::{Outcome, Outcomes};
use crate::instance::record::Record;
use crate::instance::tags;
use crate::origin::adoption;
use crate::origin::replication::Replication;
use crate::settings::{self, Password, PasswordChange, Tags};

impl InstanceReconciler {
    /// Adds what would be requested if the instance were managed, and what could not be changed then.
    pub(crate) fn observe(
        &self,
        described: &Described<'_>,
        status: &mut CloudDatabaseStatus,
        outcomes: &mut Outcomes,
    ) {
        let Described {
            id,
            object,
            instance,
            record,
            user,
        } = *described;
        if let Some(version) = self.credentials_version(id, object, instance, record) {
            status.credentials_version = Some(version);
        }
        outcomes.set_observed();
        let spec = &object.spec;
        let enforced = drift::enforced(spec, instance, &record.enforced_fields);
        let when = spec.apply_changes;
        let mut change = drift::between(spec, when, instance, &enforced, record);
        match user {
            Ok(user) => {
                outcomes.add_differences(drift::of_master_user(user, instance));
                change.set::<Password>(self.other_password(id, object, user, instance, record));
            }
            Err(error) => outcomes.add_differences([format!(
                "the password of the master user is unknown: {error}"
            )]),
        }
        outcomes.add_not_allowed(settings::not_allowed(spec, instance));
        outcomes.add_waiting_for_restart(settings::waiting_for_restart(spec, instance));
        match Replication::of(object, instance, record.replica_of.as_deref()) {
            Replication::ToPromote(_) | Replication::Promoted => {
                outcomes.add(&["replicaOf"], Outcome::Observed);
            }
            Replication::Replica(_) | Replication::Adopted(_) => change.set::<Password>(None),
            unnamed @ Replication::Unnamed(_) => {
                outcomes.add_differences(unnamed.difference(true));
                change.set::<Password>(None);
            }
            Replication::None => {}
        }
        let is_owned = tags::is_owned_by(instance, object.uid().as_deref());
        // The tags that identify the owner are added at the adoption, and no difference.
        let expected = if is_owned {
            tags::managed_tags(object, self.rds.cluster_name())
        } else {
            spec.tags.clone()
        };
        change.set::<Tags>(described.tags_to_change(expected));
        for group in change.groups() {
            outcomes.add(&group.fields(), Outcome::Observed);
        }
        outcomes.add_differences(drift::unrepairable(spec, instance, &enforced));
        if !is_owned {
            add_obstacles_to_adoption(object, instance, outcomes);
        }
    }

    /// Returns the change of the password that would be requested.
    fn other_password(
        &self,
        id: &str,
        object: &CloudDatabase,
        user: &MasterUser,
        instance: &DbInstance,
        record: &Record,
    ) -> Option<PasswordChange> {
        if matches!(user.password, MasterPassword::NotStored) {
            // It is generated and set as soon as the instance is managed.
            return Some(PasswordChange::Set(String::new()));
        }
        let mut version = self.credentials_version(id, object, instance, record);
        self.password_change(id, &user.password, instance, record, &mut version)
    }
}

/// Adds what keeps the object from taking over an instance that is not its own.
fn add_obstacles_to_adoption(
    object: &CloudDatabase,
    instance: &DbInstance,
    outcomes: &mut Outcomes,
) {
    let immutable = drift::immutable(&object.spec, instance);
    let conflicts = adoption::conflicts(&object.spec, instance).into_iter();
    outcomes.add_differences(conflicts.filter(|conflict| !immutable.contains(conflict)));
    let owner = tags::has_owner(instance).then(|| tags::owner(instance));
    outcomes.add_differences(owner.map(|owner| format!("it belongs to another object ({owner})")));
}

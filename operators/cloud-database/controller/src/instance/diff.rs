//! Differences between an instance and its object: the changes to request, and what no request can change.

use kube::ResourceExt;
use lockstep_cloud_database_api::ApplyChanges;
use lockstep_cloud_database_api::effects::effect_of;
use lockstep_controller::ReconcileError;

use crate::credentials::connection_secret::Published;
use crate::credentials::master_password::{
    ComparedUser, accepts_password, is_changing_password, is_noted, is_unknown_password,
    published_by,
};
use crate::instance::described::Described;
use crate::instance::instance_reconciler::InstanceReconciler;
use crate::instance::modification::Modification;
use crate::instance::modification::outcomes::{Outcome, Outcomes, PendingChange};
use crate::instance::{circumstances, drift, tags};
use crate::origin::replication::Replication;
use crate::settings::{self, Password, Tags};

/// Differences between an instance and its object.
pub(crate) struct Diff<'a> {
    /// Fields with a secure default that are enforced.
    pub(crate) enforced: Vec<&'static str>,
    /// Time at which RDS is to apply the changes.
    pub(crate) when: ApplyChanges,
    /// Changes to request.
    pub(crate) change: Modification,
    pub(crate) replication: Replication<'a>,
    /// Version of the credentials that the instance has, as far as it is known.
    pub(crate) credentials_version: Option<String>,
    /// If true, the status is to say that the instance may have another password, before that is requested.
    pub(crate) notes_password: bool,
    /// Password that the instance has, or where it is. None while RDS is changing it.
    pub(crate) published: Option<Published>,
}

impl Diff<'_> {
    /// Leaves changes of the storage out that would exceed a quota, or of which that is not known.
    pub(crate) fn hold_storage(
        &mut self,
        exceeded: Result<Option<String>, ReconcileError>,
        outcomes: &mut Outcomes,
    ) {
        let outcome = match exceeded {
            Ok(None) => return,
            Ok(Some(problem)) => Outcome::OverQuota(problem),
            Err(error) => Outcome::Failed(error.to_string()),
        };
        let [access, storage, rest, tags] = self.change.requests();
        if !storage.is_empty() {
            outcomes.add(&storage.fields(), outcome);
            self.change = Modification::from_parts([access, rest, tags]);
        }
    }
}

impl InstanceReconciler {
    /// Compares an instance with its object. What no request can change is reported.
    pub(crate) fn diff<'a>(&self, described: &Described<'a>, outcomes: &mut Outcomes) -> Diff<'a> {
        let Described {
            id,
            object,
            instance,
            record,
            user,
        } = *described;
        let spec = described.spec();
        let enforced = drift::enforced(spec, instance, &record.enforced_fields);
        let when = described.time_of_changes();
        let mut change = drift::between(spec, when, instance, &enforced, record);
        outcomes.add_differences(drift::unrepairable(spec, instance, &enforced));
        outcomes.add_not_allowed(settings::not_allowed(spec, instance));
        outcomes.add_waiting_for_restart(settings::waiting_for_restart(spec, instance));
        let version = self.credentials_version(id, object, instance, record);
        let replication = Replication::of(object, instance, record.replica_of.as_deref());
        let ComparedUser {
            differences,
            password,
            version,
        } = self.compare_user(id, user, instance, record, &replication, version);
        outcomes.add_differences(differences);
        let is_noted = user
            .as_ref()
            .is_ok_and(|user| is_noted(&user.password, record));
        let notes_password =
            password.is_some() && !is_noted && accepts_password(&described.meaning());
        change.set::<Password>(password);
        let expected = tags::managed_tags(object, self.rds.cluster_name());
        change.set::<Tags>(described.tags_to_change(expected));
        let is_settled = !change.has::<Password>()
            && !is_changing_password(instance)
            && !is_unknown_password(spec, &replication);
        let published = user.as_ref().ok().filter(|_| is_settled);
        let published = published.and_then(|user| published_by(&user.password, instance));
        let pending = pending_of_spec(described, when, &change);
        let window = Some(instance.preferred_maintenance_window().unwrap_or_default());
        let window = window.filter(|_| spec.apply_changes == ApplyChanges::MaintenanceWindow);
        outcomes.add_pending(pending, window);
        Diff {
            enforced,
            when,
            change,
            replication,
            credentials_version: version,
            notes_password,
            published,
        }
    }

    /// Returns true if a description leads to no request, and shows the recorded status.
    pub(crate) fn is_confirmed(&self, described: &Described<'_>) -> bool {
        let Described {
            instance, record, ..
        } = *described;
        let is_same = instance.db_instance_status() == record.phase.as_deref()
            && instance.dbi_resource_id() == record.resource_id.as_deref();
        if !is_same || described.is_observed() {
            return is_same;
        }
        let diff = self.diff(described, &mut Outcomes::default());
        tags::is_owned_by(instance, described.object.uid().as_deref())
            && !matches!(diff.replication, Replication::ToPromote(_))
            && diff.change.is_empty()
    }
}

/// Returns the changes of the spec that RDS has accepted and not applied yet, but for those that are requested now.
fn pending_of_spec(
    described: &Described<'_>,
    when: ApplyChanges,
    change: &Modification,
) -> Vec<PendingChange> {
    let (spec, instance) = (described.spec(), described.instance);
    let requested = change.fields();
    let mut pending = drift::pending(instance);
    pending.retain(|field| !requested.contains(&field.as_str()) && drift::is_of_spec(spec, field));
    if pending.is_empty() {
        return Vec::new();
    }
    let circumstances = circumstances::of(spec, when, instance, change);
    let pending = pending.into_iter().map(|field| {
        let effect = effect_of(&field, when, &circumstances).map(|effect| effect.effect);
        PendingChange {
            effect: effect.filter(|effect| effect.is_applied()),
            field,
        }
    });
    pending.collect()
}

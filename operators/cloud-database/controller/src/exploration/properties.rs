//! Properties of each step and of each state.

use lockstep_cloud_database_api::{ApplyChanges, CloudDatabaseSpec, DeletionPolicy};

use crate::exploration::rds::{Disruption, Effect, Instance, Phase};
use crate::exploration::scenarios::BACKUP;
use crate::exploration::world::{Step, World};

/// Returns the first property that a step has broken.
pub(super) fn broken(before: &World, step: &Step, after: &World) -> Option<String> {
    let effects = after.effects.iter();
    let of_step = matches!(step, Step::Reconcile(_));
    effects
        .filter(|_| of_step)
        .find_map(|effect| by_effect(before, after, effect))
        .or_else(|| of_end(before, after))
        .or_else(|| of_state(after))
        .or_else(|| of_report(before, step, after))
}

fn owned(world: &World) -> impl Iterator<Item = &Instance> {
    let instances = world.rds.instances.iter();
    instances.filter(|instance| instance.owner.as_deref() == Some(world.uid))
}

/// Each change by a call must be what the object says.
fn by_effect(before: &World, after: &World, effect: &Effect) -> Option<String> {
    let object = before.spec()?;
    let spec = &object.spec;
    let changed = effect.changed().and_then(|id| before.rds.instance(id));
    let owner = changed.and_then(|instance| instance.owner.as_deref());
    if let Some(owner) = owner.filter(|owner| *owner != before.uid) {
        return Some(format!("the instance of '{owner}' is changed"));
    }
    match effect {
        Effect::Create(instance) => by_creation(before, spec, instance),
        Effect::Modify {
            change,
            is_immediate,
            is_protected,
            password,
            ..
        } => {
            let is_own = |password: &String| before.has_secret && password == before.password();
            if !password.as_ref().is_none_or(is_own) {
                return Some("an instance gets a password that is not in the Secret".into());
            }
            if *is_protected == Some(false) && spec.deletion_protection != Some(false) {
                return Some("the deletion protection is removed without consent".into());
            }
            by_change(before, after, change, *is_immediate)
        }
        Effect::Delete { final_snapshot, .. } => {
            if !before.is_deleting() {
                return Some("an instance is deleted although its object is not".into());
            }
            match spec.deletion_policy {
                DeletionPolicy::Retain => {
                    Some("an instance is deleted that is to be retained".into())
                }
                DeletionPolicy::Snapshot if final_snapshot.is_none() => {
                    Some("an instance is deleted without its final snapshot".into())
                }
                _ => None,
            }
        }
        Effect::Promote { .. } => {
            let recorded = before.object.as_ref()?.pointer("/status/replicaOf");
            (before.is_deleting() || spec.replica_of.is_some() || recorded.is_none())
                .then(|| "a replica is promoted without consent".into())
        }
        Effect::Tag { .. } | Effect::TagSnapshot { .. } => None,
        Effect::Untag { .. } => (!before.is_deleting())
            .then(|| "the owner of an instance is removed although its object exists".into()),
    }
}

fn by_creation(before: &World, spec: &CloudDatabaseSpec, instance: &Instance) -> Option<String> {
    if before.is_deleting() {
        return Some("an instance is created for an object that is being deleted".into());
    }
    let listed = before.object.as_ref()?.pointer("/status/resourceId");
    if listed.is_some_and(|id| id.is_string()) {
        return Some("an empty instance takes the place of one that is missing".into());
    }
    let is_twin =
        |other: &Instance| other.object == instance.object && other.phase != Phase::Deleting;
    if before.rds.instances.iter().any(is_twin) {
        return Some("an empty instance is created beside that of an earlier object".into());
    }
    if instance.is_public && !spec.network.publicly_accessible {
        return Some("an instance is created that is public against the spec".into());
    }
    (!instance.is_encrypted && spec.encryption.enabled)
        .then(|| "an instance is created that is not encrypted against the spec".into())
}

fn by_change(
    before: &World,
    after: &World,
    change: &Disruption,
    is_immediate: bool,
) -> Option<String> {
    if *change == Disruption::default() {
        return None;
    }
    let object = before.spec()?;
    let spec = &object.spec;
    let other = |changed: Option<&String>, wanted: Option<&str>| {
        changed.is_some() && changed.map(String::as_str) != wanted
    };
    if other(change.class.as_ref(), Some(&spec.instance_class))
        || other(change.version.as_ref(), spec.engine_version.as_deref())
    {
        return Some("a change is requested that the spec does not demand".into());
    }
    if before.is_deleting() {
        return Some("an instance of a deleted object is interrupted".into());
    }
    if is_immediate && spec.apply_changes != ApplyChanges::Immediately {
        return Some("clients are interrupted before the maintenance window".into());
    }
    (after.disruptions > 1 && !after.has_lost_status)
        .then(|| "a change that interrupts clients is made twice for one consent".into())
}

/// An object goes only with its instance, or with a report.
fn of_end(before: &World, after: &World) -> Option<String> {
    if before.object.is_none() || after.object.is_some() || after.retained.is_some() {
        return None;
    }
    let object = before.spec()?;
    let has_snapshot = after
        .rds
        .snapshots
        .iter()
        .any(|snapshot| snapshot.name != BACKUP);
    if object.spec.deletion_policy == DeletionPolicy::Snapshot
        && after.rds.created_for.contains(after.uid)
        && !has_snapshot
        && owned(after).next().is_none()
    {
        return Some(
            "the object and its data are gone without a snapshot and without a report".into(),
        );
    }
    let creates = |effect: &Effect| matches!(effect, Effect::Create(instance) if instance.owner.as_deref() == Some(after.uid));
    if owned(after).any(|instance| instance.phase != Phase::Deleting) {
        return Some("the object is gone, and its instance is not, without a report".into());
    }
    after
        .rds
        .late
        .iter()
        .any(creates)
        .then(|| "the object is gone, and its instance will be created, without a report".into())
}

fn of_state(after: &World) -> Option<String> {
    if owned(after).count() > 1 {
        return Some("the object has two instances".into());
    }
    None
}

/// The conditions tell the truth, unless an answer was wrong.
fn of_report(before: &World, step: &Step, after: &World) -> Option<String> {
    let Step::Reconcile(answers) = step else {
        return None;
    };
    let is_regular = answers.iter().all(|answer| *answer == 0);
    if !is_regular || !before.rds.late.is_empty() || after.is_deleting() {
        return None;
    }
    let object = after.spec()?;
    let instance = owned(after).next();
    if after.told.is_ready
        && instance.is_none_or(|found| matches!(found.phase, Phase::Creating | Phase::Deleting))
    {
        return Some("the object is Ready without an instance that serves".into());
    }
    let matches_spec = |instance: &Instance| {
        instance.class == object.spec.instance_class
            && object.spec.engine_version.as_ref() == Some(&instance.version)
            && instance.is_public == object.spec.network.publicly_accessible
            && instance.source.is_some() == object.spec.replica_of.is_some()
            && (instance.password == after.password() || may_have_another_password(after, instance))
    };
    (after.told.is_synced && !instance.is_some_and(matches_spec))
        .then(|| "the object is Synced, and its instance does not match the spec".into())
}

/// A replica has the password of its source. An adopted instance keeps its own until the Secret is seen to change.
fn may_have_another_password(world: &World, instance: &Instance) -> bool {
    let is_adopted = !world.rds.created_for.contains(world.uid);
    instance.source.is_some() || !world.has_secret || (is_adopted && world.has_lost_status)
}

/// Returns what is wrong at the end of a time without faults, in which RDS has carried out these effects.
pub(super) fn at_rest(world: &World, effects: &[Vec<Effect>]) -> Option<String> {
    let last = effects.len() / 2;
    if effects[last..].iter().any(|effects| !effects.is_empty()) {
        return Some("calls are repeated for ever".into());
    }
    world.object.as_ref()?;
    let told = &world.told;
    if told.is_stalled {
        return told
            .problem
            .is_none()
            .then(|| "a person must act, and nothing says why".into());
    }
    if world.is_deleting() {
        return Some("the deletion neither ends nor says why it does not".into());
    }
    let is_replica = owned(world).any(|instance| instance.source.is_some());
    let replicates = world.spec()?.spec.replica_of.is_some();
    if is_replica && !replicates && !world.has_lost_status {
        return Some("a replica that is to be promoted stays one".into());
    }
    // The instance was created with what only its users can change.
    let is_told = told.is_synced || told.synced == "Different";
    (!(told.is_ready && is_told)).then(|| {
        format!("the object is neither as desired nor says what a person must do: {told:?}")
    })
}

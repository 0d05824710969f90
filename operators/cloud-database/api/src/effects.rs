//! Effects of changes on a running instance, known before they are requested: whether clients are interrupted, and when.
//!
//! The table is that of [Settings for DB instances] in the RDS User Guide, and of the parameters of `ModifyDBInstance`.
//!
//! [Settings for DB instances]: https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_ModifyInstance.Settings.html

mod effect;
mod table;

use serde_json::Value;

use crate::spec::{ApplyChanges, CloudDatabaseSpec};

pub use effect::{Effect, Timing};
pub use table::{Circumstance, Exception, SETTINGS, Setting, WITHOUT_EFFECT};

/// Fields whose default depends on the engine.
const DEFAULTED: [&str; 2] = ["engineVersion", "port"];

/// Effect of the change of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeEffect {
    /// Field of the spec, without `spec.`.
    pub field: &'static str,
    /// Effect on clients.
    pub effect: Effect,
    /// Time of the effect.
    pub timing: Timing,
    /// Time that the spec demands.
    pub apply_changes: ApplyChanges,
    /// Reason, for an exception.
    pub reason: &'static str,
}

impl ChangeEffect {
    /// Returns when RDS applies the change and what that does to clients, such as
    /// `in the maintenance window, with a restart of the database`.
    #[must_use]
    pub fn words(&self) -> String {
        let when = match (self.timing, self.apply_changes) {
            (Timing::NextRestart, _) => {
                return "at the next restart of the database, which is not requested".to_owned();
            }
            (Timing::Now, _) | (Timing::AsApplyChanges, ApplyChanges::Immediately) => "now",
            (Timing::AsApplyChanges, ApplyChanges::MaintenanceWindow) => {
                "in the maintenance window"
            }
        };
        let possibly = match self.reason {
            "" => String::new(),
            reason => format!(" ({reason})"),
        };
        format!("{when}, {}{possibly}", self.effect.words())
    }
}

/// Returns the effect of the change of one field, in these circumstances, or `None` if the field has none.
#[must_use]
pub fn effect_of(
    field: &str,
    apply_changes: ApplyChanges,
    circumstances: &[Circumstance],
) -> Option<ChangeEffect> {
    let setting = SETTINGS.iter().find(|it| it.field == field)?;
    let mut exceptions = setting.exceptions.iter();
    let exception = exceptions.find(|it| circumstances.contains(&it.circumstance));
    let (effect, timing) = exception.map_or((setting.effect, setting.timing), |it| {
        (it.effect, it.timing)
    });
    let reason = match exception {
        Some(exception) => exception.reason,
        None => setting.reason,
    };
    Some(ChangeEffect {
        field: setting.field,
        effect,
        timing,
        apply_changes,
        reason,
    })
}

/// Returns the effects of a change of the spec, for each changed field in the order of the table. A field that is
/// removed is left alone, except for those of the storage.
#[must_use]
pub fn effects(old: &CloudDatabaseSpec, new: &CloudDatabaseSpec) -> Vec<ChangeEffect> {
    let circumstances = circumstances(old, new);
    let json = |spec: &CloudDatabaseSpec| serde_json::to_value(spec).unwrap_or_default();
    let (before, after) = (json(old), json(new));
    let changed = SETTINGS.iter().filter(|setting| {
        let (before, after) = (
            value_at(&before, setting.field),
            value_at(&after, setting.field),
        );
        // A default is filled where an old object has no value.
        if before.is_none() && DEFAULTED.contains(&setting.field) {
            return false;
        }
        let is_left_alone = after.is_none() && !setting.field.starts_with("storage.");
        let is_denied = setting.effect == Effect::Denied;
        before != after && (is_denied || !is_left_alone || REMOVABLE.contains(&setting.field))
    });
    let effects = changed.filter_map(|it| effect_of(it.field, new.apply_changes, &circumstances));
    effects.collect()
}

/// Returns the value of a field of the spec, such as `storage.sizeGib`.
fn value_at<'a>(spec: &'a Value, field: &str) -> Option<&'a Value> {
    field
        .split('.')
        .try_fold(spec, |value, name| value.get(name))
}

/// Fields whose removal is a change.
const REMOVABLE: [&str; 2] = ["replicaOf", "tags"];

/// Returns the circumstances of a change of the spec.
fn circumstances(old: &CloudDatabaseSpec, new: &CloudDatabaseSpec) -> Vec<Circumstance> {
    let insights = |spec: &CloudDatabaseSpec| {
        let monitoring = spec.monitoring.as_ref();
        let insights = monitoring.and_then(|it| it.performance_insights.as_ref());
        insights.is_some_and(|it| it.enabled)
    };
    let days = (old.backup.retention_days, new.backup.retention_days);
    let (from, to) = (old.engine_version.as_deref(), new.engine_version.as_deref());
    let version = to.unwrap_or_default();
    let is_allowed = |spec: &CloudDatabaseSpec| spec.allows_major_version(version);
    let is_major = from.is_some_and(|from| new.engine.is_major_upgrade(from, version));
    let is_lower = from.is_some_and(|from| crate::compare_versions(version, from).is_lt());
    let is_requested = !is_major || is_allowed(new);
    let restarts = from != to && is_requested || old.instance_class != new.instance_class;
    let all = [
        (Circumstance::MultiAz, old.multi_az == Some(true)),
        (
            Circumstance::InMaintenanceWindow,
            new.apply_changes == ApplyChanges::MaintenanceWindow,
        ),
        (
            Circumstance::BackupsToggled,
            match days {
                (Some(before), Some(after)) => (before == 0) != (after == 0),
                (None, after) => after == Some(0),
                (Some(_), None) => false,
            },
        ),
        (
            Circumstance::StorageShrinks,
            new.storage.size_gib < old.storage.size_gib,
        ),
        (Circumstance::VersionFalls, is_lower),
        (
            Circumstance::UpgradeNotAllowed,
            is_major && !is_allowed(new),
        ),
        (
            Circumstance::UpgradeAllowed,
            is_allowed(new) && !is_allowed(old),
        ),
        (
            Circumstance::AutomaticUpgradesEnabled,
            new.lets_rds_upgrade(),
        ),
        (Circumstance::RestartsAnyway, restarts),
        (
            Circumstance::OptionsCanRestart,
            new.engine != crate::Engine::Postgres,
        ),
        (
            Circumstance::InsightsEnabled,
            insights(old) && insights(new),
        ),
    ];
    let all = all.into_iter().filter(|(_, applies)| *applies);
    all.map(|(circumstance, _)| circumstance).collect()
}

#[cfg(test)]
mod tests;

//! Circumstances on which the effects of a change of an instance depend.

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::effects::Circumstance;
use lockstep_cloud_database_api::{ApplyChanges, CloudDatabaseSpec, Engine};

use crate::instance::modification::Modification;
use crate::settings::{AutoMinorVersionUpgrade, EngineVersion, InstanceClass};

/// Returns the circumstances of changes to an instance, as RDS describes it.
pub(crate) fn of(
    spec: &CloudDatabaseSpec,
    when: ApplyChanges,
    instance: &DbInstance,
    change: &Modification,
) -> Vec<Circumstance> {
    let days = instance.backup_retention_period().unwrap_or_default();
    let wanted = spec.backup.retention_days.unwrap_or(days);
    let restarts = change.has::<EngineVersion>() || change.has::<InstanceClass>();
    let all = [
        (Circumstance::MultiAz, instance.multi_az() == Some(true)),
        (
            Circumstance::InMaintenanceWindow,
            when == ApplyChanges::MaintenanceWindow,
        ),
        (Circumstance::BackupsToggled, (days == 0) != (wanted == 0)),
        (
            Circumstance::AutomaticUpgradesEnabled,
            change.get::<AutoMinorVersionUpgrade>() == Some(&true),
        ),
        (
            Circumstance::MagneticStorage,
            instance.storage_type() == Some("standard"),
        ),
        (Circumstance::RestartsAnyway, restarts),
        (
            Circumstance::OptionsCanRestart,
            spec.engine != Engine::Postgres,
        ),
    ];
    let all = all.into_iter().filter(|(_, applies)| *applies);
    all.map(|(circumstance, _)| circumstance).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn automatic_upgrades_that_become_enabled_are_a_circumstance() {
        let spec = serde_json::from_value(json!({
            "engine": "postgres", "instanceClass": "db.t4g.micro", "storage": {"sizeGib": 20},
            "credentials": {"username": "app", "secretName": "s"},
        }))
        .expect("a spec");
        let instance = DbInstance::builder().build();
        for enabled in [true, false] {
            let change = Modification::with::<AutoMinorVersionUpgrade>(enabled);
            let found = of(&spec, ApplyChanges::Immediately, &instance, &change);
            let expected = enabled.then_some(Circumstance::AutomaticUpgradesEnabled);
            assert_eq!(found, Vec::from_iter(expected));
        }
    }
}

//! Settings that a modification names, and those of them that differ from the settings in force.

use serde_json::Value;

use crate::fields::Fields;
use crate::rules::storage;
use crate::state::instance::Instance;
use crate::state::resources::family;

/// Parameters that control the operation and are no settings.
const CONTROL: &[&str] = &[
    "AllowMajorVersionUpgrade",
    "ApplyImmediately",
    "CertificateRotationRestart",
    "DBInstanceIdentifier",
    "TagSpecifications",
];

/// Parameters with another name than in `CreateDBInstance`.
const RENAMED: &[(&str, &str)] = &[("DBPortNumber", "Port")];

/// Returns the settings that a request names, with the names that they have in `CreateDBInstance`.
pub(super) fn settings(instance: &Instance, parameters: &Fields) -> Fields {
    let mut requested = parameters.clone();
    requested.split_off(CONTROL);
    for (from, to) in RENAMED {
        if let Some(value) = requested.take(from) {
            requested.set(to, value);
        }
    }
    if let Some(exports) = requested.take("CloudwatchLogsExportConfiguration") {
        let names = |list: &str| -> Vec<String> {
            let names = exports[list].as_array().into_iter().flatten();
            names.filter_map(Value::as_str).map(String::from).collect()
        };
        let disabled = names("DisableLogTypes");
        let active = instance.settings.texts("EnableCloudwatchLogsExports");
        let mut active: Vec<_> = active.into_iter().map(String::from).collect();
        active.retain(|kind| !disabled.contains(kind));
        for kind in names("EnableLogTypes") {
            if !active.contains(&kind) {
                active.push(kind);
            }
        }
        requested.set("EnableCloudwatchLogsExports", active);
    }
    if let Some(name) = requested.given_text("NewDBInstanceIdentifier") {
        let name = name.to_ascii_lowercase();
        if name == instance.id() {
            requested.take("NewDBInstanceIdentifier");
        } else {
            requested.set("NewDBInstanceIdentifier", name);
        }
    }
    requested
}

/// Returns the settings that differ from those in force, and the names of pending modifications that the request takes
/// back because it names the values in force.
pub(super) fn differing(instance: &Instance, requested: &Fields) -> (Fields, Vec<&'static str>) {
    let mut changed = requested.clone();
    let mut cancelled = Vec::new();
    for name in requested.names() {
        if is_in_force(instance, name, requested) {
            changed.take(name);
            let waits = storage::PARAMETERS.iter().chain(IN_WINDOW);
            cancelled.extend(waits.filter(|it| **it == name).copied());
        }
    }
    (changed, cancelled)
}

/// Returns true if a request names the value that is in force.
fn is_in_force(instance: &Instance, name: &str, requested: &Fields) -> bool {
    let settings = &instance.settings;
    let sorted = |fields: &Fields| {
        let mut texts = fields
            .texts(name)
            .into_iter()
            .map(String::from)
            .collect::<Vec<_>>();
        texts.sort();
        texts
    };
    match name {
        "EnableCloudwatchLogsExports" | "VpcSecurityGroupIds" => {
            sorted(requested) == sorted(settings)
        }
        "RotateMasterUserPassword" => !requested.flag(name),
        "DBParameterGroupName" if !settings.has(name) => {
            requested.text(name) == format!("default.{}", family(settings))
        }
        "DBSubnetGroupName" if !settings.has(name) => requested.text(name) == "default",
        _ => requested.get(name) == settings.get(name),
    }
}

/// Settings that can wait for the maintenance window, apart from storage.
const IN_WINDOW: &[&str] = &[
    "BackupRetentionPeriod",
    "CACertificateIdentifier",
    "DBInstanceClass",
    "DBSubnetGroupName",
    "DedicatedLogVolume",
    "EnableIAMDatabaseAuthentication",
    "EngineVersion",
    "LicenseModel",
    "MultiAZ",
    "OptionGroupName",
];

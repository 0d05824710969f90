use lockstep_cloud_database_api::ApplyChanges;
use lockstep_cloud_database_api::effects::{Effect, SETTINGS as SETTINGS_OF_SPEC, effect_of};
use serde_json::json;

use super::*;
use crate::instance::drift::example;
use crate::settings::{EngineVersion, Password, PasswordChange, SETTINGS, TagChange, Tags};

/// Returns a change of each setting.
fn everything() -> Modification {
    let mut all = example::changes(&example::everything(), true);
    all.set::<Password>(Some(PasswordChange::Set("secret".to_owned())));
    all.set::<Tags>(Some(TagChange::default()));
    all
}

#[test]
fn groups_and_requests_have_each_field_once() {
    let all = everything();
    let table = SETTINGS.map(|row| row.field());
    assert_eq!(
        all.fields(),
        table,
        "each setting, in the order of the table"
    );
    let sorted = |parts: &[Modification]| {
        let mut fields: Vec<_> = parts.iter().flat_map(Modification::fields).collect();
        fields.sort_unstable();
        fields
    };
    let expected = sorted(std::slice::from_ref(&all));
    let groups = all.groups();
    assert_eq!(sorted(&groups), expected);
    assert_eq!(sorted(&all.requests()), expected);
    assert!(Modification::from_parts(groups) == all);
    assert!(Modification::default().groups().is_empty());
}

#[test]
fn a_change_to_another_value_is_another_change() {
    let upgrade = |to: &str| {
        let mut spec = example::everything();
        spec["engineVersion"] = json!(to);
        example::changes(&spec, false)
    };
    assert!(upgrade("17") == upgrade("17"));
    assert!(upgrade("17") != upgrade("18"));
    let password =
        |text: &str| Modification::with::<Password>(PasswordChange::Set(text.to_owned()));
    assert!(password("a") == password("a"));
    assert!(password("a") != password("b"));
    assert!(password("a") != Modification::with::<Tags>(TagChange::default()));
}

#[test]
fn an_upgrade_is_requested_with_the_groups_of_its_major_version() {
    let with = |all: &Modification, field: &str| {
        let mut groups = all.groups().into_iter();
        let found = groups.find(|group| group.fields().contains(&field));
        found.expect("a group").fields()
    };
    let mut all = everything();
    let expected = ["engineVersion", "parameterGroup", "optionGroup"];
    assert_eq!(with(&all, "parameterGroup"), expected);
    let automatic = "autoMinorVersionUpgrade";
    assert_eq!(with(&all, automatic), [automatic]);
    all.set::<EngineVersion>(None);
    assert_eq!(with(&all, "parameterGroup"), ["parameterGroup"]);
}

#[test]
fn an_instance_is_closed_even_if_rds_rejects_a_security_group() {
    let access = |is_public: bool| {
        let mut spec = example::everything();
        spec["network"]["publiclyAccessible"] = json!(is_public);
        let change = example::changes(&spec, !is_public);
        let [access, ..] = change.requests();
        let groups = access.groups();
        groups.iter().map(Modification::fields).collect::<Vec<_>>()
    };
    let (public, groups) = ("network.publiclyAccessible", "network.securityGroups");
    assert_eq!(access(false), [vec![public], vec![groups]]);
    assert_eq!(access(true), [vec![public, groups]]);
}

#[test]
fn the_storage_grows_even_if_rds_rejects_its_maximum() {
    let groups = everything().groups();
    let fields = groups.iter().map(Modification::fields);
    let of_storage = fields.filter(|fields| fields[0].starts_with("storage."));
    let expected = [
        vec!["storage.maxSizeGib"],
        vec![
            "storage.type",
            "storage.sizeGib",
            "storage.iops",
            "storage.throughputMibps",
        ],
    ];
    assert_eq!(of_storage.collect::<Vec<_>>(), expected);
}

#[test]
fn a_window_that_rds_rejects_leaves_no_instance_without_backups() {
    let groups = everything().groups();
    let fields = groups.iter().map(Modification::fields);
    let retention = fields.filter(|fields| fields.contains(&"backup.retentionDays"));
    assert_eq!(retention.collect::<Vec<_>>(), [["backup.retentionDays"]]);
}

#[test]
fn the_effect_of_each_setting_is_known() {
    let rows = SETTINGS.into_iter().map(|row| row.field());
    let now = ApplyChanges::Immediately;
    let unknown = rows.filter(|field| effect_of(field, now, &[]).is_none());
    let unknown: Vec<_> = unknown.collect();
    // The password is no field of the spec.
    assert_eq!(unknown, ["the password of the master user"]);
}

/// Settings whose change is part of that of another one, and the promotion of a replica, which is a call of its own.
const WITHOUT_ROW: [&str; 8] = [
    "allowMajorVersionUpgrade",
    "credentials.generate",
    "credentials.managed",
    "credentials.secretName",
    "credentials.selectors",
    "monitoring.performanceInsights.kmsKey",
    "monitoring.performanceInsights.retentionDays",
    "replicaOf",
];

#[test]
fn each_setting_that_can_be_changed_has_a_row() {
    let can_change = SETTINGS_OF_SPEC
        .iter()
        .filter(|setting| setting.effect != Effect::Denied);
    let rows = SETTINGS.map(|row| row.field());
    let without = can_change.map(|setting| setting.field);
    let mut without: Vec<_> = without.filter(|field| !rows.contains(field)).collect();
    without.sort_unstable();
    assert_eq!(without, WITHOUT_ROW);
}

#[test]
fn network_access_and_storage_are_requested_separately_from_other_fields() {
    let [access, storage, rest, tags] = everything().requests();
    assert_eq!(
        access.fields(),
        ["network.publiclyAccessible", "network.securityGroups"]
    );
    assert!(
        storage
            .fields()
            .iter()
            .all(|field| field.starts_with("storage."))
    );
    assert!(rest.fields().contains(&"instanceClass"));
    assert_eq!(tags.fields(), ["tags"]);
}

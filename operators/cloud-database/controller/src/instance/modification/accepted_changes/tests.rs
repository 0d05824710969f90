use aws_sdk_rds::types::PendingModifiedValues;
use serde_json::{Value, json};

use super::*;
use crate::instance::record::Record;

const NOW: &str = "2026-06-01T12:00:00Z";

fn spec(fields: &Value) -> CloudDatabaseSpec {
    let mut spec = json!({
        "engine": "postgres", "engineVersion": "17.4", "allowMajorVersionUpgrade": "17",
        "instanceClass": "db.t4g.micro", "storage": {"sizeGib": 20},
        "credentials": {"username": "app", "secretName": "s"},
    });
    for (name, value) in fields.as_object().into_iter().flatten() {
        spec[name] = value.clone();
    }
    serde_json::from_value(spec).expect("a spec")
}

fn instance(version: &str, status: &str, pending: Option<&str>) -> DbInstance {
    let pending = PendingModifiedValues::builder().set_engine_version(pending.map(String::from));
    DbInstance::builder()
        .engine("postgres")
        .engine_version(version)
        .db_instance_class("db.t4g.micro")
        .db_instance_status(status)
        .pending_modified_values(pending.build())
        .build()
}

fn upgrade() -> AcceptedChange {
    AcceptedChange {
        field: EngineVersion::FIELD.to_owned(),
        target: "17.4".to_owned(),
        consent: "Immediately, 17".to_owned(),
        accepted_at: Some("2026-06-01T11:59:00Z".to_owned()),
        ..AcceptedChange::default()
    }
}

fn review(
    fields: &Value,
    instance: &DbInstance,
    records: &[AcceptedChange],
) -> Vec<AcceptedChange> {
    let spec = spec(fields);
    let when = spec.apply_changes;
    let record = Record::default();
    let change = drift::between(&spec, when, instance, &[], &record);
    let comparison = Comparison {
        spec: &spec,
        instance,
        change: &change,
        now: NOW.parse().expect("a time"),
        idle_for: SignedDuration::from_secs(30),
    };
    comparison.review(records, &[], false).settled
}

fn none() -> Value {
    json!({})
}

#[test]
fn a_change_is_recorded_until_the_instance_has_it() {
    let waiting = [upgrade()];
    let pending = instance("16.4", "available", Some("17.4"));
    let shown = review(&none(), &pending, &waiting);
    assert!(shown[0].began && !shown[0].failed, "{shown:?}");
    let upgrading = instance("16.4", "upgrading", None);
    assert!(review(&none(), &upgrading, &waiting)[0].began);
    let done = instance("17.4", "available", None);
    assert_eq!(review(&none(), &done, &waiting), []);
    // Also one that RDS had taken back, and that a user has made in RDS.
    let failed = AcceptedChange {
        failed: true,
        ..upgrade()
    };
    assert_eq!(review(&none(), &done, &[failed]), []);
}

#[test]
fn a_change_is_taken_back_if_two_descriptions_show_it_after_it_began_or_after_some_time() {
    let idle = instance("16.4", "available", None);
    let just_accepted = upgrade();
    assert_eq!(
        review(&none(), &idle, std::slice::from_ref(&just_accepted)),
        [just_accepted],
        "RDS may not show it yet"
    );
    let began = AcceptedChange {
        began: true,
        ..upgrade()
    };
    let old = AcceptedChange {
        accepted_at: Some("2026-06-01T11:50:00Z".to_owned()),
        ..upgrade()
    };
    for record in [began, old] {
        let first = review(&none(), &idle, std::slice::from_ref(&record));
        assert_eq!(first[0].absent_since.as_deref(), Some(NOW));
        assert!(!first[0].failed, "one answer proves nothing");
        assert_eq!(review(&none(), &idle, &first), first, "the same answer");
        let later = AcceptedChange {
            absent_since: Some("2026-06-01T11:59:30Z".to_owned()),
            ..record
        };
        let second = review(&none(), &idle, std::slice::from_ref(&later));
        assert!(second[0].failed, "{second:?}");
        // A backup says nothing, and neither does what follows.
        let backup = instance("16.4", "backing-up", None);
        assert!(review(&none(), &backup, &second)[0].failed);
        let reset = review(&none(), &backup, std::slice::from_ref(&later));
        assert_eq!(reset[0].absent_since, None);
        assert!(!reset[0].failed);
    }
}

#[test]
fn a_change_of_the_field_or_of_its_consent_forgets_the_record() {
    let idle = instance("16.4", "available", None);
    let failed = AcceptedChange {
        failed: true,
        ..upgrade()
    };
    let review = |fields: Value| review(&fields, &idle, std::slice::from_ref(&failed)).len();
    assert_eq!(review(none()), 1);
    assert_eq!(review(json!({"instanceClass": "db.m7g.large"})), 1);
    assert_eq!(review(json!({"engineVersion": "17.5"})), 0);
    assert_eq!(review(json!({"allowMajorVersionUpgrade": null})), 0);
    assert_eq!(review(json!({"applyChanges": "MaintenanceWindow"})), 0);
}

#[test]
fn a_change_in_progress_that_no_record_has_is_recorded() {
    let upgrading = instance("16.4", "upgrading", Some("17.4"));
    let found = review(&none(), &upgrading, &[]);
    assert_eq!(found.len(), 1);
    assert!(found[0].began && found[0].target == "17.4", "{found:?}");
    // One of another client waits for the window, and may be another one.
    let waiting = instance("16.4", "available", Some("17.4"));
    assert_eq!(review(&none(), &waiting, &[]), []);
    let other = instance("16.4", "upgrading", Some("16.9"));
    assert_eq!(review(&none(), &other, &[]), []);
}

#[test]
fn each_field_has_a_value_in_the_spec_and_in_a_modification() {
    let fields = json!({
        "multiAz": true, "optionGroup": "audited", "caCertificate": "rds-ca-rsa4096-g1",
        "instanceClass": "db.m7g.large",
    });
    let spec = spec(&fields);
    let idle = instance("16.4", "available", None);
    let when = spec.apply_changes;
    let change = drift::between(&spec, when, &idle, &[], &Record::default());
    for field in FIELDS {
        assert!(wanted(&spec, field).is_some(), "{field}");
        assert_eq!(requested(&change, field), wanted(&spec, field), "{field}");
    }
    let record = AcceptedChange {
        field: "multiAz".to_owned(),
        target: "true".to_owned(),
        accepted_at: Some(NOW.to_owned()),
        failed: true,
        ..AcceptedChange::default()
    };
    let outcome = outcome(&[record], &change);
    assert!(
        matches!(outcome, Some(Outcome::TakenBack(_))),
        "{outcome:?}"
    );
}

#[test]
fn a_change_is_applied_once_rds_has_ended_its_work() {
    let waiting = [upgrade()];
    for status in CHANGING {
        let changing = instance("17.4", status, None);
        let found = review(&none(), &changing, &waiting);
        assert!(found.len() == 1 && found[0].began, "{status}: {found:?}");
    }
    let taken_back = instance("16.4", "available", None);
    let began = review(&none(), &instance("17.4", "upgrading", None), &waiting);
    let found = review(&none(), &taken_back, &began);
    assert_eq!(found[0].absent_since.as_deref(), Some(NOW));
}

#[test]
fn work_of_rds_says_nothing_about_a_change_that_waits_for_the_window() {
    let fields = json!({"applyChanges": "MaintenanceWindow"});
    let waiting = AcceptedChange {
        consent: "MaintenanceWindow, 17".to_owned(),
        absent_since: Some("2026-06-01T11:00:00Z".to_owned()),
        ..upgrade()
    };
    let waiting = std::slice::from_ref(&waiting);
    for status in CHANGING {
        for version in ["16.4", "17.4"] {
            let found = review(&fields, &instance(version, status, None), waiting);
            let about = format!("{status}, {version}: {found:?}");
            assert_eq!(found.len(), 1, "{about}");
            assert!(
                !found[0].began && found[0].absent_since.is_none(),
                "{about}"
            );
        }
    }
    let pending = instance("16.4", "modifying", Some("17.4"));
    assert!(review(&fields, &pending, waiting)[0].began);
}

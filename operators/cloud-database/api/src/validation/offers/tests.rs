//! Objects that are compared with the catalogue of an account, and with the shipped one.

#![expect(
    clippy::needless_pass_by_value,
    reason = "literals of JSON are shorter without references"
)]

use std::sync::Arc;

use lockstep_shared_validation::{Ruleset, ValidationRequest, ValidationResult, Validator};
use rds_catalogue::Catalogue;
use serde_json::{Value, json};

use crate::offers::{OfferCatalogues, OfferContext};
use crate::spec::CloudDatabase;

const CATALOGUE: &str = r#"{
  "format": 1,
  "origin": {"source": "RDS", "account": "123456789012", "region": "eu-central-1"},
  "engines": {"postgres": {
    "date": "2026-11-20",
    "versions": {
      "15.10": {"deprecated": true, "minorUpgrades": "15.12 15.14", "majorUpgrades": "16.10", "offer": 0},
      "15.12": {"deprecated": true, "minorUpgrades": "15.14", "majorUpgrades": "16.10", "offer": 0},
      "15.14": {"minorUpgrades": "", "majorUpgrades": "16.10", "offer": 1},
      "16.10": {"minorUpgrades": "", "majorUpgrades": "17.6", "offer": 1},
      "17.6": {"minorUpgrades": "", "majorUpgrades": "", "offer": 2}
    },
    "offers": [
      [],
      [
        {"classes": "m5(large)", "storage": {"gp3": {"sizeGib": "20..16384"}}, "capabilities": []},
        {"classes": "t4g(micro,medium)", "storage": {
          "gp3": {"sizeGib": "20..65536", "autoscaling": true},
          "io1": {"sizeGib": "100..65536", "iops": "1000..10000", "iopsPerGib": "0.5..50"}
        }, "capabilities": ["multiAz"]}
      ],
      [{"classes": "t4g(micro)", "storage": {"gp3": {"sizeGib": "20..65536", "autoscaling": true}}, "capabilities": ["multiAz"]}]
    ]
  }}
}"#;

/// Catalogue with classes that only later versions have.
const LATER_CLASSES: &str = r#"{
  "format": 1,
  "origin": {"source": "RDS", "account": "123456789012", "region": "eu-central-1"},
  "engines": {"postgres": {
    "date": "2026-11-20",
    "versions": {
      "15.12": {"deprecated": true, "minorUpgrades": "", "majorUpgrades": "16.10", "offer": 0},
      "16.10": {"minorUpgrades": "16.11", "majorUpgrades": "17.6", "offer": 1},
      "16.11": {"minorUpgrades": "", "majorUpgrades": "17.6", "offer": 2},
      "17.6": {"minorUpgrades": "", "majorUpgrades": "", "offer": 3}
    },
    "offers": [
      [],
      [{"classes": "m5(large) t4g(micro)", "storage": {"gp3": {"sizeGib": "20..16384"}}, "capabilities": []}],
      [{"classes": "m5(large) r7g(large) t4g(micro)", "storage": {"gp3": {"sizeGib": "20..16384"}}, "capabilities": []}],
      [{"classes": "m5(large) r8g(large) t4g(micro)", "storage": {"gp3": {"sizeGib": "20..16384"}}, "capabilities": []}]
    ]
  }}
}"#;

fn rules(fresh_since: &str) -> Ruleset<CloudDatabase> {
    rules_by(CATALOGUE, fresh_since)
}

fn rules_by(catalogue: &str, fresh_since: &str) -> Ruleset<CloudDatabase> {
    let catalogue = Catalogue::load(catalogue).expect("a catalogue");
    let context = OfferContext::default();
    context.set(OfferCatalogues::new(vec![Arc::new(catalogue)], fresh_since));
    let rules = Ruleset::compile().expect("the ruleset compiles");
    rules.with_extension(Arc::new(context))
}

fn database(spec: &Value, status: Value) -> Value {
    let mut object = json!({
        "apiVersion": "database.example.com/v1alpha1",
        "kind": "CloudDatabase",
        "metadata": {"name": "orders", "namespace": "shop"},
        "spec": {
            "engine": "postgres",
            "engineVersion": "16",
            "instanceClass": "db.t4g.micro",
            "storage": {"sizeGib": 100},
            "credentials": {"username": "app", "secretName": "orders-db"},
        },
        "status": status,
    });
    for (name, value) in spec.as_object().into_iter().flatten() {
        object["spec"][name] = value.clone();
    }
    object
}

/// Returns the errors and warnings of the rules on offers.
fn found(result: &ValidationResult) -> [Vec<String>; 2] {
    [&result.errors, &result.warnings].map(|all| {
        let own = [
            "not-offered",
            "not-in-catalogue",
            "engine-version-deprecated",
        ];
        let all = all.iter().filter(|it| own.contains(&it.rule.as_str()));
        all.map(|it| it.error.to_string()).collect()
    })
}

fn created(spec: Value) -> [Vec<String>; 2] {
    let object = database(&spec, Value::Null);
    found(&rules("2026-11-19").validate(&ValidationRequest::create(&object)))
}

fn changed(from: Value, to: Value, status: Value) -> [Vec<String>; 2] {
    changed_by(CATALOGUE, from, to, status)
}

fn changed_by(catalogue: &str, from: Value, to: Value, status: Value) -> [Vec<String>; 2] {
    let old = database(&from, status.clone());
    let object = database(&to, status);
    let rules = rules_by(catalogue, "2026-11-19");
    found(&rules.validate(&ValidationRequest::update(&object, &old)))
}

fn none() -> [Vec<String>; 2] {
    [Vec::new(), Vec::new()]
}

#[test]
fn what_the_account_does_not_offer_is_denied_with_the_nearest_offers() {
    const OF: &str = "by the catalogue of account 123456789012 in eu-central-1 of 2026-11-20";
    assert_eq!(created(json!({})), none());
    for (spec, expected) in [
        (
            json!({"engineVersion": "16.4"}),
            format!(
                r#"spec.engineVersion: Invalid value: "16.4": is no version of postgres that RDS offers, {OF}; the nearest is 16.10 [not-offered]"#
            ),
        ),
        (
            json!({"engineVersion": "14"}),
            format!(
                r#"spec.engineVersion: Invalid value: "14": is no version of postgres that RDS offers, {OF}; the nearest are 15.14, 16.10, 17.6 [not-offered]"#
            ),
        ),
        (
            json!({"instanceClass": "db.m4.large"}),
            format!(
                r#"spec.instanceClass: Invalid value: "db.m4.large": is not offered with postgres 16, {OF}; the nearest are db.m5.large, db.t4g.medium [not-offered]"#
            ),
        ),
        (
            json!({"storage": {"sizeGib": 20000}, "instanceClass": "db.m5.large"}),
            format!(
                "spec.storage.sizeGib: Invalid value: 20000: is not offered for gp3 with db.m5.large, {OF}; the nearest are 20 to 16384 GiB [not-offered]"
            ),
        ),
        (
            json!({"storage": {"sizeGib": 100, "type": "gp2"}}),
            format!(
                r#"spec.storage.type: Invalid value: "gp2": is not offered with db.t4g.micro, {OF}; set one of gp3, io1 [not-offered]"#
            ),
        ),
        (
            json!({"storage": {"sizeGib": 1000, "type": "io1", "iops": 12000}}),
            format!(
                "spec.storage.iops: Invalid value: 12000: is not offered for io1 with db.t4g.micro, {OF}; the nearest are 1000 to 10000 IOPS [not-offered]"
            ),
        ),
        (
            json!({"storage": {"sizeGib": 100, "maxSizeGib": 200}, "instanceClass": "db.m5.large"}),
            format!(
                "spec.storage.maxSizeGib: Invalid value: 200: needs storage that grows automatically, which is not offered for gp3 with db.m5.large, {OF}; remove it, or choose another class or storage type [not-offered]"
            ),
        ),
        (
            json!({"multiAz": true, "instanceClass": "db.m5.large"}),
            format!(
                "spec.multiAz: Invalid value: true: needs a standby (Multi-AZ), which is not offered with db.m5.large, {OF}; remove it, or choose another class or version [not-offered]"
            ),
        ),
    ] {
        assert_eq!(created(spec), [vec![expected], Vec::new()]);
    }
    let [errors, warnings] = created(json!({"engineVersion": "15.12"}));
    assert!(
        errors[0].contains("is offered with no instance class"),
        "{errors:?}"
    );
    assert!(
        warnings[0].contains("the nearest is 15.14 [engine-version-deprecated]"),
        "{warnings:?}"
    );
}

#[test]
fn what_may_be_newer_than_the_catalogue_gives_a_warning() {
    for spec in [
        json!({"engineVersion": "16.99"}),
        json!({"engineVersion": "99"}),
        json!({"instanceClass": "db.m99g.large"}),
    ] {
        let [errors, warnings] = created(spec.clone());
        assert_eq!(errors, Vec::<String>::new(), "{spec}");
        assert!(
            warnings.iter().any(|it| it.contains("not-in-catalogue")),
            "{spec}: {warnings:?}"
        );
    }
    // The version is that of the snapshot.
    let restored = json!({"restoreFrom": {"snapshot": "a"}, "engineVersion": "15.12"});
    assert_eq!(created(restored)[0], Vec::<String>::new());
}

#[test]
fn a_setting_is_offered_with_the_class_and_the_version() {
    let with_16 = r#""capabilities": ["iamAuthentication", "performanceInsights"]"#;
    // The first offer is that of 16.10.
    let catalogue = LATER_CLASSES.replacen(r#""capabilities": []"#, with_16, 1);
    let spec = |version: &str, setting: &Value| {
        let mut spec = json!({"engineVersion": version, "allowMajorVersionUpgrade": "17"});
        for (field, value) in setting.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        spec
    };
    let rules = rules_by(&catalogue, "2026-11-19");
    for (setting, field) in [
        (json!({"iamAuthentication": true}), "spec.iamAuthentication"),
        (
            json!({"monitoring": {"performanceInsights": {"enabled": true}}}),
            "spec.monitoring.performanceInsights.enabled",
        ),
    ] {
        let created = |version: &str| {
            let mut object = database(&spec(version, &setting), Value::Null);
            object["spec"]
                .as_object_mut()
                .expect("a spec")
                .remove("allowMajorVersionUpgrade");
            found(&rules.validate(&ValidationRequest::create(&object)))
        };
        assert_eq!(created("16.10"), none(), "{field}");
        let [errors, _] = created("17.6");
        assert!(errors[0].starts_with(field), "{errors:?}");
        assert!(errors[0].contains("class or version"), "{errors:?}");
        // An instance that is upgraded may keep it.
        let status = json!({
            "region": "eu-central-1", "accountId": "123456789012", "arn": "arn:aws:rds:a",
            "engineVersion": "16.10", "instanceClass": "db.t4g.micro",
        });
        let (old, new) = (spec("16.10", &setting), spec("17.6", &setting));
        let [errors, warnings] = changed_by(&catalogue, old, new, status);
        assert_eq!(errors, Vec::<String>::new());
        assert!(warnings[0].starts_with(field), "{warnings:?}");
    }
}

#[test]
fn an_old_catalogue_only_warns() {
    let object = database(&json!({"instanceClass": "db.m4.large"}), Value::Null);
    let [errors, warnings] =
        found(&rules("2026-11-21").validate(&ValidationRequest::create(&object)));
    assert_eq!(errors, Vec::<String>::new());
    assert!(
        warnings[0].ends_with("db.t4g.medium [not-in-catalogue]"),
        "{warnings:?}"
    );
}

#[test]
fn only_what_a_change_concerns_is_compared() {
    let status = || {
        json!({
            "region": "eu-central-1", "accountId": "123456789012", "arn": "arn:aws:rds:a",
            "engineVersion": "15.12", "instanceClass": "db.m4.large", "allocatedStorageGib": 100,
        })
    };
    let running = || json!({"engineVersion": "15.13", "instanceClass": "db.m4.large"});
    let with = |field: &str, value: Value| {
        let mut spec = running();
        spec[field] = value;
        spec
    };
    let [errors, _] = changed(running(), with("tags", json!({"a": "b"})), status());
    assert_eq!(errors, Vec::<String>::new());
    let storage = json!({"sizeGib": 200});
    assert_eq!(
        changed(running(), with("storage", storage), status()),
        none()
    );
    // The instance runs it: a change that RDS has rejected is taken back.
    let back = changed(
        json!({"engineVersion": "16", "instanceClass": "db.m5.large"}),
        json!({"engineVersion": "15.12", "instanceClass": "db.m4.large"}),
        status(),
    );
    assert_eq!(back[0], Vec::<String>::new());
    // An upgrade to a deprecated version that is a target is offered, with classes that RDS does not list.
    let mut older = status();
    older["engineVersion"] = "15.10".into();
    let upgraded = changed(
        json!({"engineVersion": "15.10", "instanceClass": "db.m4.large"}),
        json!({"engineVersion": "15.12", "instanceClass": "db.m4.large"}),
        older,
    );
    assert_eq!(upgraded[0], Vec::<String>::new());
    // RDS lists no classes of a version that is deprecated or withdrawn, but instances with it can be resized.
    for version in ["15.12", "15.13"] {
        let before = json!({"engineVersion": version, "instanceClass": "db.m4.large"});
        let after = json!({"engineVersion": version, "instanceClass": "db.m4.xlarge"});
        let [errors, _] = changed(before, after, status());
        assert_eq!(errors, Vec::<String>::new(), "{version}");
    }
    // An upgrade needs a class that the new version has.
    let old = || json!({"engineVersion": "16", "instanceClass": "db.t4g.medium"});
    let new = || json!({"engineVersion": "17", "instanceClass": "db.t4g.medium", "allowMajorVersionUpgrade": "17"});
    let mut runs = status();
    runs["engineVersion"] = "16.10".into();
    runs["instanceClass"] = "db.t4g.medium".into();
    let [errors, _] = changed(old(), new(), runs);
    assert!(
        errors[0].contains("is not offered with postgres 17"),
        "{errors:?}"
    );
    // The controller validates an object that exists without its previous spec.
    let object = database(&running(), status());
    let result = rules("2026-11-19").validate(&ValidationRequest::create(&object));
    assert_eq!(found(&result)[0], Vec::<String>::new());
}

#[test]
fn a_new_class_is_offered_with_the_version_that_runs() {
    const OF: &str = "by the catalogue of account 123456789012 in eu-central-1 of 2026-11-20";
    let spec = |version: &str, class: &str| json!({"engineVersion": version, "instanceClass": class, "allowMajorVersionUpgrade": "17"});
    let status = |version: &str| {
        json!({
            "region": "eu-central-1", "accountId": "123456789012", "arn": "arn:aws:rds:a",
            "engineVersion": version, "instanceClass": "db.t4g.micro",
        })
    };
    let changed = |from: (&str, &str), to: (&str, &str), status: Value| {
        let (from, to) = (spec(from.0, from.1), spec(to.0, to.1));
        changed_by(LATER_CLASSES, from, to, status)[0].clone()
    };
    let (micro, none) = ("db.t4g.micro", Vec::<String>::new());
    let upgraded = |class| changed(("16", micro), ("17", class), status("16.10"));
    assert_eq!(upgraded("db.m5.large"), none, "both versions have it");
    let denied = [format!(
        r#"spec.instanceClass: Invalid value: "db.r8g.large": is not offered with postgres 16.10, which the instance runs, {OF}; change the version first, and the class once the instance runs it [not-offered]"#
    )];
    assert_eq!(upgraded("db.r8g.large"), denied);
    // The upgrade was requested before, and is not done yet.
    let resized = |running| changed(("17", micro), ("17", "db.r8g.large"), status(running));
    assert_eq!(resized("16.10"), denied);
    assert_eq!(resized("17.6"), none);
    // Without a status, an exact version is the one that runs.
    let exact = changed(("16.10", micro), ("17", "db.r8g.large"), Value::Null);
    assert_eq!(exact, denied);
    // Only a later minor version of the same major version has it.
    assert_eq!(
        changed(("16", micro), ("16", "db.r7g.large"), status("16.10")),
        [format!(
            r#"spec.instanceClass: Invalid value: "db.r7g.large": is not offered with postgres 16.10, which the instance runs, {OF}; the nearest are db.m5.large, db.t4g.micro [not-offered]"#
        )]
    );
    // RDS lists no classes of a version that is deprecated or withdrawn.
    for version in ["15.12", "15.13"] {
        let upgraded = changed(("15", micro), ("16", "db.r7g.large"), status(version));
        assert_eq!(upgraded, none, "{version}");
    }
    // The instance runs it: a change that RDS has rejected is taken back.
    let mut larger = status("16.10");
    larger["instanceClass"] = "db.r8g.large".into();
    assert_eq!(changed(("16", micro), ("17", "db.r8g.large"), larger), none);
}

#[test]
fn an_upgrade_leads_to_a_target_of_the_version_that_runs() {
    let status = |version: &str| json!({"arn": "arn:aws:rds:a", "engineVersion": version});
    let upgraded = |to: &str, running: &str| {
        let [errors, _] = changed(
            json!({"engineVersion": "15"}),
            json!({"engineVersion": to, "allowMajorVersionUpgrade": to}),
            status(running),
        );
        errors
    };
    assert_eq!(upgraded("16", "15.14"), Vec::<String>::new());
    assert_eq!(
        upgraded("16", "15.13"),
        Vec::<String>::new(),
        "not in the catalogue"
    );
    assert_eq!(
        upgraded("17", "15.12"),
        [
            r#"spec.engineVersion: Invalid value: "17": is no version to which RDS upgrades 15.12, by the catalogue of account 123456789012 in eu-central-1 of 2026-11-20; set one of 15.14, 16.10 [not-offered]"#
        ]
    );
}

#[test]
fn instances_that_are_adopted_or_observed_are_not_compared() {
    for origin in [
        json!({"adopt": {"identifier": "orders"}}),
        json!({"managementPolicy": "Observe"}),
    ] {
        let mut spec = json!({"instanceClass": "db.m4.large"});
        for (name, value) in origin.as_object().into_iter().flatten() {
            spec[name] = value.clone();
        }
        assert_eq!(created(spec), none());
    }
    // A restored instance has the version of the snapshot.
    let restored = json!({"restoreFrom": {"snapshot": "a"}, "engineVersion": "17", "instanceClass": "db.m5.large"});
    assert_eq!(created(restored), none());
}

#[test]
fn the_shipped_catalogue_warns_and_knows_the_classes_of_each_region() {
    let rules: Ruleset<CloudDatabase> = Ruleset::compile().expect("the ruleset compiles");
    let warnings = |spec: Value, status: Value| {
        let old = database(&json!({}), status.clone());
        let object = database(&spec, status.clone());
        let request = match status {
            Value::Null => ValidationRequest::create(&object),
            _ => ValidationRequest::update(&object, &old),
        };
        let [errors, warnings] = found(&rules.validate(&request));
        assert_eq!(errors, Vec::<String>::new());
        warnings
    };
    assert_eq!(warnings(json!({}), Value::Null), Vec::<String>::new());
    let found = warnings(json!({"engineVersion": "16.99"}), Value::Null);
    let source = &Catalogue::shipped().origin.source;
    assert!(
        found[0].contains(&format!("({source}); the nearest are 16.")),
        "{found:?}"
    );
    let rare = json!({"instanceClass": "db.x2iedn.xlarge"});
    assert_eq!(warnings(rare.clone(), Value::Null), Vec::<String>::new());
    let status = json!({"region": "me-central-1", "arn": "arn:aws:rds:a", "engineVersion": "16.9"});
    let found = warnings(rare, status);
    assert!(
        found[0].contains("is not offered in me-central-1"),
        "{found:?}"
    );
}

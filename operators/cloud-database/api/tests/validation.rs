//! Tests of the ruleset with whole objects.

use lockstep_cloud_database_api::{CloudDatabase, ruleset};
use lockstep_shared_validation::{
    LastValidated, Policy, Ruleset, ValidationRequest, ValidationResult, Validator,
    ValidatorRegistry,
};
use serde_json::{Value, json};

fn rules() -> Ruleset<CloudDatabase> {
    ruleset().expect("the ruleset compiles")
}

fn database(spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "database.example.com/v1alpha1",
        "kind": "CloudDatabase",
        "metadata": { "name": "orders", "namespace": "shop", "generation": 2 },
        "spec": {
            "engine": "postgres",
            "instanceClass": "db.t4g.micro",
            "storage": { "sizeGib": 100 },
            "credentials": { "username": "app", "secretName": "orders-db" },
        },
    });
    json_merge(&mut object["spec"], spec);
    object
}

fn json_merge(target: &mut Value, patch: &Value) {
    match patch {
        Value::Object(fields) => {
            if !target.is_object() {
                *target = json!({});
            }
            for (name, value) in fields {
                json_merge(&mut target[name], value);
            }
        }
        other => *target = other.clone(),
    }
}

fn errors(result: &ValidationResult) -> Vec<String> {
    result
        .errors
        .iter()
        .map(|violation| violation.error.to_string())
        .collect()
}

#[test]
fn a_minimal_object_is_valid_and_gets_its_defaults() {
    let object = database(&json!({}));
    let result = rules().validate(&ValidationRequest::create(&object).deny_unknown_fields());
    assert_eq!(errors(&result), Vec::<String>::new());
    let spec = &result.object["spec"];
    assert_eq!(spec["storage"], json!({"sizeGib": 100, "type": "gp3"}));
    assert_eq!(
        spec["credentials"]["selectors"],
        json!({"username": "username", "password": "password"})
    );
    assert_eq!(spec["backup"], json!({"copyTagsToSnapshot": true}));
    assert_eq!(spec["network"], json!({"publiclyAccessible": false}));
    assert_eq!(spec["encryption"], json!({"enabled": true}));
    assert_eq!(
        (&spec["port"], &spec["engineVersion"]),
        (&json!(5432), &json!("17"))
    );
    assert_eq!(spec["deletionPolicy"], "Snapshot");
}

#[test]
fn an_instance_with_data_keeps_its_version_and_port_unless_the_spec_sets_them() {
    let with = |fields: Value| {
        let object = database(&fields);
        let result = rules().validate(&ValidationRequest::create(&object).deny_unknown_fields());
        assert_eq!(errors(&result), Vec::<String>::new());
        let spec = &result.object["spec"];
        (spec["engineVersion"].clone(), spec["port"].clone())
    };
    let none = (Value::Null, Value::Null);
    assert_eq!(with(json!({"adopt": {"identifier": "orders"}})), none);
    assert_eq!(with(json!({"restoreFrom": {"snapshot": "orders"}})), none);
    let replica = json!({"replicaOf": {"identifier": "orders"}, "deletionPolicy": "Retain"});
    assert_eq!(with(replica), none);
    // After its promotion.
    let mut promoted = database(&json!({}));
    promoted["status"] = json!({"engineVersion": "16.4"});
    let result = rules().validate(&ValidationRequest::create(&promoted));
    assert!(result.object["spec"]["engineVersion"].is_null());
}

#[test]
fn the_default_patch_turns_the_written_object_into_the_defaulted_one() {
    let mut object = database(
        &json!({"credentials": {"selectors": {"password": "pw"}}, "unknown": {"kept": true}}),
    );
    let result = rules().validate(&ValidationRequest::create(&object));
    json_patch::patch(&mut object, &result.defaults).expect("the patch applies");
    assert_eq!(object, result.object);
    assert_eq!(
        object["spec"]["credentials"]["selectors"],
        json!({"username": "username", "password": "pw"})
    );
    assert_eq!(object["spec"]["unknown"], json!({"kept": true}));
    let again = rules().validate(&ValidationRequest::create(&object));
    assert!(
        again.defaults.0.is_empty(),
        "defaulting again adds nothing: {:?}",
        again.defaults
    );
}

#[test]
fn all_errors_are_returned_together_sorted_by_path() {
    let object = database(&json!({
        "storage": {"sizeGib": 100, "maxSizeGib": 105, "iops": 3000},
        "credentials": {"username": "user"},
        "port": 80,
    }));
    assert_eq!(
        errors(&rules().validate(&ValidationRequest::create(&object))),
        [
            r#"spec.credentials.username: Invalid value: "user": is reserved by postgres or RDS; choose another name [username-reserved]"#,
            "spec.port: Invalid value: 80: spec.port in body should be greater than or equal to 1150",
            "spec.storage.iops: Forbidden: may be set only for io1 and io2, and for gp3 from 400 GiB [iops-not-provisioned]",
            "spec.storage.maxSizeGib: Invalid value: must be at least 10 % above `sizeGib`; raise it, or remove it to switch autoscaling off [max-size-above-size]",
        ]
    );
}

#[test]
fn the_default_name_of_the_secret_for_applications_is_not_that_of_the_credentials() {
    let with_secret = |name: &str| {
        let credentials = json!({"secretName": name});
        let object = database(&json!({"credentials": credentials, "connectionSecret": {}}));
        errors(&rules().validate(&ValidationRequest::create(&object)))
    };
    assert_eq!(with_secret("orders-db"), Vec::<String>::new());
    assert_eq!(
        with_secret("orders-connection"),
        [
            r#"spec.connectionSecret.name: Invalid value: "orders-connection": is the Secret with the credentials, which the controller does not overwrite; choose another name [connection-secret-name]"#
        ]
    );
}

#[test]
fn transitions_are_validated_against_the_last_validated_values_rather_than_the_old_object() {
    let rules = rules();
    let filled = database(&json!({}));
    let accepted_object = rules.validate(&ValidationRequest::create(&filled)).object;
    let last_validated = LastValidated::from_object(&accepted_object, rules.transition_fields());
    let edited = database(&json!({
        "engine": "mysql",
        "storage": {"sizeGib": 50},
        "encryption": {"enabled": true, "kmsKey": "alias/databases"},
        "network": {"subnetGroup": "databases", "publiclyAccessible": false},
    }));
    let denied = [
        "spec.encryption.kmsKey",
        "spec.engine",
        "spec.network.subnetGroup",
        "spec.storage.sizeGib",
    ];
    let paths = |result: &ValidationResult| {
        result
            .errors
            .iter()
            .map(|v| v.error.path.to_string())
            .collect::<Vec<_>>()
    };
    // The controller, which has no old object, and the webhook, which has one.
    assert_eq!(
        paths(&rules.validate(
            &ValidationRequest::create(&edited).with_last_validated(Some(&last_validated))
        )),
        denied
    );
    assert_eq!(
        paths(&rules.validate(&ValidationRequest::update(&edited, &accepted_object))),
        denied
    );
    // The correction of an edit that bypassed the webhook is valid; without the last validated values it would not be.
    assert!(
        rules
            .validate(
                &ValidationRequest::update(&accepted_object, &edited)
                    .with_last_validated(Some(&last_validated))
            )
            .is_valid()
    );
    assert!(
        !rules
            .validate(&ValidationRequest::update(&accepted_object, &edited))
            .is_valid()
    );
}

#[test]
fn an_old_violation_is_a_warning_and_a_new_one_is_an_error() {
    let rules = rules();
    let old = database(
        &json!({"port": 80, "credentials": {"username": "user"}, "storage": {"maxSizeGib": 101}}),
    );
    let mut new = old.clone();
    new["spec"]["multiAz"] = json!(false);
    let result = rules.validate(&ValidationRequest::update(&new, &old));
    assert_eq!(errors(&result), Vec::<String>::new());
    assert_eq!(
        result.warnings.len(),
        4,
        "three old violations and a warning: {:?}",
        result.warnings
    );
    new["spec"]["storage"]["maxSizeGib"] = json!(102);
    assert_eq!(
        rules
            .validate(&ValidationRequest::update(&new, &old))
            .errors
            .len(),
        1
    );
}

#[test]
fn a_finalizer_can_be_removed_from_an_invalid_object_that_is_being_deleted() {
    let mut old = database(&json!({"port": 80}));
    old["metadata"]["finalizers"] = json!(["database.example.com/finalizer"]);
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!([]);
    new["spec"]["port"] = json!(81);
    assert!(
        !rules()
            .validate(&ValidationRequest::update(&new, &old))
            .is_valid(),
        "not being deleted"
    );
    new["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert!(
        !rules()
            .validate(&ValidationRequest::update(&new, &old))
            .is_valid(),
        "not only metadata changes"
    );
    new["spec"]["port"] = json!(80);
    assert!(
        rules()
            .validate(&ValidationRequest::update(&new, &old))
            .is_valid()
    );
}

#[test]
fn a_misspelt_field_is_an_error_in_strict_decoding() {
    let object = database(&json!({"multiaz": true}));
    let result = rules().validate(&ValidationRequest::create(&object).deny_unknown_fields());
    assert_eq!(
        errors(&result),
        ["spec.multiaz: Forbidden: unknown field; did you mean `multiAz`?"]
    );
    assert!(
        rules()
            .validate(&ValidationRequest::create(&object))
            .is_valid()
    );
}

#[test]
fn an_unknown_field_in_the_old_object_is_not_a_change() {
    let old = database(&json!({"port": 80, "credentials": {"stray": 1}}));
    let new = database(&json!({"port": 80}));
    let result = rules().validate(&ValidationRequest::update(&new, &old));
    assert_eq!(errors(&result), Vec::<String>::new());
    assert_eq!(result.warnings.len(), 1, "the port was there before");
}

#[test]
fn a_null_field_counts_as_absent() {
    let object = database(&json!({"port": null, "databaseName": null, "instanceClass": null}));
    let result = rules().validate(&ValidationRequest::create(&object));
    assert_eq!(errors(&result), ["spec.instanceClass: Required value"]);
}

#[test]
fn a_field_omitted_on_update_keeps_its_old_value_instead_of_the_default() {
    let old = database(&json!({"engineVersion": "16.4", "port": 6000}));
    let new = database(&json!({}));
    let result = rules().validate(&ValidationRequest::update(&new, &old));
    assert_eq!(result.object["spec"]["engineVersion"], "16.4");
    assert_eq!(result.object["spec"]["port"], 6000);
    assert!(result.is_valid());
}

/// The webhook adds a default port, so the API server serializes the object and parses it again, which turns `100.0`
/// into `100`. If all defaults are already set, nothing is added, and a CEL rule gets the float.
#[test]
fn a_whole_float_becomes_an_integer_once_a_default_was_added() {
    let old = database(&json!({}));
    let new = database(&json!({"storage": {"sizeGib": 100.0, "maxSizeGib": 200}}));
    let result = rules().validate(&ValidationRequest::update(&new, &old));
    assert_eq!(errors(&result), Vec::<String>::new());
    let mut new = result.object;
    new["spec"]["storage"]["sizeGib"] = json!(100.0);
    let result = rules().validate(&ValidationRequest::update(&new, &old));
    assert!(
        errors(&result)[0].contains("expected int, got float64"),
        "{result:?}"
    );
}

#[test]
fn an_object_that_was_never_valid_is_corrected_as_if_it_were_new() {
    let mut stored = database(&json!({"credentials": {"username": "user"}}));
    let corrected = database(&json!({}));
    let result = |old: &Value| {
        rules().validate(
            &ValidationRequest::update(&corrected, old)
                .with_last_validated(LastValidated::from_status_of(old).as_ref()),
        )
    };
    assert_eq!(
        result(&stored).errors[0].rule,
        "username-immutable",
        "the controller has not validated it yet"
    );
    stored["status"] = json!({"conditions": [{"type": "Valid", "status": "False"}]});
    assert_eq!(errors(&result(&stored)), Vec::<String>::new());
}

/// Returns a database with overlapping windows, such as a rule of a later release might find in storage.
fn overlapping(spec: &Value) -> Value {
    let mut object = database(&json!({
        "backup": {"window": "04:30-05:30"},
        "maintenanceWindow": "sun:05:00-sun:06:00",
    }));
    json_merge(&mut object["spec"], spec);
    object
}

#[test]
fn a_ratcheted_error_stays_a_warning_until_the_values_that_cause_it_change() {
    let rules = rules();
    let stored = overlapping(&json!({}));
    // The controller has found this generation valid before the rule was added.
    let last_validated = LastValidated::from_object(&stored, rules.transition_fields());
    let result = rules.validate(
        &ValidationRequest::update(&stored, &stored).with_last_validated(Some(&last_validated)),
    );
    assert!(result.is_valid(), "{:?}", errors(&result));
    assert_eq!(result.ratcheted.listed.len(), 1);
    let last_validated = last_validated.with_ratcheted(&result.ratcheted);

    // An unrelated edit, validated by a controller without the old object.
    let edited = overlapping(&json!({"multiAz": false}));
    let result = rules
        .validate(&ValidationRequest::create(&edited).with_last_validated(Some(&last_validated)));
    assert!(result.is_valid(), "{:?}", errors(&result));
    assert_eq!(result.warnings.len(), 1);

    // Another overlap is another error.
    let worse = overlapping(&json!({"backup": {"window": "05:00-05:30"}}));
    let result = rules
        .validate(&ValidationRequest::create(&worse).with_last_validated(Some(&last_validated)));
    assert_eq!(result.errors.len(), 1);
}

#[test]
fn errors_of_schema_and_cel_are_ratcheted_in_the_same_way() {
    let rules = rules();
    let stored = database(&json!({
        "instanceClass": "t4g",
        "tags": {"aws:mine": "x"},
    }));
    let last_validated = LastValidated::from_object(&stored, rules.transition_fields());
    let result = rules.validate(
        &ValidationRequest::update(&stored, &stored).with_last_validated(Some(&last_validated)),
    );
    assert!(result.is_valid(), "{:?}", errors(&result));
    let last_validated = last_validated.with_ratcheted(&result.ratcheted);
    assert_eq!(last_validated.ratcheted.listed.len(), 2);
    let mut edited = stored.clone();
    edited["spec"]["port"] = json!(5433);
    let result = rules
        .validate(&ValidationRequest::create(&edited).with_last_validated(Some(&last_validated)));
    assert!(result.is_valid(), "{:?}", errors(&result));
    edited["spec"]["tags"]["team"] = json!("y");
    let result = rules
        .validate(&ValidationRequest::create(&edited).with_last_validated(Some(&last_validated)));
    assert_eq!(result.errors.len(), 1, "the tags have changed");
}

fn registry() -> ValidatorRegistry {
    ValidatorRegistry::default().register(std::sync::Arc::new(rules()))
}

#[test]
fn a_policy_sets_the_action_of_a_rust_rule() {
    let object = overlapping(&json!({}));
    let outcome = |action: &str| {
        let file = json!({"rules": {"CloudDatabase": {"overlapping-windows": action}}});
        let policy = Policy::read(&file, &registry()).expect("a policy");
        let result = rules().validate(&ValidationRequest::create(&object).with_policy(&policy));
        (
            result.errors.len(),
            result.warnings.len(),
            result.audit_violations.len(),
        )
    };
    assert_eq!(outcome("deny"), (1, 0, 0));
    assert_eq!(outcome("warn"), (0, 1, 0));
    assert_eq!(outcome("audit"), (0, 0, 1));
}

#[test]
fn a_violation_that_a_policy_only_audited_is_a_warning_once_the_rule_denies() {
    let rules = rules();
    let object = overlapping(&json!({}));
    let file = json!({"rules": {"CloudDatabase": {"overlapping-windows": "audit"}}});
    let policy = Policy::read(&file, &registry()).expect("a policy");
    let result = rules.validate(&ValidationRequest::create(&object).with_policy(&policy));
    let last_validated = LastValidated::from_object(&object, rules.transition_fields())
        .with_ratcheted(&result.ratcheted);
    let edited = overlapping(&json!({"multiAz": false}));
    let result = rules
        .validate(&ValidationRequest::create(&edited).with_last_validated(Some(&last_validated)));
    assert!(result.is_valid(), "{:?}", errors(&result));
    assert_eq!(result.warnings.len(), 1);
    assert_eq!(result.ratcheted, last_validated.ratcheted);
}

#[test]
fn a_policy_with_unknown_names_is_an_error() {
    let problem = |file: &Value| {
        Policy::read(file, &registry())
            .expect_err("no policy")
            .to_string()
    };
    for (file, expected) in [
        (
            json!({"rules": {"CloudDatabase": {"no-such": "warn"}}}),
            "rules.CloudDatabase.no-such: the rule is unknown; the subcommand `rules --kind CloudDatabase` lists",
        ),
        (
            json!({"rules": {"CloudDatabase": {"engine-immutable": "warn"}}}),
            "a cel rule is part of the CRD",
        ),
        (
            json!({"rules": {"CloudDatabase": {"spec.port/maximum": "warn"}}}),
            "a schema rule",
        ),
        (
            json!({"rules": {"Database": {}}}),
            "rules.Database: the kind is unknown; the registered kinds are CloudDatabase",
        ),
        (
            json!({"rules": {"CloudDatabase": {"overlapping-windows": "ignore"}}}),
            "overlapping-windows: the action \"ignore\" is unknown; set it to `deny`, `warn` or `audit`",
        ),
        (
            json!({"rules": {"CloudDatabase": {"overlapping-windows": 1}}}),
            "overlapping-windows: the action 1 is unknown; set it to `deny`, `warn` or `audit`",
        ),
        (
            json!({"rules": {"CloudDatabase": ["overlapping-windows"]}}),
            "rules.CloudDatabase: the value is a list and must be a mapping; a policy contains",
        ),
        (
            json!({"rules": "deny"}),
            "rules: the value is a text and must be a mapping; a policy contains `rules:`",
        ),
        (
            json!({"settings": {"no-such": {}}}),
            "settings.no-such: the section is unknown; the sections are",
        ),
        (
            json!({"rulez": {}}),
            "rulez: the key is unknown; a policy contains `rules:`",
        ),
        (
            json!([]),
            "the policy is a list and must be a mapping; a policy contains `rules:`",
        ),
    ] {
        assert!(
            problem(&file).contains(expected),
            "{file}: {}",
            problem(&file)
        );
    }
    assert_eq!(
        Policy::read(&Value::Null, &registry()).expect("empty"),
        Policy::default()
    );
}

#[test]
fn every_rule_has_a_description_and_a_source() {
    let catalogue = rules().rules();
    assert!(catalogue.len() > 80, "{} rules", catalogue.len());
    for entry in &catalogue {
        assert!(
            entry.reference.starts_with("http") || entry.reference.starts_with("Lockstep's own"),
            "{entry:?}"
        );
        assert!(
            entry.description.ends_with('.') && !entry.fields.is_empty(),
            "{entry:?}"
        );
    }
    let mut ids: Vec<_> = catalogue.iter().map(|entry| &entry.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), catalogue.len(), "an id occurs twice");
}

#[test]
fn an_update_warns_of_interruptions_and_of_changes_that_wait() {
    let rules = rules();
    let warnings = |old: &Value, new: &Value, status: &Value| {
        let (mut old, mut new) = (database(old), database(new));
        old["status"] = status.clone();
        new["status"] = status.clone();
        let result = rules.validate(&ValidationRequest::update(&new, &old));
        let warnings = result.warnings.iter().map(|it| it.error.to_string());
        warnings.collect::<Vec<_>>()
    };
    let created = json!({"arn": "arn:aws:rds:eu-central-1:123456789012:db:cdb-1"});
    let class = json!({"instanceClass": "db.m7g.large"});
    let expected = "spec.instanceClass: RDS applies this change now, with a restart of the database [change-with-outage]";
    assert_eq!(warnings(&json!({}), &class, &created), [expected]);
    assert_eq!(warnings(&json!({}), &class, &Value::Null), [expected]);
    // There is no instance yet.
    let none = Vec::<String>::new();
    assert_eq!(warnings(&json!({}), &class, &json!({"message": "x"})), none);
    assert_eq!(
        warnings(
            &json!({}),
            &json!({"multiAz": true, "instanceClass": "db.t4g.micro"}),
            &created
        )
        .len(),
        1,
        "only that the class is burstable"
    );
    let waits = warnings(&json!({}), &json!({"parameterGroup": "tuned"}), &created);
    assert!(waits[0].ends_with("[change-at-next-restart]"), "{waits:?}");
    let port = json!({"port": 5433, "applyChanges": "MaintenanceWindow"});
    let port = warnings(&json!({}), &port, &created);
    assert!(port[0].ends_with("[change-not-requested]"), "{port:?}");
    let version = warnings(
        &json!({"engineVersion": "16.4"}),
        &json!({"engineVersion": "17"}),
        &created,
    );
    assert_eq!(version.len(), 1, "{version:?}");
    assert!(version[0].contains("set `allowMajorVersionUpgrade` to '17'"));
}

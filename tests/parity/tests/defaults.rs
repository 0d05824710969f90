//! Defaulting of random objects: it only adds fields, is idempotent, loses nothing, and reaches nested fields.

use std::path::Path;

use lockstep_cloud_database_api::ruleset;
use lockstep_shared_validation::{CrdValidator, ValidationRequest, Validator};
use parity::files::read_crd;
use parity::generate::Generator;
use parity::mutate::Mutator;
use serde_json::{Value, json};

fn crd(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    read_crd(&path).expect("the CRD is readable")
}

/// Validates an object and checks its defaults.
fn check(validator: &dyn Validator, schema: &Value, object: &Value) {
    let result = validator.validate(&ValidationRequest::create(object));
    let filled = &result.object;
    let context = || {
        format!(
            "{object}\nwas changed to\n{filled}\nby the patch\n{:?}",
            result.defaults
        )
    };
    assert!(
        contains(object, filled),
        "defaulting has changed or removed a value:\n{}",
        context()
    );

    let mut patched = object.clone();
    json_patch::patch(&mut patched, &result.defaults)
        .unwrap_or_else(|error| panic!("{error}:\n{}", context()));
    assert_eq!(
        &patched,
        filled,
        "the patch does not produce the defaulted object:\n{}",
        context()
    );

    let again = validator.validate(&ValidationRequest::create(filled));
    assert_eq!(
        &again.object,
        filled,
        "defaulting is not idempotent:\n{}",
        context()
    );
    assert!(
        again.defaults.0.is_empty(),
        "defaulting is not idempotent:\n{}",
        context()
    );

    // The API server sets no defaults in `metadata`, and a `status` has none.
    let mut own = filled.clone();
    for foreign in ["metadata", "status"] {
        own.as_object_mut().map(|fields| fields.remove(foreign));
    }
    assert!(
        reaches(schema, &own),
        "a default is missing:\n{}",
        context()
    );
}

/// Returns true if all original values are unchanged. A null counts as a missing field.
fn contains(written: &Value, filled: &Value) -> bool {
    match (written, filled) {
        (Value::Null, _) => true,
        (Value::Object(written), Value::Object(filled)) => written
            .iter()
            .filter(|(_, value)| !value.is_null())
            .all(|(name, value)| {
                filled
                    .get(name)
                    .is_some_and(|filled| contains(value, filled))
            }),
        (Value::Array(written), Value::Array(filled)) => {
            written.len() == filled.len() && written.iter().zip(filled).all(|(a, b)| contains(a, b))
        }
        _ => written == filled,
    }
}

/// Returns true if every default of the schema is set in every existing parent.
fn reaches(schema: &Value, value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            let properties = schema["properties"].as_object();
            properties.into_iter().flatten().all(|(name, child)| {
                fields
                    .get(name)
                    .map_or(child["default"].is_null(), |value| reaches(child, value))
            }) && (!schema["additionalProperties"].is_object()
                || fields
                    .values()
                    .all(|value| reaches(&schema["additionalProperties"], value)))
        }
        Value::Array(items) => items.iter().all(|item| reaches(&schema["items"], item)),
        _ => true,
    }
}

fn schema_of(crd: &Value) -> Value {
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

#[test]
fn defaults_of_a_crd_with_every_keyword_are_complete_and_idempotent() {
    let crd = crd("tests/cases/probe/crd.json");
    let resource = CrdValidator::compile_served(&crd)
        .expect("the CRD compiles")
        .remove(0);
    for seed in [parity::seed(), 2] {
        let mut generator = Generator::new(&crd, resource.version(), seed);
        for _ in 0..2000 {
            check(&resource, &schema_of(&crd), &generator.next_object());
        }
    }
}

#[test]
fn defaults_of_databases_are_complete_and_idempotent() {
    let ruleset = ruleset().expect("the ruleset compiles");
    let schema = schema_of(ruleset.crd());
    let minimal = json!({
        "apiVersion": "database.example.com/v1alpha1",
        "kind": "CloudDatabase",
        "metadata": {"name": "orders"},
        "spec": {
            "engine": "postgres",
            "instanceClass": "db.t4g.micro",
            "storage": {"sizeGib": 100, "unknown": {"a": [1, null]}},
            "credentials": {"username": "app", "secretName": "orders", "selectors": {"password": "pw"}},
            "backup": {},
            "stray": null,
        },
    });
    check(&ruleset, &schema, &minimal);
    for seed in [parity::seed(), 2] {
        let mut mutator = Mutator::new(vec![minimal.clone()], seed);
        let mut generator = Generator::new(ruleset.crd(), ruleset.version(), seed);
        for _ in 0..2000 {
            check(&ruleset, &schema, &mutator.mutated(&minimal).value);
            check(&ruleset, &schema, &generator.next_object());
        }
    }
}

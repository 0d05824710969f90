//! Defaults, over objects of every sort: they add, add once, lose nothing and reach below.

use std::path::Path;

use cloud_database_rules::ruleset;
use parity::files::read_crd;
use parity::generate::Generator;
use parity::mutate::Mutator;
use serde_json::{Value, json};
use shared_validation::{CrdValidator, ValidationRequest, Validator};

fn crd(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    read_crd(&path).expect("the CRD")
}

/// Judges an object and checks what was filled in.
fn check(judge: &dyn Validator, schema: &Value, object: &Value) {
    let verdict = judge.validate(&ValidationRequest::create(object));
    let filled = &verdict.object;
    let context = || format!("{object}\nbecame\n{filled}\nby\n{:?}", verdict.defaults);
    assert!(keeps(object, filled), "something is lost:\n{}", context());

    let mut patched = object.clone();
    json_patch::patch(&mut patched, &verdict.defaults)
        .unwrap_or_else(|error| panic!("{error}:\n{}", context()));
    assert_eq!(
        &patched,
        filled,
        "the patch does something else:\n{}",
        context()
    );

    let again = judge.validate(&ValidationRequest::create(filled));
    assert_eq!(&again.object, filled, "not idempotent:\n{}", context());
    assert!(
        again.defaults.0.is_empty(),
        "not idempotent:\n{}",
        context()
    );

    // The API server fills neither of these, and a `status` has no default.
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

/// Whether everything written is still there. A null counts as left out.
fn keeps(written: &Value, filled: &Value) -> bool {
    match (written, filled) {
        (Value::Null, _) => true,
        (Value::Object(written), Value::Object(filled)) => written
            .iter()
            .filter(|(_, value)| !value.is_null())
            .all(|(name, value)| filled.get(name).is_some_and(|filled| keeps(value, filled))),
        (Value::Array(written), Value::Array(filled)) => {
            written.len() == filled.len() && written.iter().zip(filled).all(|(a, b)| keeps(a, b))
        }
        _ => written == filled,
    }
}

/// Whether every default of the schema is there, wherever what it stands in is.
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
fn of_a_crd_with_every_keyword() {
    let crd = crd("tests/cases/probe/crd.json");
    let resource = CrdValidator::compile_served(&crd)
        .expect("it compiles")
        .remove(0);
    for seed in [parity::seed(), 2] {
        let mut generator = Generator::new(&crd, resource.version(), seed);
        for _ in 0..2000 {
            check(&resource, &schema_of(&crd), &generator.next_object());
        }
    }
}

#[test]
fn of_databases() {
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

//! Every value of the chart has an effect. The cases are in `values.yaml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use super::{chart, documents, objects};

fn cases() -> Vec<Value> {
    let cases = documents(include_str!("values.yaml")).remove(0);
    serde_json::from_value(cases).expect("a list")
}

#[test]
fn each_value_has_its_effect() {
    // Many cases have the same values.
    let mut rendered: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut failures = Vec::new();
    for case in cases() {
        let values = &case["values"];
        let objects = rendered
            .entry(values.to_string())
            .or_insert_with(|| objects("lockstep", values));
        failures.extend(failure(&case, objects));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn failure(case: &Value, objects: &[Value]) -> Option<String> {
    let text = |name: &str| {
        case[name]
            .as_str()
            .unwrap_or_else(|| panic!("{name}: {case}"))
    };
    let (kind, name) = text("object").split_once('/').expect("a kind and a name");
    let mut found = objects
        .iter()
        .filter(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    let object = found.next().cloned().unwrap_or_default();
    let field = text("field");
    let (pointer, is_element) = match field.strip_suffix("/*") {
        Some(list) => (list, true),
        None => (field, false),
    };
    let value = object.pointer(pointer).cloned().unwrap_or_default();
    let expected = &case["expected"];
    let is_so = if is_element {
        let items = value.as_array();
        items.is_some_and(|items| items.contains(expected))
    } else {
        value == *expected
    };
    (!is_so).then(|| format!("{case}: the value is {value}"))
}

/// Adds the paths of all values that are not objects themselves, or are empty objects.
fn leaves(value: &Value, path: &str, all: &mut BTreeSet<String>) {
    match value.as_object().filter(|fields| !fields.is_empty()) {
        Some(fields) => {
            for (name, value) in fields {
                leaves(value, &format!("{path}.{name}"), all);
            }
        }
        None => {
            all.insert(path.to_owned());
        }
    }
}

#[test]
fn each_value_of_the_chart_is_tested() {
    let text = fs::read_to_string(chart("lockstep").join("values.yaml")).expect("the values");
    let mut known = BTreeSet::new();
    leaves(&documents(&text)[0], "", &mut known);
    let mut tested = BTreeSet::new();
    for case in cases() {
        leaves(&case["values"], "", &mut tested);
    }
    // The chart does not read the first two. The dashboards are tested with their files.
    let exceptions = [".enabled", ".global", ".metrics.dashboards"];
    let missing: Vec<_> = known
        .iter()
        .filter(|path| {
            !exceptions
                .iter()
                .any(|exception| path.starts_with(exception))
        })
        .filter(|path| {
            let within = |test: &String| test == *path || test.starts_with(&format!("{path}."));
            // A value that replaces a whole object covers its fields.
            !tested
                .iter()
                .any(|test| within(test) || path.starts_with(&format!("{test}.")))
        })
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The rules in the README and the schema cannot drift from the values.
#[test]
fn the_schema_knows_each_value_of_the_chart() {
    for name in ["lockstep", "lockstep-crds"] {
        let read = |file: &str| fs::read_to_string(chart(name).join(file)).expect("a file");
        let values = documents(&read("values.yaml")).remove(0);
        let schema: Value = serde_json::from_str(&read("values.schema.json")).expect("a schema");
        let mut unknown = Vec::new();
        compare(&values, &schema, name, &mut unknown);
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}

/// Adds the properties that only one of the values and the schema has.
fn compare(values: &Value, schema: &Value, path: &str, unknown: &mut Vec<String>) {
    let (Some(fields), Some(properties)) = (values.as_object(), schema["properties"].as_object())
    else {
        return;
    };
    for name in fields.keys().chain(properties.keys()) {
        let path = format!("{path}.{name}");
        match (fields.get(name), properties.get(name)) {
            (Some(value), Some(schema)) => compare(value, schema, &path, unknown),
            // Free-form objects, whose defaults are empty or those of Kubernetes.
            _ if fields.is_empty() || path.ends_with(".resources.claims") => {}
            _ => unknown.push(path),
        }
    }
}

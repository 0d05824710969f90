//! Property test of the conversion between the versions of a kind.

mod random_object;

use std::fmt::Write as _;

use fastrand::Rng;
use lockstep_shared_validation::{Ruleset, ValidatedResource, Validator, VersionMapping};
use serde_json::Value;

use crate::conversion::random_object::random_value;

/// Number of random objects of each version.
const OBJECTS: u64 = 500;

/// Asserts that the [additional versions](ValidatedResource::additional_versions) of a kind are converted without loss.
///
/// - Each path of a mapping names a field of the version that it belongs to.
/// - Random objects that have the fields of the schema of their version are converted to every other version and back. The
///   result is the original object, and no converted object has a field that the schema of its version does not have: the
///   API server would remove it.
///
/// The objects are the same in each run.
///
/// ```no_run
/// # use lockstep_shared_validation::ValidatedResource;
/// # fn example<Greeting: ValidatedResource>() {
/// lockstep_test::assert_lossless_conversion::<Greeting>();
/// # }
/// ```
///
/// # Panics
///
/// If a path or an object contradicts that, or if the kind has one version only.
pub fn assert_lossless_conversion<K: ValidatedResource>() {
    let mappings = K::additional_versions();
    assert!(
        !mappings.is_empty(),
        "{} has one version only: there is nothing to convert",
        K::KIND
    );
    let crd = K::crd();
    let versions = versions(&crd);
    for mapping in &mappings {
        let wrong = unknown_paths(mapping, K::VERSION, &versions);
        assert!(wrong.is_empty(), "{}: {wrong}", K::KIND);
    }
    let ruleset = Ruleset::<K>::compile().expect("the rules compile");
    let convert = |object: &Value, version: &str| {
        let converted = ruleset.convert(object, &format!("{}/{version}", K::GROUP));
        converted.expect("a version of the kind")
    };
    for (from, schema) in &versions {
        for seed in 0..OBJECTS {
            let mut object = random_value(schema, &mut Rng::with_seed(seed));
            object["apiVersion"] = format!("{}/{from}", K::GROUP).into();
            object["kind"] = K::KIND.into();
            object["metadata"] = serde_json::json!({"name": "converted", "namespace": "default"});
            for (to, target) in versions.iter().filter(|(to, _)| to != from) {
                let converted = convert(&object, to);
                if let Some(path) = unknown_field(target, &converted, "") {
                    panic!("{from} to {to}: the schema has no field `{path}`: {converted:#}");
                }
                let back = convert(&converted, from);
                assert_eq!(back, object, "{from} to {to} and back");
            }
        }
    }
}

/// Returns the names of the versions with their schemas.
fn versions(crd: &Value) -> Vec<(String, Value)> {
    let versions = crd["spec"]["versions"].as_array();
    let versions = versions.into_iter().flatten().map(|version| {
        let name = version["name"].as_str().unwrap_or_default();
        (
            name.to_owned(),
            version["schema"]["openAPIV3Schema"].clone(),
        )
    });
    versions.collect()
}

/// Returns a line for each path of a mapping that names no field.
fn unknown_paths(
    mapping: &VersionMapping,
    validated: &str,
    versions: &[(String, Value)],
) -> String {
    let moved = mapping.moves.iter();
    let here = moved.flat_map(|(from, to)| [(validated, *from), (mapping.name, *to)]);
    let only = mapping.only_in_storage.iter();
    let only = only.map(|path| (validated, *path));
    let added = mapping.only_in_version.iter();
    let added = added.map(|(path, _)| (mapping.name, *path));
    let mut lines = String::new();
    for (version, path) in here.chain(only).chain(added) {
        let schema = versions.iter().find(|(name, _)| name == version);
        let exists = schema.is_some_and(|(_, schema)| has_path(schema, path));
        if !exists {
            let other = mapping.name;
            let _ = writeln!(
                lines,
                "the mapping of {other} names `{path}`, which is no field of {version}"
            );
        }
    }
    lines
}

fn has_path(schema: &Value, path: &str) -> bool {
    let mut names = path.split('.');
    let end = names.try_fold(schema, |schema, name| schema["properties"].get(name));
    end.is_some()
}

/// Returns the path of the first field that the API server would remove.
fn unknown_field(schema: &Value, value: &Value, path: &str) -> Option<String> {
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return None;
    }
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            // Every object has them, whether the schema names them or not.
            let is_of_every_object = matches!(
                path.as_str(),
                ".apiVersion" | ".kind" | ".metadata" | ".status"
            );
            if is_of_every_object {
                return None;
            }
            let schemas = [&schema["properties"][name], &schema["additionalProperties"]];
            match schemas.into_iter().find(|schema| schema.is_object()) {
                Some(schema) => unknown_field(schema, value, &path),
                None if schema["additionalProperties"] == true => None,
                None => Some(path.trim_start_matches('.').to_owned()),
            }
        }),
        Value::Array(items) => items
            .iter()
            .find_map(|item| unknown_field(&schema["items"], item, &format!("{path}[*]"))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    /// Lamp whose mapping moves `spec.watts` to this path, and whose other version has this field.
    macro_rules! lamp {
        ($name:ident, $moved_to:literal, $other_field:literal) => {
            #[derive(Deserialize)]
            struct $name {}

            impl ValidatedResource for $name {
                const GROUP: &'static str = "example.com";
                const VERSION: &'static str = "v1";
                const KIND: &'static str = "Lamp";

                fn crd() -> Value {
                    crd($other_field)
                }

                fn example() -> Value {
                    json!({"spec": {}})
                }

                fn additional_versions() -> Vec<VersionMapping> {
                    vec![
                        VersionMapping::new("v1beta1")
                            .moves(&[("spec.watts", $moved_to)])
                            .only_in_storage(&["spec.note"]),
                    ]
                }
            }
        };
    }

    lamp!(Lamp, "spec.power", "power");
    lamp!(LampWithTypo, "spec.powre", "power");
    lamp!(LampWithoutField, "spec.color", "color");

    fn crd(other_field: &str) -> Value {
        let version = |name: &str, fields: Value| {
            json!({
                "name": name, "served": true, "storage": name == "v1",
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": fields},
                }}},
            })
        };
        let mut other = json!({"hours": {"type": "array", "items": {"type": "integer"}}});
        other[other_field] = json!({"type": "integer"});
        if other_field == "color" {
            // Forgotten in the other version.
            other.as_object_mut().expect("fields").remove("hours");
        }
        let fields = json!({
            "watts": {"type": "integer"}, "note": {"type": "string"},
            "hours": {"type": "array", "items": {"type": "integer"}},
        });
        json!({
            "metadata": {"name": "lamps.example.com"},
            "spec": {
                "group": "example.com", "names": {"kind": "Lamp", "plural": "lamps"}, "scope": "Namespaced",
                "versions": [version("v1", fields), version("v1beta1", other)],
            },
        })
    }

    #[test]
    fn a_mapping_that_agrees_with_the_schemas_passes() {
        assert_lossless_conversion::<Lamp>();
    }

    #[test]
    #[should_panic(
        expected = "the mapping of v1beta1 names `spec.powre`, which is no field of v1beta1"
    )]
    fn a_path_that_names_no_field_is_an_error() {
        assert_lossless_conversion::<LampWithTypo>();
    }

    #[test]
    #[should_panic(expected = "v1 to v1beta1: the schema has no field `spec.hours`")]
    fn a_field_that_the_api_server_would_remove_is_an_error() {
        assert_lossless_conversion::<LampWithoutField>();
    }
}

//! Workloads that have all fields together, and what their objects must contain: the input of a test with an API server.

use serde_json::{Map, Value, json};

use super::{Effect, Kind, Row, input, rows, value};

const PATH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../tests/e2e/vector_fields.json"
);

#[test]
fn the_manifests_have_every_field_with_an_effect_on_objects() {
    let manifests: Vec<_> = Kind::ALL.into_iter().flat_map(desired).collect();
    let text = serde_json::to_string_pretty(&manifests).expect("JSON") + "\n";
    if std::env::var_os("LOCKSTEP_UPDATE").is_some() {
        std::fs::write(PATH, &text).expect("the file can be written");
    }
    let committed = std::fs::read_to_string(PATH).expect("the file");
    assert!(
        committed == text,
        "tests/e2e/vector_fields.json is not current: run this test with LOCKSTEP_UPDATE=1"
    );
}

/// Fields that one workload can have.
#[derive(Default)]
struct Group {
    rows: Vec<(String, Row)>,
    /// Fields by their path.
    fields: Map<String, Value>,
    /// The workload has checks in Pods. Until one has succeeded, it runs no pipeline and has no Services.
    is_checked: bool,
}

/// Returns a workload for each group of fields, and the effects of the fields.
fn desired(kind: Kind) -> Vec<Value> {
    let mut groups: Vec<Group> = Vec::new();
    for (path, row) in rows(kind) {
        if !matches!(row.effect, Effect::Objects(_)) {
            continue;
        }
        let fits = groups
            .iter()
            .position(|group| group.fits(kind, &path, &row));
        let at = fits.unwrap_or_else(|| {
            groups.push(Group {
                is_checked: is_check(&path),
                ..Group::default()
            });
            groups.len() - 1
        });
        groups[at].fields = groups[at].with(&path, &row).expect("no conflict");
        groups[at].rows.push((path, row));
    }
    groups.iter().map(|group| group.manifest(kind)).collect()
}

fn is_check(path: &str) -> bool {
    path.contains("configCheck.")
}

impl Group {
    /// Returns the fields of the group and of a row, unless a field has two values.
    fn with(&self, path: &str, row: &Row) -> Option<Map<String, Value>> {
        let prefix = path.strip_suffix(row.field).expect("the path ends so");
        let mut added = Map::new();
        for (name, given) in row.given.as_object().expect("fields") {
            flatten(&format!("{prefix}{name}"), given, &mut added);
        }
        added.insert(path.to_owned(), row.value.clone());
        let mut fields = self.fields.clone();
        for (path, value) in added {
            let known = fields.insert(path, value.clone());
            if known.is_some_and(|known| known != value) {
                return None;
            }
        }
        Some(fields)
    }

    /// Returns true if the effects of all rows are the same with one more row.
    fn fits(&self, kind: Kind, path: &str, row: &Row) -> bool {
        let Some(fields) = self.with(path, row) else {
            return false;
        };
        let rows = self.rows.iter().map(|(path, row)| (path.as_str(), row));
        is_check(path) == self.is_checked
            && rows
                .chain([(path, row)])
                .all(|(path, row)| has_effect(kind, path, row, &fields))
    }

    fn manifest(&self, kind: Kind) -> Value {
        let mut spec = json!({});
        for (path, value) in &self.fields {
            let mut at = &mut spec;
            for name in path.split('.') {
                at = &mut at[name];
            }
            *at = value.clone();
        }
        let effects = self.rows.iter().flat_map(|(path, row)| {
            let Effect::Objects(effects) = &row.effect else {
                return Vec::new();
            };
            let effects = effects.iter().map(|(child, suffix, pointer, expected)| {
                let child = match *child {
                    "workload" => kind.workload(),
                    child => child,
                };
                json!({"field": path, "kind": child, "suffix": suffix, "pointer": pointer, "value": expected})
            });
            effects.collect()
        });
        json!({"kind": format!("{kind:?}"), "spec": spec, "effects": effects.collect::<Vec<_>>()})
    }
}

/// Adds the fields of an object by their paths.
fn flatten(path: &str, value: &Value, fields: &mut Map<String, Value>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                flatten(&format!("{path}.{name}"), value, fields);
            }
        }
        value => {
            fields.insert(path.to_owned(), value.clone());
        }
    }
}

/// Returns true if a row has its effect in a workload with these fields.
fn has_effect(kind: Kind, path: &str, row: &Row, fields: &Map<String, Value>) -> bool {
    let mut workload = input(kind, path, row);
    for (path, value) in fields {
        workload = workload.with(path, value.clone());
    }
    let Effect::Objects(effects) = &row.effect else {
        return true;
    };
    let namespace = super::namespace(kind);
    effects.iter().all(|(child, suffix, pointer, expected)| {
        let expected = super::in_namespace(expected, namespace);
        value(&workload, child, suffix, pointer) == expected
    })
}

//! Enrichment tables in memory.

use lockstep_shared_validation::{FieldError, FieldPath};
use serde_json::{Map, Value};

use crate::diagnostic::{Check, DiagnosticList};
use crate::enrichment_tables::BLOCK;

/// Options that a filter does not have, with the only value that Vector accepts beside it.
const NOT_OF_BLOOM: [(&str, Option<u64>); 3] = [
    ("ttl", Some(600)),
    ("ttl_field", None),
    ("scan_interval", Some(30)),
];

/// Validates that the writes of a table become visible after a while. The table panics otherwise, even if it has no
/// inputs. A table with a filter, from 0.58 on, has fewer options.
pub(crate) fn validate(config: &Map<String, Value>, problems: &mut DiagnosticList) {
    let tables = config.get(BLOCK).and_then(Value::as_object);
    for (id, table) in tables.into_iter().flatten() {
        if table["type"] == "memory" && table["flush_interval"] == 0 {
            let path = FieldPath::new(BLOCK).key(id).child("flush_interval");
            let detail = "must be greater than 0: Vector panics at start";
            problems.add(Check::StartUp, FieldError::invalid(path, 0, detail));
        }
        if table["type"] == "memory" && table["filter"].is_object() {
            of_filter(&FieldPath::new(BLOCK).key(id), table, problems);
        }
    }
}

fn of_filter(path: &FieldPath, table: &Value, problems: &mut DiagnosticList) {
    let mut forbid = |option: &str, detail: &str| {
        let error = FieldError::forbidden(path.child(option), detail);
        problems.add(Check::StartUp, error);
    };
    if !table["source_config"].is_null() {
        forbid(
            "source_config",
            "cannot be set beside `filter`: a filter does not have the values of a source",
        );
    }
    let is_bloom = table["filter"]["type"] == "bloom";
    for (option, allowed) in NOT_OF_BLOOM.into_iter().filter(|_| is_bloom) {
        let is_allowed = |value: &Value| allowed.is_some() && value.as_u64() == allowed;
        if !table[option].is_null() && !is_allowed(&table[option]) {
            forbid(
                option,
                "cannot be set beside a `bloom` filter, which forgets nothing",
            );
        }
    }
}

//! Enrichment tables in memory.

use lockstep_shared_validation::{FieldError, FieldPath};
use serde_json::{Map, Value};

use crate::diagnostic::{Check, DiagnosticList};
use crate::enrichment_tables::BLOCK;
use crate::start_up::memory_filters;

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
            memory_filters::validate(&FieldPath::new(BLOCK).key(id), table, problems);
        }
    }
}

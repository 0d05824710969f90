//! Values that Vector cannot read. Vector converts a configuration to the TOML data model, which has no null and whose
//! integers have 64 bits with a sign.

use lockstep_shared_validation::{FieldError, LazyPath};
use serde_json::Value;

use crate::diagnostic::{Check, DiagnosticList};
use crate::option_path::lazily_below;

/// Reports every value that Vector cannot read.
pub(crate) fn validate(value: &Value, path: &LazyPath<'_>, problems: &mut DiagnosticList) {
    match value {
        Value::Null => {
            let detail = "Vector does not accept null; remove the option";
            let error = FieldError::invalid(path.to_path(), Value::Null, detail);
            problems.add(Check::Readable, error);
        }
        Value::Number(number) if number.as_u64().is_some_and(|n| i64::try_from(n).is_err()) => {
            let detail = "Vector does not accept integers above 9223372036854775807";
            let error = FieldError::invalid(path.to_path(), value.clone(), detail);
            problems.add(Check::Readable, error);
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                validate(item, &path.index(index), problems);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                validate(value, &lazily_below(path, name), problems);
            }
        }
        _ => {}
    }
}

//! Fields of the scale subresource. The API server reads them on every write, independent of the schema.

use serde_json::Value;

use crate::field::error::FieldError;
use crate::field::path::FieldPath;
use crate::field::text::{BoundedText, MAX_VALUE_BYTES};
use crate::format::go_fmt;
use crate::layer::LayerContext;
use crate::report::Report;
use crate::violation::{Layer, Violation};

/// Validates the fields that the subresource shows. Their errors are never ratcheted.
pub(crate) fn validate(case: &LayerContext<'_>, report: &mut Report<'_>) {
    let Some(scale) = case.scale else {
        return;
    };
    replicas(case.object, &scale.spec_replicas, report);
    let with_status = if case.has_status_subresource {
        case.old
    } else {
        Some(case.object)
    };
    let Some(with_status) = with_status else {
        return;
    };
    replicas(with_status, &scale.status_replicas, report);
    if let Some(path) = &scale.label_selector {
        let selector = read(with_status, path).and_then(|selector| match selector {
            Some(Value::String(_)) | None => Ok(()),
            Some(other) => Err(unexpected(&names(path), other, "string")),
        });
        if let Err(detail) = selector {
            report_invalid(path, Value::from(""), detail, report);
        }
    }
}

fn replicas(object: &Value, path: &str, report: &mut Report<'_>) {
    let count = read(object, path).and_then(|count| match count {
        None => Ok(0),
        Some(count) => count
            .as_i64()
            .ok_or_else(|| unexpected(&names(path), count, "int64")),
    });
    match count {
        Err(detail) => report_invalid(path, 0.into(), detail, report),
        Ok(count) if count < 0 => {
            let detail = "should be a non-negative integer".to_owned();
            report_invalid(path, count.into(), detail, report);
        }
        Ok(count) if count > i32::MAX.into() => {
            let detail = format!("should be less than or equal to {}", i32::MAX);
            report_invalid(path, count.into(), detail, report);
        }
        Ok(_) => {}
    }
}

fn names(path: &str) -> Vec<&str> {
    path.trim_start_matches('.').split('.').collect()
}

/// Returns the value at a path of plain names, if it exists.
fn read<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let names = names(path);
    let mut value = object;
    for (depth, name) in names.iter().enumerate() {
        match value {
            Value::Null => return Ok(None),
            Value::Object(fields) => match fields.get(*name) {
                Some(field) => value = field,
                None => return Ok(None),
            },
            other => {
                return Err(unexpected(
                    &names[..=depth],
                    other,
                    "map[string]interface{}",
                ));
            }
        }
    }
    Ok(Some(value))
}

fn unexpected(names: &[&str], value: &Value, expected: &str) -> String {
    let mut shown = BoundedText::new(MAX_VALUE_BYTES);
    // An error means that the text is complete up to its maximum length.
    let _ = go_fmt::write_plain(value, &mut shown);
    format!(
        ".{} accessor error: {} is of the type {}, expected {expected}",
        names.join("."),
        shown.finish(),
        go_fmt::type_name(value),
    )
}

fn report_invalid(path: &str, value: Value, detail: String, report: &mut Report<'_>) {
    let at = FieldPath::new(path.trim_start_matches('.'));
    let violation = Violation {
        rule: format!("{}/scale", at.as_str()),
        layer: Layer::Schema,
        at,
        error: FieldError::invalid(FieldPath::new(path), value, detail),
        inputs: None,
    };
    report.deny_or_ratchet(violation, false);
}

//! Structural layer: validates an object by the schema as the API server does.
//!
//! The order of the checks, the conditions under which checks are skipped, and the messages are those of
//! <https://pkg.go.dev/k8s.io/kube-openapi/pkg/validation/validate>.

mod embedded_resource;
mod list_type;
mod number;
mod outcome;
mod scale_subresource;
mod validate;

use serde_json::{Number, Value};

pub(crate) use crate::structural::scale_subresource::Scale;

use crate::correlation::Correlation;
use crate::layer::{LayerContext, ValidationLayer};
use crate::report::Report;

/// Validator for the structural schema.
pub(crate) struct Structural;

impl ValidationLayer for Structural {
    fn validate(&self, case: &LayerContext<'_>, report: &mut Report<'_>) {
        let correlation = case
            .old
            .map(|old| Correlation::new(case.schema, case.object, old));
        validate::root(case, correlation, report);
        scale_subresource::validate(case, report);
        embedded_resource::validate(case, report);
        list_type::validate(case, report);
    }
}

/// Returns the number as an integer, if it is one. Like the API server, this accepts `1.0`.
pub(crate) fn as_integer(number: &Number) -> Option<i128> {
    if let Some(n) = number.as_i64() {
        return Some(n.into());
    }
    if let Some(n) = number.as_u64() {
        return Some(n.into());
    }
    let float = number.as_f64()?;
    // Integers beyond 2^53 cannot be distinguished as floats; the API server rejects them.
    #[expect(clippy::cast_possible_truncation, reason = "bounded by 2^53")]
    (float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_991.0).then_some(float as i128)
}

pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_i64().is_none() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_floats_are_integers() {
        let number = |f: f64| Number::from_f64(f).expect("finite");
        assert_eq!(as_integer(&number(10.0)), Some(10));
        assert_eq!(as_integer(&number(10.5)), None);
    }
}

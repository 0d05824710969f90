//! The bounds of a number.

use serde_json::{Number, Value};

use crate::field_error::FieldError;
use crate::field_path::Cursor;
use crate::go;
use crate::schema::{Bound, JsonType, NumberFormat, Schema};
use crate::structural::walk::Outcome;

/// Two to the 63rd: the first float that is no 64-bit integer.
const I64_LIMIT: f64 = 9_223_372_036_854_775_808.0;

/// A number as the API server holds it.
#[derive(Clone, Copy)]
enum Held {
    Integer(i64),
    Float(f64),
}

impl Held {
    fn of(number: &Number) -> Self {
        number.as_i64().map_or_else(
            || Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            Self::Integer,
        )
    }
}

pub(super) fn judge(outcome: &mut Outcome, schema: &Schema, number: &Number, at: Cursor<'_>) {
    let held = Held::of(number);
    if !is_within_format(schema, held) {
        out_of_format(outcome, schema, at);
    }
    if let Some(factor) = schema.multiple_of {
        multiple(outcome, held, number, factor, at);
    }
    if let Some(bound) = &schema.maximum
        && breaks(
            held,
            bound,
            |value, bound| value > bound,
            |value, bound| value > bound,
        )
    {
        let relation = if bound.exclusive {
            "less than"
        } else {
            "less than or equal to"
        };
        compared(outcome, "maximum", held, number, relation, bound, at);
    }
    if let Some(bound) = &schema.minimum
        && breaks(
            held,
            bound,
            |value, bound| value < bound,
            |value, bound| value < bound,
        )
    {
        let relation = if bound.exclusive {
            "greater than"
        } else {
            "greater than or equal to"
        };
        compared(outcome, "minimum", held, number, relation, bound, at);
    }
}

/// Whether two numbers are the same to `enum`: an integer option takes a float by its whole part.
pub(super) fn is_same(option: &Number, value: &Number) -> bool {
    match (Held::of(option), Held::of(value)) {
        (Held::Integer(option), Held::Integer(value)) => option == value,
        #[expect(clippy::cast_possible_truncation, reason = "as Go converts")]
        (Held::Integer(option), Held::Float(value)) => option == value as i64,
        #[expect(clippy::cast_precision_loss, reason = "as Go converts")]
        (Held::Float(option), Held::Integer(value)) => equal(option, value as f64),
        (Held::Float(option), Held::Float(value)) => equal(option, value),
    }
}

#[expect(clippy::float_cmp, reason = "the very value is asked for")]
fn equal(a: f64, b: f64) -> bool {
    a == b
}

fn is_within_format(schema: &Schema, held: Held) -> bool {
    match (schema.json_type, held) {
        (Some(JsonType::Integer), Held::Integer(value)) => {
            schema.number_format != Some(NumberFormat::Int32) || i32::try_from(value).is_ok()
        }
        (Some(JsonType::Integer), Held::Float(value)) => {
            let most = match schema.number_format {
                Some(NumberFormat::Int32) => f64::from(i32::MAX),
                _ => I64_LIMIT,
            };
            value.fract() == 0.0 && value.abs() <= most && value < I64_LIMIT
        }
        (Some(JsonType::Number), held) if schema.number_format == Some(NumberFormat::Float) => {
            #[expect(clippy::cast_precision_loss, reason = "only the magnitude counts")]
            let value = match held {
                Held::Integer(value) => value as f64,
                Held::Float(value) => value,
            };
            value.abs() <= f64::from(f32::MAX)
        }
        _ => true,
    }
}

fn out_of_format(outcome: &mut Outcome, schema: &Schema, at: Cursor<'_>) {
    let kind = schema.json_type.map_or("", JsonType::as_str);
    let format = match schema.number_format {
        Some(NumberFormat::Int32) => "with format int32",
        Some(NumberFormat::Int64) => "with format int64",
        Some(NumberFormat::Float) => "with format float",
        Some(NumberFormat::Double) => "with format double",
        None => "(default format)",
    };
    let path = at.to_path();
    let detail = format!(
        "Checked value must be of type {kind} {format} in {}",
        path.as_str()
    );
    outcome.nowhere("format", at, detail);
}

fn multiple(outcome: &mut Outcome, held: Held, number: &Number, factor: f64, at: Cursor<'_>) {
    let shown = Number::from_f64(factor).map_or(Value::Null, Value::Number);
    let (is_multiple, shown) = match held {
        Held::Integer(value) => {
            #[expect(clippy::cast_possible_truncation, reason = "as Go converts")]
            let factor = factor as i64;
            if factor <= 0 {
                // A fraction of one refuses every integer: it is cut to zero first.
                let path = at.to_path();
                let detail = format!(
                    "factor MultipleOf declared for {} must be positive: {factor}",
                    path.as_str()
                );
                return outcome.push("multipleOf", at, FieldError::invalid(path, factor, detail));
            }
            (value % factor == 0, Value::from(factor))
        }
        Held::Float(value) => {
            let times = if factor < 1.0 {
                1.0 / factor * value
            } else {
                value / factor
            };
            (is_whole(times), shown)
        }
    };
    if !is_multiple {
        let shown = match &shown {
            Value::Number(number) => go::plain_number(number),
            other => other.to_string(),
        };
        outcome.invalid(
            "multipleOf",
            at,
            number.clone(),
            &format!("should be a multiple of {shown}"),
        );
    }
}

/// Whether the number counts as an integer.
pub(super) fn is_integer(number: &Number) -> bool {
    match Held::of(number) {
        Held::Integer(_) => true,
        Held::Float(value) => is_whole(value),
    }
}

/// Whether a float counts as whole, with the tolerance of the API server's library:
/// <https://pkg.go.dev/github.com/go-openapi/swag#IsFloat64AJSONInteger>.
fn is_whole(value: f64) -> bool {
    if !value.is_finite() || value.abs() > 9_007_199_254_740_991.0 {
        return false;
    }
    let whole = value.trunc();
    if value.fract() == 0.0 {
        return true;
    }
    whole > 0.0 && (value - whole) / (value + whole) < 1e-9
}

fn breaks(
    held: Held,
    bound: &Bound,
    integers: impl Fn(i64, i64) -> bool,
    floats: impl Fn(f64, f64) -> bool,
) -> bool {
    let limit = bound.value.as_f64().unwrap_or(f64::NAN);
    match held {
        Held::Integer(value) => {
            #[expect(clippy::cast_possible_truncation, reason = "as Go converts")]
            let limit = limit as i64;
            integers(value, limit) || (bound.exclusive && value == limit)
        }
        Held::Float(value) => floats(value, limit) || (bound.exclusive && equal(value, limit)),
    }
}

fn compared(
    outcome: &mut Outcome,
    keyword: &str,
    held: Held,
    number: &Number,
    relation: &str,
    bound: &Bound,
    at: Cursor<'_>,
) {
    #[expect(clippy::cast_possible_truncation, reason = "as Go converts")]
    let limit = match held {
        Held::Integer(_) => Number::from(bound.value.as_f64().unwrap_or_default() as i64),
        Held::Float(_) => bound.value.clone(),
    };
    let what = format!("should be {relation} {}", go::plain_number(&limit));
    outcome.invalid(keyword, at, number.clone(), &what);
}

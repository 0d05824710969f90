//! Validation of numbers: format, bounds and `multipleOf`.

use serde_json::Number;

use crate::field::error::FieldError;
use crate::field::path::Cursor;
use crate::format::go_fmt;
use crate::schema::{Bound, JsonType, NumberFormat, Schema};
use crate::structural::outcome::Outcome;

/// 2^63, the first float that does not fit into a 64-bit integer.
const I64_LIMIT: f64 = 9_223_372_036_854_775_808.0;

/// Number as the API server stores it.
#[derive(Clone, Copy)]
enum StoredNumber {
    Integer(i64),
    Float(f64),
}

impl StoredNumber {
    fn of(number: &Number) -> Self {
        number.as_i64().map_or_else(
            || Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            Self::Integer,
        )
    }

    #[expect(clippy::cast_precision_loss, reason = "as Go converts")]
    fn as_float(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    fn to_number(self) -> Number {
        match self {
            Self::Integer(value) => value.into(),
            Self::Float(value) => Number::from_f64(value).unwrap_or_else(|| 0.into()),
        }
    }
}

pub(super) fn validate(outcome: &mut Outcome, schema: &Schema, number: &Number, at: Cursor<'_>) {
    let held = StoredNumber::of(number);
    if !is_within_format(schema, held) {
        out_of_format(outcome, schema, "format", "Checked", at);
    }
    if let Some(factor) = schema.multiple_of {
        let held = against(outcome, schema, "multipleOf", factor, held, at);
        multiple(outcome, held, factor, at);
    }
    if let Some(bound) = &schema.minimum {
        let held = against(outcome, schema, "minimum", limit(bound), held, at);
        if breaks(
            held,
            bound,
            |value, bound| value < bound,
            |value, bound| value < bound,
        ) {
            let relation = if bound.exclusive {
                "greater than"
            } else {
                "greater than or equal to"
            };
            compared(outcome, "minimum", held, relation, bound, at);
        }
    }
    if let Some(bound) = &schema.maximum {
        let held = against(outcome, schema, "maximum", limit(bound), held, at);
        if breaks(
            held,
            bound,
            |value, bound| value > bound,
            |value, bound| value > bound,
        ) {
            let relation = if bound.exclusive {
                "less than"
            } else {
                "less than or equal to"
            };
            compared(outcome, "maximum", held, relation, bound, at);
        }
    }
}

/// Returns the value in the form in which it is compared with a limit of the schema. If the limit itself does
/// not fit the schema's type and format, the API server reports this as an error of every value, and compares
/// both as floats.
fn against(
    outcome: &mut Outcome,
    schema: &Schema,
    keyword: &str,
    limit: f64,
    held: StoredNumber,
    at: Cursor<'_>,
) -> StoredNumber {
    if is_within_format(schema, StoredNumber::Float(limit)) {
        return held;
    }
    let subject = match keyword {
        "multipleOf" => "MultipleOf",
        "minimum" => "Minimum boundary",
        _ => "Maximum boundary",
    };
    out_of_format(outcome, schema, keyword, subject, at);
    StoredNumber::Float(held.as_float())
}

/// Converts a float to an integer as Go does on most machines: a value out of range becomes the minimum.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn cut(float: f64) -> i64 {
    if (-I64_LIMIT..I64_LIMIT).contains(&float) {
        float as i64
    } else {
        i64::MIN
    }
}

fn limit(bound: &Bound) -> f64 {
    bound.value.as_f64().unwrap_or(f64::NAN)
}

/// Returns true if `enum` treats two numbers as equal: an integer option is compared with the integer part of a
/// float.
pub(super) fn is_same(option: &Number, value: &Number) -> bool {
    match (StoredNumber::of(option), StoredNumber::of(value)) {
        (StoredNumber::Integer(option), StoredNumber::Integer(value)) => option == value,
        (StoredNumber::Integer(option), StoredNumber::Float(value)) => option == cut(value),
        #[expect(clippy::cast_precision_loss, reason = "as Go converts")]
        (StoredNumber::Float(option), StoredNumber::Integer(value)) => equal(option, value as f64),
        (StoredNumber::Float(option), StoredNumber::Float(value)) => equal(option, value),
    }
}

#[expect(clippy::float_cmp, reason = "exact equality is required")]
fn equal(a: f64, b: f64) -> bool {
    a == b
}

fn is_within_format(schema: &Schema, held: StoredNumber) -> bool {
    match (schema.json_type, held) {
        (Some(JsonType::Integer), StoredNumber::Integer(value)) => {
            schema.number_format != Some(NumberFormat::Int32) || i32::try_from(value).is_ok()
        }
        (Some(JsonType::Integer), StoredNumber::Float(value)) => {
            let is_int32 = schema.number_format == Some(NumberFormat::Int32);
            // Fast path for most bounds: the float has the same text as the integer.
            if let Ok(whole) = i32::try_from(cut(value))
                && equal(whole.into(), value)
            {
                return true;
            }
            // Like Go, this parses the shortest text of the float. For the smallest 64-bit integer this is
            // -9223372036854776000, which is out of range.
            !is_int32 && value.to_string().parse::<i64>().is_ok()
        }
        (Some(JsonType::Number), held) if schema.number_format == Some(NumberFormat::Float) => {
            held.as_float().abs() <= f64::from(f32::MAX)
        }
        _ => true,
    }
}

fn out_of_format(
    outcome: &mut Outcome,
    schema: &Schema,
    keyword: &str,
    subject: &str,
    at: Cursor<'_>,
) {
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
        "{subject} value must be of type {kind} {format} in {}",
        path.as_str()
    );
    outcome.invalid_without_path(keyword, at, detail);
}

fn multiple(outcome: &mut Outcome, held: StoredNumber, factor: f64, at: Cursor<'_>) {
    let factor = match held {
        // For integers, a factor below 1 is truncated to 0, so every integer is an error.
        StoredNumber::Integer(_) => StoredNumber::Integer(cut(factor)),
        StoredNumber::Float(_) => StoredNumber::Float(factor),
    };
    let shown = go_fmt::plain_number(&factor.to_number());
    let is_multiple = match (held, factor) {
        (_, factor) if factor.as_float() <= 0.0 => {
            let path = at.to_path();
            let detail = format!(
                "factor MultipleOf declared for {} must be positive: {shown}",
                path.as_str()
            );
            let error = FieldError::invalid(path, factor.to_number(), detail);
            return outcome.push("multipleOf", at, error);
        }
        (StoredNumber::Integer(value), StoredNumber::Integer(factor)) => value % factor == 0,
        (held, factor) if factor.as_float() < 1.0 => {
            is_whole(1.0 / factor.as_float() * held.as_float())
        }
        (held, factor) => is_whole(held.as_float() / factor.as_float()),
    };
    if !is_multiple {
        let what = format!("should be a multiple of {shown}");
        outcome.invalid("multipleOf", at, held.to_number(), &what);
    }
}

/// Returns true if the number counts as an integer.
pub(super) fn is_integer(number: &Number) -> bool {
    match StoredNumber::of(number) {
        StoredNumber::Integer(_) => true,
        StoredNumber::Float(value) => is_whole(value),
    }
}

/// Returns true if a float counts as whole, with the tolerance of the API server's library:
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
    held: StoredNumber,
    bound: &Bound,
    integers: impl Fn(i64, i64) -> bool,
    floats: impl Fn(f64, f64) -> bool,
) -> bool {
    let limit = limit(bound);
    match held {
        StoredNumber::Integer(value) => {
            let limit = cut(limit);
            integers(value, limit) || (bound.exclusive && value == limit)
        }
        StoredNumber::Float(value) => {
            floats(value, limit) || (bound.exclusive && equal(value, limit))
        }
    }
}

fn compared(
    outcome: &mut Outcome,
    keyword: &str,
    held: StoredNumber,
    relation: &str,
    bound: &Bound,
    at: Cursor<'_>,
) {
    let limit = match held {
        StoredNumber::Integer(_) => Number::from(cut(limit(bound))),
        StoredNumber::Float(_) => StoredNumber::Float(limit(bound)).to_number(),
    };
    let what = format!("should be {relation} {}", go_fmt::plain_number(&limit));
    outcome.invalid(keyword, at, held.to_number(), &what);
}

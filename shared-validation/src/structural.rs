//! Layer 1: the structural schema, judged as the API server judges it.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Number, Value};

use crate::field_error::FieldError;
use crate::field_path::Cursor;
use crate::go;
use crate::rule::Layer;
use crate::ruleset::{Case, LayerJudge, Report};
use crate::schema::{Bound, Format, JsonType, ListType, Schema};
use crate::transition::Pair;
use crate::verdict::Violation;

/// Judges by the structural schema.
pub(crate) struct Structural;

impl LayerJudge for Structural {
    fn judge(&self, case: &Case<'_>, report: &mut Report) {
        let pair = Pair::new(case.object, case.old, case.before);
        let mut walk = Walk { found: Vec::new() };
        // The API server judges `metadata` by its own rules, not by the CRD's schema, and takes a
        // `status` from the controller only.
        for (name, value) in case.object.as_object().into_iter().flatten() {
            if name == "metadata" || name == "status" {
                continue;
            }
            if let Some(schema) = case.schema.field(name) {
                walk.node(schema, pair.field(name, value), Cursor::Root.child(name));
            }
        }
        for name in &case.schema.required {
            if case.object.get(name).is_none() {
                walk.report(
                    "required",
                    FieldError::required(Cursor::Root.child(name).to_path(), ""),
                    false,
                );
            }
        }
        for (violation, inherited) in walk.found {
            report.add(violation, inherited);
        }
    }
}

struct Walk {
    found: Vec<(Violation, bool)>,
}

impl Walk {
    fn report(&mut self, keyword: &str, error: FieldError, inherited: bool) {
        let rule = format!("{}/{keyword}", error.path.as_str());
        self.found.push((
            Violation {
                rule,
                layer: Layer::Structural,
                error,
            },
            inherited,
        ));
    }

    fn node(&mut self, schema: &Schema, pair: Pair<'_>, at: Cursor<'_>) {
        let inherited = pair.is_unchanged();
        let value = pair.new;
        if let Some(expected) = wrong_type(schema, value) {
            let path = at.to_path();
            let actual = type_name(value);
            let detail = format!(
                "{} in body must be of type {expected}: \"{actual}\"",
                path.as_str()
            );
            self.report(
                "type",
                FieldError::type_invalid(path, actual, detail),
                inherited,
            );
        }
        if let Some(options) = &schema.options
            && !options.contains(value)
            && !(value.is_null() && schema.nullable)
        {
            let supported: Vec<_> = options.iter().map(enum_text).collect();
            self.report(
                "enum",
                FieldError::not_supported(at.to_path(), value.clone(), &supported),
                inherited,
            );
        }
        match value {
            Value::String(text) => self.string(schema, text, at, inherited),
            Value::Number(number) => self.number(schema, number, at, inherited),
            Value::Array(items) => self.array(schema, pair, items, at, inherited),
            Value::Object(_) => self.object(schema, pair, at, inherited),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn string(&mut self, schema: &Schema, text: &str, at: Cursor<'_>, inherited: bool) {
        let length = text.chars().count() as u64;
        if let Some(max) = schema.max_length.filter(|max| length > *max) {
            self.report(
                "maxLength",
                FieldError::too_long(at.to_path(), max),
                inherited,
            );
        }
        if let Some(min) = schema.min_length.filter(|min| length < *min) {
            self.invalid(
                "minLength",
                at,
                text,
                &format!("should be at least {min} chars long"),
                inherited,
            );
        }
        if let Some(pattern) = schema
            .pattern
            .as_ref()
            .filter(|pattern| !pattern.is_match(text))
        {
            self.invalid(
                "pattern",
                at,
                text,
                &format!("should match '{}'", pattern.as_str()),
                inherited,
            );
        }
        if schema.format == Some(Format::DateTime) && !DATE_TIME.is_match(text) {
            let detail = format!("must be of type date-time: {}", go::quote(text));
            self.invalid("format", at, text, &detail, inherited);
        }
    }

    fn number(&mut self, schema: &Schema, number: &Number, at: Cursor<'_>, inherited: bool) {
        if let Some(bound) = schema
            .maximum
            .as_ref()
            .filter(|bound| exceeds(number, bound))
        {
            let relation = if bound.exclusive {
                "less than"
            } else {
                "less than or equal to"
            };
            let detail = format!("should be {relation} {}", go::plain_number(&bound.value));
            self.invalid("maximum", at, number.clone(), &detail, inherited);
        }
        if let Some(bound) = schema
            .minimum
            .as_ref()
            .filter(|bound| undercuts(number, bound))
        {
            let relation = if bound.exclusive {
                "greater than"
            } else {
                "greater than or equal to"
            };
            let detail = format!("should be {relation} {}", go::plain_number(&bound.value));
            self.invalid("minimum", at, number.clone(), &detail, inherited);
        }
        let fits = match schema.format {
            Some(Format::Int32) => as_integer(number).is_some_and(|n| i32::try_from(n).is_ok()),
            Some(Format::Int64) => as_integer(number).is_some_and(|n| i64::try_from(n).is_ok()),
            _ => true,
        };
        if !fits && schema.json_type == Some(JsonType::Integer) && as_integer(number).is_some() {
            let format = if schema.format == Some(Format::Int32) {
                "int32"
            } else {
                "int64"
            };
            let detail = format!(
                "Checked value must be of type integer with format {format} in {}",
                at.to_path().as_str()
            );
            self.report(
                "format",
                FieldError::invalid(at.to_path(), number.clone(), detail),
                inherited,
            );
        }
    }

    fn array(
        &mut self,
        schema: &Schema,
        pair: Pair<'_>,
        items: &[Value],
        at: Cursor<'_>,
        inherited: bool,
    ) {
        if let Some(item_schema) = &schema.items {
            for (index, item) in items.iter().enumerate() {
                self.node(item_schema, pair.item(schema, item), at.index(index));
            }
        }
        if let Some(min) = schema.min_items.filter(|min| (items.len() as u64) < *min) {
            let detail = format!("should have at least {min} items");
            self.invalid("minItems", at, items.len(), &detail, inherited);
        }
        if let Some(max) = schema.max_items.filter(|max| items.len() as u64 > *max) {
            self.report(
                "maxItems",
                FieldError::too_many(at.to_path(), items.len(), max),
                inherited,
            );
        }
        self.duplicates(schema, items, at, inherited);
    }

    fn duplicates(&mut self, schema: &Schema, items: &[Value], at: Cursor<'_>, inherited: bool) {
        let identities: Vec<Value> = match &schema.list_type {
            ListType::Atomic => return,
            ListType::Set => items.to_vec(),
            ListType::Map(keys) => items
                .iter()
                .map(|item| {
                    keys.iter()
                        .map(|key| (key.clone(), item[key].clone()))
                        .collect()
                })
                .collect(),
        };
        for (index, identity) in identities.iter().enumerate() {
            let earlier = identities[..index]
                .iter()
                .filter(|other| *other == identity)
                .count();
            // The API server reports an identity once, at its second occurrence.
            if earlier == 1 {
                let path = at.index(index).to_path();
                self.report(
                    "x-kubernetes-list-type",
                    FieldError::duplicate(path, identity.clone()),
                    inherited,
                );
            }
        }
    }

    fn object(&mut self, schema: &Schema, pair: Pair<'_>, at: Cursor<'_>, inherited: bool) {
        let fields = pair.new.as_object().into_iter().flatten();
        let count = pair.new.as_object().map_or(0, serde_json::Map::len);
        for (name, value) in fields {
            if let Some(field_schema) = schema.field(name) {
                self.node(field_schema, pair.field(name, value), at.child(name));
            }
        }
        for name in &schema.required {
            if pair.new.get(name).is_none() {
                self.report(
                    "required",
                    FieldError::required(at.child(name).to_path(), ""),
                    inherited,
                );
            }
        }
        if let Some(min) = schema.min_properties.filter(|min| (count as u64) < *min) {
            let detail = format!("should have at least {min} properties");
            self.invalid("minProperties", at, count, &detail, inherited);
        }
        if let Some(max) = schema.max_properties.filter(|max| count as u64 > *max) {
            self.report(
                "maxProperties",
                FieldError::too_many(at.to_path(), count, max),
                inherited,
            );
        }
    }

    fn invalid(
        &mut self,
        keyword: &str,
        at: Cursor<'_>,
        value: impl Into<Value>,
        what: &str,
        inherited: bool,
    ) {
        let path = at.to_path();
        let detail = format!("{} in body {what}", path.as_str());
        self.report(keyword, FieldError::invalid(path, value, detail), inherited);
    }
}

/// The type that was expected, when the value is not of it.
fn wrong_type(schema: &Schema, value: &Value) -> Option<String> {
    if schema.int_or_string {
        let fits = match value {
            Value::String(_) => true,
            Value::Number(number) => as_integer(number).is_some(),
            Value::Null => schema.nullable,
            _ => false,
        };
        return (!fits).then(|| "integer,string".to_owned());
    }
    let expected = schema.json_type?;
    let fits = match (expected, value) {
        (_, Value::Null) => schema.nullable,
        (JsonType::Integer, Value::Number(number)) => as_integer(number).is_some(),
        (JsonType::Array, Value::Array(_))
        | (JsonType::Boolean, Value::Bool(_))
        | (JsonType::Number, Value::Number(_))
        | (JsonType::Object, Value::Object(_))
        | (JsonType::String, Value::String(_)) => true,
        // The API server looks no further where a string has a format.
        (JsonType::String, Value::Array(_)) => schema.format.is_some(),
        _ => false,
    };
    (!fits).then(|| expected.as_str().to_owned())
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn enum_text(option: &Value) -> String {
    option
        .as_str()
        .map_or_else(|| go::json(option), String::from)
}

/// The number as an integer, if it is one; the API server takes `1.0` for one.
pub(crate) fn as_integer(number: &Number) -> Option<i128> {
    if let Some(n) = number.as_i64() {
        return Some(n.into());
    }
    if let Some(n) = number.as_u64() {
        return Some(n.into());
    }
    let float = number.as_f64()?;
    // Integers beyond 2^53 are not distinguishable as floats; the API server refuses them.
    #[expect(clippy::cast_possible_truncation, reason = "bounded by 2^53")]
    (float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_991.0).then_some(float as i128)
}

fn exceeds(number: &Number, bound: &Bound) -> bool {
    let order = compare(number, &bound.value);
    order.is_gt() || (bound.exclusive && order.is_eq())
}

fn undercuts(number: &Number, bound: &Bound) -> bool {
    let order = compare(number, &bound.value);
    order.is_lt() || (bound.exclusive && order.is_eq())
}

fn compare(a: &Number, b: &Number) -> std::cmp::Ordering {
    if let (Some(a), Some(b)) = (as_integer(a), as_integer(b)) {
        return a.cmp(&b);
    }
    let float = |n: &Number| n.as_f64().unwrap_or(f64::NAN);
    float(a).total_cmp(&float(b))
}

/// RFC 3339 as the API server reads it: <https://pkg.go.dev/k8s.io/kube-openapi/pkg/validation/strfmt#IsDateTime>.
static DATE_TIME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$",
    )
    .expect("a literal pattern that a test compiles")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_told_from_other_text() {
        assert!(DATE_TIME.is_match("2026-11-21T07:00:00Z"));
        assert!(DATE_TIME.is_match("2026-11-21T07:00:00.123456+01:00"));
        assert!(!DATE_TIME.is_match("2026-11-21"));
        assert!(!DATE_TIME.is_match("2026-13-21T07:00:00Z"));
    }

    #[test]
    fn whole_floats_are_integers() {
        let number = |f: f64| Number::from_f64(f).expect("finite");
        assert_eq!(as_integer(&number(10.0)), Some(10));
        assert_eq!(as_integer(&number(10.5)), None);
    }
}

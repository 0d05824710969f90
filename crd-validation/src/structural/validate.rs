//! Validation of an object in one walk through object and schema.

use std::cell::OnceCell;

use serde_json::Value;

use crate::bounded::MAX_REPORTED;
use crate::correlation::Correlation;
use crate::field::error::FieldError;
use crate::field::path::Cursor;
use crate::field::text::{MAX_NAME_BYTES, MAX_VALUE_BYTES, shortened, shortened_name};
use crate::format::go_fmt;
use crate::json::types::type_name;
use crate::layer::LayerContext;
use crate::ratcheted::RatchetedViolations;
use crate::report::Report;
use crate::schema::{Additional, JsonType, Schema};
use crate::structural::number;
use crate::structural::outcome::Outcome;
use crate::violation::fingerprint;

/// Validates the whole object.
pub(crate) fn root(
    case: &LayerContext<'_>,
    correlation: Option<Correlation<'_>>,
    report: &mut Report<'_>,
) {
    let walk = Walk {
        case,
        known: report.known(),
    };
    let outcome = walk.node(case.schema, case.object, correlation, Cursor::Root);
    outcome.report(report);
}

struct Walk<'a, 'k> {
    case: &'a LayerContext<'a>,
    /// Errors that were ratcheted in an earlier validation.
    known: Option<&'k RatchetedViolations>,
}

impl<'a> Walk<'a, '_> {
    /// Validates a value. If it is unchanged, its errors are ratcheted.
    fn node(
        &self,
        schema: &'a Schema,
        value: &'a Value,
        correlation: Option<Correlation<'a>>,
        at: Cursor<'_>,
    ) -> Outcome {
        let mut outcome = self.checks(schema, value, correlation, at);
        // Errors from nodes below already have fingerprints.
        outcome.settle(|| fingerprint([value]), self.known);
        let unchanged = || correlation.is_some_and(|correlation| correlation.is_unchanged());
        if !outcome.is_valid() && unchanged() {
            outcome.ratchet();
        }
        outcome
    }

    fn checks(
        &self,
        schema: &'a Schema,
        value: &'a Value,
        correlation: Option<Correlation<'a>>,
        at: Cursor<'_>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let has_type = schema.json_type.is_some() || schema.int_or_string;
        if value.is_null() {
            if has_type && !schema.nullable {
                wrong_type(&mut outcome, at, expected(schema, value), "null");
            } else {
                outcome.matches += 1;
            }
            options(&mut outcome, schema, value, at);
            return outcome;
        }
        if has_type || schema.format.is_some() {
            outcome.matches += 1;
            if fits(schema, value) {
                outcome.matches += 1;
            } else {
                let (expected, actual) = (expected(schema, value), actual(schema, value));
                wrong_type(&mut outcome, at, expected, actual);
            }
        }
        outcome.merge(self.alternatives(schema, value, at));
        outcome.matches += 1;
        match value {
            Value::String(text) => {
                string(&mut outcome, schema, text, at);
                outcome.matches += 1;
                if let Some(format) = schema.format {
                    outcome.matches += 1;
                    if !format.holds(text) {
                        misformatted(&mut outcome, schema, text, at);
                    }
                }
            }
            Value::Number(number) => {
                number::validate(&mut outcome, schema, number, at);
                outcome.matches += 2;
            }
            Value::Array(items) => {
                self.array(&mut outcome, schema, items, correlation, at);
                outcome.matches += 2;
            }
            _ => {}
        }
        options(&mut outcome, schema, value, at);
        outcome.matches += 1;
        if let Value::Object(_) = value {
            self.object(&mut outcome, schema, value, correlation, at);
            outcome.matches += 1;
        }
        outcome.matches += 1;
        outcome
    }

    /// Evaluates `anyOf`, `oneOf`, `allOf` and `not`, in this order. As in the API server, errors within them
    /// are never ratcheted.
    fn alternatives(&self, schema: &'a Schema, value: &'a Value, at: Cursor<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        if !schema.has_alternatives() {
            return outcome;
        }
        let branch = |branch: &'a Schema| self.node(branch, value, None, at);
        let quoted = || go_fmt::quote(at.to_path().as_str());
        if !schema.any_of.is_empty() {
            let mut best: Option<Outcome> = None;
            let mut passed = None;
            for alternative in &schema.any_of {
                let result = branch(alternative);
                if result.is_valid() {
                    passed = Some(result);
                    break;
                }
                if best
                    .as_ref()
                    .is_none_or(|best| result.matches > best.matches)
                {
                    best = Some(result);
                }
            }
            if passed.is_none() {
                let detail = format!("{} must validate at least one schema (anyOf)", quoted());
                outcome.invalid_without_path("anyOf", at, detail);
            }
            outcome.merge(passed.or(best).unwrap_or_default());
        }
        if !schema.one_of.is_empty() {
            let mut best: Option<Outcome> = None;
            let mut first = None;
            let mut passed = 0;
            for alternative in &schema.one_of {
                let result = branch(alternative);
                if result.is_valid() {
                    passed += 1;
                    best = None;
                    first.get_or_insert(result);
                } else if passed == 0
                    && best
                        .as_ref()
                        .is_none_or(|best| result.matches > best.matches)
                {
                    best = Some(result);
                }
            }
            if passed == 1 {
                outcome.merge(first.unwrap_or_default());
            } else {
                let found = match passed {
                    0 => "Found none valid".to_owned(),
                    some => format!("Found {some} valid alternatives"),
                };
                let detail = format!(
                    "{} must validate one and only one schema (oneOf). {found}",
                    quoted()
                );
                outcome.invalid_without_path("oneOf", at, detail);
                outcome.merge(best.unwrap_or_default());
            }
        }
        if !schema.all_of.is_empty() {
            let mut passed = 0;
            for alternative in &schema.all_of {
                let result = branch(alternative);
                passed += usize::from(result.is_valid());
                outcome.merge(result);
            }
            if passed < schema.all_of.len() {
                let none = if passed == 0 { ". None validated" } else { "" };
                let detail = format!("{} must validate all the schemas (allOf){none}", quoted());
                outcome.invalid_without_path("allOf", at, detail);
            }
        }
        if let Some(not) = &schema.not
            && branch(not).is_valid()
        {
            let detail = format!("{} must not validate the schema (not)", quoted());
            outcome.invalid_without_path("not", at, detail);
        }
        outcome.matches += 1;
        outcome
    }

    fn array(
        &self,
        outcome: &mut Outcome,
        schema: &'a Schema,
        items: &'a [Value],
        correlation: Option<Correlation<'a>>,
        at: Cursor<'_>,
    ) {
        if let Some(item_schema) = &schema.items {
            let correlated = correlation.map(|correlation| correlation.items());
            for (index, item) in items.iter().enumerate() {
                let own = correlated.as_ref().and_then(|items| items.get(index));
                outcome.merge(self.child(item_schema, item, own, at.index(index)));
            }
        }
        if let Some(min) = schema.min_items.filter(|min| (items.len() as u64) < *min) {
            let what = format!("should have at least {min} items");
            outcome.invalid("minItems", at, items.len(), &what);
        }
        if let Some(max) = schema.max_items.filter(|max| items.len() as u64 > *max) {
            let error = FieldError::too_many(at.to_path(), items.len(), max);
            outcome.push("maxItems", at, error);
        }
        let repeats = |(index, item): (usize, &Value)| items[..index].contains(item);
        if schema.unique_items && items.iter().enumerate().any(repeats) {
            outcome.invalid("uniqueItems", at, "", "shouldn't contain duplicates");
        }
    }

    fn object(
        &self,
        outcome: &mut Outcome,
        schema: &'a Schema,
        object: &'a Value,
        correlation: Option<Correlation<'a>>,
        at: Cursor<'_>,
    ) {
        let Some(fields) = object.as_object() else {
            return;
        };
        let count = fields.len() as u64;
        if let Some(min) = schema.min_properties.filter(|min| count < *min) {
            let what = format!("should have at least {min} properties");
            outcome.invalid("minProperties", at, fields.len(), &what);
        }
        if let Some(max) = schema.max_properties.filter(|max| count > *max) {
            let error = FieldError::too_many(at.to_path(), fields.len(), max);
            outcome.push("maxProperties", at, error);
        }
        let inputs = OnceCell::new();
        for (name, value) in fields {
            if self.case.is_enough_to_know && !outcome.is_valid() {
                return;
            }
            // Any number of fields may be forbidden.
            if outcome.unsettled() >= MAX_REPORTED {
                outcome.settle(|| *inputs.get_or_init(|| fingerprint([object])), self.known);
            }
            if self.is_left_out(at, name) {
                continue;
            }
            let (child, below) = match (schema.properties.get(name), &schema.additional) {
                (Some(child), _) => (child, at.child(name)),
                (None, Additional::Of(child)) => (&**child, at.entry(name)),
                (None, Additional::Forbidden) => {
                    forbidden(outcome, name, at);
                    continue;
                }
                _ => continue,
            };
            // The API server never ratchets errors of these two fields, because it does not correlate them.
            let is_type = matches!((at, name.as_str()), (Cursor::Root, "apiVersion" | "kind"));
            let own = correlation
                .filter(|_| !is_type)
                .and_then(|correlation| correlation.field(name));
            outcome.merge(self.child(child, value, own, below));
        }
        for name in &schema.required {
            if !fields.contains_key(name) && !self.is_left_out(at, name) {
                let below = at.child(name);
                outcome.push("required", below, FieldError::required(below.to_path(), ""));
            }
        }
    }

    /// Validates a field or item. If it has a counterpart in the old object, its errors can be ratcheted.
    /// Otherwise it is new, as is everything below it.
    fn child(
        &self,
        schema: &'a Schema,
        value: &'a Value,
        own: Option<Correlation<'a>>,
        at: Cursor<'_>,
    ) -> Outcome {
        let value = own.map_or(value, |own| own.new);
        self.node(schema, value, own, at)
    }

    /// A status that is a subresource is written by the controller and is not validated with the object.
    fn is_left_out(&self, at: Cursor<'_>, name: &str) -> bool {
        matches!(at, Cursor::Root) && name == "status" && self.case.has_status_subresource
    }
}

fn expected<'a>(schema: &'a Schema, value: &Value) -> &'a str {
    if schema.int_or_string {
        return "integer,string";
    }
    if goes_by_format(schema, value) {
        return &schema.format_name;
    }
    schema.json_type.map_or("", JsonType::as_str)
}

fn actual(schema: &Schema, value: &Value) -> &'static str {
    match value {
        value if !goes_by_format(schema, value) => type_name(value),
        Value::Number(number) if number.as_i64().is_some() => "int64",
        Value::Number(_) => "float64",
        _ => "",
    }
}

/// Returns true if the API server reports the format in place of the type.
fn goes_by_format(schema: &Schema, value: &Value) -> bool {
    !schema.format_name.is_empty()
        && matches!(value, Value::Bool(_) | Value::Number(_) | Value::Object(_))
}

/// Returns true if the value has the type.
fn fits(schema: &Schema, value: &Value) -> bool {
    let integer = |value: &Value| match value {
        Value::Number(number) => number::is_integer(number),
        _ => false,
    };
    if schema.int_or_string {
        return value.is_string() || integer(value);
    }
    // If there is a format, the API server does not check the type.
    if schema.format.is_some() && (value.is_string() || value.is_array()) {
        return true;
    }
    match schema.json_type {
        Some(JsonType::Array) => value.is_array(),
        Some(JsonType::Boolean) => value.is_boolean(),
        Some(JsonType::Integer) => integer(value),
        Some(JsonType::Number) => value.is_number(),
        Some(JsonType::Object) => value.is_object(),
        Some(JsonType::String) => value.is_string(),
        None => false,
    }
}

fn wrong_type(outcome: &mut Outcome, at: Cursor<'_>, expected: &str, actual: &'static str) {
    let path = at.to_path();
    let detail = format!(
        "{} in body must be of type {expected}: \"{actual}\"",
        path.as_str()
    );
    outcome.push("type", at, FieldError::type_invalid(path, actual, detail));
}

fn forbidden(outcome: &mut Outcome, name: &str, at: Cursor<'_>) {
    let path = at.to_path();
    let name = shortened_name(name, MAX_NAME_BYTES);
    let detail = format!("{}.{name} in body is a forbidden property", path.as_str());
    let error = FieldError::invalid(path, "", detail);
    outcome.push("additionalProperties", at, error);
}

fn options(outcome: &mut Outcome, schema: &Schema, value: &Value, at: Cursor<'_>) {
    let listed = |option: &Value| match (option, value) {
        (Value::Number(option), Value::Number(value)) => number::is_same(option, value),
        (option, value) => option == value && !value.is_null(),
    };
    if !schema.options.is_empty() && !schema.options.iter().any(listed) {
        let text = |option: &Value| {
            option
                .as_str()
                .map_or_else(|| go_fmt::json(option), String::from)
        };
        let supported: Vec<_> = schema.options.iter().map(text).collect();
        let error = FieldError::not_supported(at.to_path(), value, &supported);
        outcome.push("enum", at, error);
    }
}

/// Reports the first violated bound.
fn string(outcome: &mut Outcome, schema: &Schema, text: &str, at: Cursor<'_>) {
    if schema.max_length.is_none() && schema.min_length.is_none() && schema.pattern.is_none() {
        return;
    }
    let length = text.chars().count() as u64;
    if let Some(max) = schema.max_length.filter(|max| length > *max) {
        outcome.push("maxLength", at, FieldError::too_long(at.to_path(), max));
    } else if let Some(min) = schema.min_length.filter(|min| length < *min) {
        let what = format!("should be at least {min} chars long");
        outcome.invalid("minLength", at, text, &what);
    } else if let Some(pattern) = &schema.pattern
        && !pattern.expression.is_match(text)
    {
        let what = format!("should match '{}'", pattern.source);
        outcome.invalid("pattern", at, text, &what);
    }
}

fn misformatted(outcome: &mut Outcome, schema: &Schema, text: &str, at: Cursor<'_>) {
    let path = at.to_path();
    let name = &schema.format_name;
    let detail = format!(
        "{} in body must be of type {name}: {}",
        path.as_str(),
        go_fmt::quote(&shortened(text, MAX_VALUE_BYTES))
    );
    outcome.push("format", at, FieldError::type_invalid(path, text, detail));
}

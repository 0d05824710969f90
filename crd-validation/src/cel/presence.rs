//! Rules that hold because of the fields that an object has or lacks, without an evaluation.
//!
//! Most rules begin with a condition such as `!has(self.kmsKey) ||`, and most objects lack most optional fields. To know that
//! takes a hundredth of the time of an evaluation, for which the fields are converted to CEL values.

use ::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, SelectExpr, operators};
use serde_json::Value;

use crate::format::Format;
use crate::schema::{JsonType, Schema};

/// Expression reduced to what follows from the presence of fields.
pub(crate) enum Presence {
    Constant(bool),
    Has(Field),
    Not(Box<Presence>),
    And(Box<[Presence; 2]>),
    Or(Box<[Presence; 2]>),
    Equal(Box<[Presence; 2]>),
    If(Box<[Presence; 3]>),
    /// Everything else.
    Unknown,
}

/// Values that the presence of fields may decide.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PossibleValues {
    pub(crate) yes: bool,
    pub(crate) no: bool,
}

/// Field of `self` or `oldSelf`.
pub(crate) struct Field {
    is_old: bool,
    /// Names of the properties on the way to it.
    names: Vec<String>,
}

impl Presence {
    /// Reduces an expression about values of a schema. The macro `has` is expanded, and nothing else is rewritten.
    pub(crate) fn new(expression: &IdedExpr, schema: &Schema) -> Self {
        match &expression.expr {
            Expr::Literal(LiteralValue::Boolean(flag)) => Self::Constant(*flag.inner()),
            Expr::Select(select) if select.test => {
                Field::from_select(select, schema).map_or(Self::Unknown, Self::Has)
            }
            Expr::Call(call) => Self::from_call(call, schema),
            _ => Self::Unknown,
        }
    }

    fn from_call(call: &CallExpr, schema: &Schema) -> Self {
        let reduced = |argument| Self::new(argument, schema);
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_NOT, [one]) => Self::Not(Box::new(reduced(one))),
            (operators::LOGICAL_AND, [a, b]) => Self::And(Box::new([reduced(a), reduced(b)])),
            (operators::LOGICAL_OR, [a, b]) => Self::Or(Box::new([reduced(a), reduced(b)])),
            (operators::EQUALS, [a, b]) => Self::Equal(Box::new([reduced(a), reduced(b)])),
            (operators::NOT_EQUALS, [a, b]) => {
                Self::Not(Box::new(Self::Equal(Box::new([reduced(a), reduced(b)]))))
            }
            (operators::CONDITIONAL, [condition, a, b]) => {
                Self::If(Box::new([reduced(condition), reduced(a), reduced(b)]))
            }
            _ => Self::Unknown,
        }
    }

    /// Returns the values that the presence of fields may decide that the expression has. Each part is visited once: a rule may
    /// be nested deep.
    pub(crate) fn possible_values(&self) -> PossibleValues {
        match self {
            Self::Constant(flag) => PossibleValues {
                yes: *flag,
                no: !*flag,
            },
            Self::Has(_) => PossibleValues {
                yes: true,
                no: true,
            },
            Self::Not(inner) => {
                let PossibleValues { yes, no } = inner.possible_values();
                PossibleValues { yes: no, no: yes }
            }
            Self::And(both) => {
                let [a, b] = both.each_ref().map(Self::possible_values);
                PossibleValues {
                    yes: a.yes && b.yes,
                    no: a.no || a.yes && b.no,
                }
            }
            Self::Or(both) => {
                let [a, b] = both.each_ref().map(Self::possible_values);
                PossibleValues {
                    yes: a.yes || a.no && b.yes,
                    no: a.no && b.no,
                }
            }
            Self::Equal(both) => {
                let [a, b] = both.each_ref().map(Self::possible_values);
                PossibleValues {
                    yes: a.yes && b.yes || a.no && b.no,
                    no: a.yes && b.no || a.no && b.yes,
                }
            }
            Self::If(parts) => {
                let [condition, a, b] = parts.each_ref().map(Self::possible_values);
                PossibleValues {
                    yes: condition.yes && a.yes || condition.no && b.yes,
                    no: condition.yes && a.no || condition.no && b.no,
                }
            }
            Self::Unknown => PossibleValues::default(),
        }
    }

    /// Returns the value of the expression, or none if an evaluation must decide. `before` is `oldSelf`, if there is one.
    ///
    /// A side of `&&` or `||` decides only if no unknown one is evaluated before it: the API server fails at some comparisons,
    /// whatever the other side is.
    pub(crate) fn value(
        &self,
        schema: &Schema,
        value: &Value,
        before: Option<&Value>,
    ) -> Option<bool> {
        let value_of = |part: &Self| part.value(schema, value, before);
        match self {
            Self::Constant(flag) => Some(*flag),
            Self::Has(field) if field.is_old => field.is_present(schema, before?),
            Self::Has(field) => field.is_present(schema, value),
            Self::Not(inner) => value_of(inner).map(|flag| !flag),
            Self::And(both) | Self::Or(both) => {
                let [a, b] = &**both;
                let decides = matches!(self, Self::Or(_));
                if value_of(a)? == decides {
                    Some(decides)
                } else {
                    value_of(b)
                }
            }
            Self::Equal(both) => {
                let [a, b] = both.each_ref().map(value_of);
                Some(a? == b?)
            }
            Self::If(parts) => {
                let [condition, a, b] = &**parts;
                if value_of(condition)? {
                    value_of(a)
                } else {
                    value_of(b)
                }
            }
            Self::Unknown => None,
        }
    }
}

impl Field {
    fn from_select(select: &SelectExpr, schema: &Schema) -> Option<Self> {
        let mut identifiers = vec![select.field.as_str()];
        let mut operand = &select.operand.expr;
        let is_old = loop {
            match operand {
                Expr::Select(select) if !select.test => {
                    identifiers.push(&select.field);
                    operand = &select.operand.expr;
                }
                Expr::Ident(name) if name == "self" => break false,
                Expr::Ident(name) if name == "oldSelf" => break true,
                _ => return None,
            }
        };
        let mut names = Vec::new();
        let mut schema = schema;
        for identifier in identifiers.into_iter().rev() {
            // The type and the name of a resource are there whatever its schema says.
            if schema.embedded {
                return None;
            }
            let mut properties = schema.properties.iter();
            let (name, below) = properties.find(|(_, child)| child.is_called(identifier))?;
            names.push(name.clone());
            schema = below;
        }
        Some(Self { is_old, names })
    }

    /// Returns whether a value has the field, or none if the field has no parent or perhaps no CEL value.
    fn is_present(&self, schema: &Schema, value: &Value) -> Option<bool> {
        let (mut schema, mut value) = (schema, value);
        let (last, parents) = self.names.split_last()?;
        for name in parents {
            value = value.as_object()?.get(name)?;
            schema = schema.properties.get(name)?;
        }
        match value.as_object()?.get(last) {
            // A null field counts as absent.
            None | Some(Value::Null) => Some(false),
            Some(value) => has_cel_value(schema.properties.get(last)?, value).then_some(true),
        }
    }
}

/// Returns true if a value certainly has a CEL value of the type of its schema.
fn has_cel_value(schema: &Schema, value: &Value) -> bool {
    match (schema.json_type, value) {
        _ if schema.int_or_string => false,
        (Some(JsonType::Array), Value::Array(_)) => schema.items.is_some(),
        // A text that is not of these formats has no CEL value.
        (Some(JsonType::String), Value::String(_)) => !matches!(
            schema.format,
            Some(Format::Duration | Format::Date | Format::DateTime | Format::Byte)
        ),
        (Some(JsonType::Integer), Value::Number(number)) => number.as_i64().is_some(),
        (Some(JsonType::Object), Value::Object(_))
        | (Some(JsonType::Number), Value::Number(_))
        | (Some(JsonType::Boolean), Value::Bool(_)) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cel::library;

    fn schema() -> Schema {
        let text = json!({"type": "string"});
        let date = json!({"type": "string", "format": "date"});
        let inner = json!({"type": "object", "properties": {"c": text, "d": date}});
        let schema = json!({"type": "object", "properties": {
            "a": text, "b": inner, "namespace": text, "n": {"type": "integer"},
            "either": {"x-kubernetes-int-or-string": true},
        }});
        Schema::compile(&schema, "spec").expect("a schema")
    }

    fn value(source: &str, object: &Value, before: Option<&Value>) -> Option<bool> {
        let expression = library::environment().parser().parse(source);
        let schema = schema();
        let presence = Presence::new(&expression.expect("CEL"), &schema);
        let value = presence.value(&schema, object, before);
        let PossibleValues { yes, no } = presence.possible_values();
        let is_possible = value.is_none_or(|value| if value { yes } else { no });
        assert!(is_possible, "{source}");
        value
    }

    #[test]
    fn what_the_presence_of_fields_decides_is_known_and_nothing_else() {
        let object = json!({"a": "x", "b": {"c": "y", "d": "not a date"}, "n": 1, "either": 1, "namespace": null});
        let (yes, no, unknown) = (Some(true), Some(false), None);
        for (source, expected) in [
            ("has(self.a)", yes),
            ("!has(self.a)", no),
            ("has(self.b.c)", yes),
            // It is null.
            ("has(self.__namespace__)", no),
            // These have no CEL value, or perhaps none.
            ("has(self.b.d)", unknown),
            ("has(self.either)", unknown),
            ("has(self.a) || self.n > 3", yes),
            ("self.n > 3 || has(self.a)", unknown),
            ("self.n > 3 && !has(self.a)", unknown),
            ("!has(self.a) || self.n > 3", unknown),
            ("!has(self.a) && self.n > 3", no),
            ("has(self.a) && self.n > 3", unknown),
            ("has(self.a) == has(self.b.c)", yes),
            ("has(self.a) != has(self.b.c)", no),
            ("has(self.a) == (self.n > 3)", unknown),
            ("has(self.a) ? true : self.n > 3", yes),
            ("has(self.a) ? self.n > 3 : true", unknown),
            ("self.n > 3 ? true : true", unknown),
            ("has(oldSelf.a)", unknown),
            ("self.n == 1", unknown),
            ("[has(self.a)].all(it, it)", unknown),
        ] {
            assert_eq!(value(source, &object, None), expected, "{source}");
        }
        let old = json!({"b": {}});
        assert_eq!(value("has(oldSelf.a)", &object, Some(&old)), no);
        let source = "has(self.b.c) == has(oldSelf.b.c)";
        assert_eq!(value(source, &object, Some(&old)), no);
        assert_eq!(value(source, &object, Some(&object)), yes);
        // A field of a field that is absent, or is no object, is an error.
        for object in [
            json!({}),
            json!({"b": null}),
            json!({"b": "text"}),
            json!("text"),
        ] {
            assert_eq!(value("has(self.b.c)", &object, None), unknown, "{object}");
        }
        assert_eq!(value("has(self.a)", &json!({"a": 1}), None), unknown);
    }

    #[test]
    fn each_part_of_a_rule_that_is_nested_deep_is_visited_once() {
        // Twice for each level, this would take longer than the universe is old.
        let mut presence = Presence::Unknown;
        for _ in 0..200 {
            let both = [presence, Presence::Constant(true)];
            presence = Presence::Not(Box::new(Presence::Equal(Box::new(both))));
        }
        let PossibleValues { yes, no } = presence.possible_values();
        assert!(!yes && !no);
    }
}

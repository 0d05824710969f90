//! JSON as CEL values, typed by the schema: CEL tells integers from doubles, JSON does not.

use std::collections::HashMap;
use std::sync::Arc;

use ::cel::Value as CelValue;
use ::cel::objects::{Key, Map};
use serde_json::{Number, Value};

use crate::schema::{JsonType, Schema};

pub(super) fn value(schema: &Schema, value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::Number(number) if schema.json_type == Some(JsonType::Number) => double(number),
        Value::Number(number) => number
            .as_i64()
            .map_or_else(|| double(number), CelValue::Int),
        Value::String(text) => CelValue::String(Arc::new(text.clone())),
        Value::Array(items) => {
            let item_schema = schema.items.as_deref();
            let items = items
                .iter()
                .filter_map(|item| Some(self::value(item_schema?, item)));
            CelValue::List(Arc::new(items.collect()))
        }
        Value::Object(fields) => {
            let entries = fields.iter().filter_map(|(name, field)| {
                let child = schema.field(name)?;
                let key = if schema.properties.contains_key(name) {
                    escape(name)
                } else {
                    name.clone()
                };
                // A null field counts as absent for `has()`.
                (!field.is_null() || child.nullable)
                    .then(|| (Key::String(Arc::new(key)), self::value(child, field)))
            });
            let map: HashMap<_, _> = entries.collect();
            CelValue::Map(Map { map: Arc::new(map) })
        }
    }
}

fn double(number: &Number) -> CelValue {
    CelValue::Float(number.as_f64().unwrap_or_default())
}

/// Property names as CEL identifiers:
/// <https://kubernetes.io/docs/reference/using-api/cel/#escaping>.
fn escape(name: &str) -> String {
    const RESERVED: &[&str] = &[
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
    ];
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

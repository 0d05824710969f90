//! Random values with the fields of a schema.

use fastrand::Rng;
use serde_json::{Map, Value};

/// Maximum number of items of a list or a map.
const MAX_ITEMS: usize = 3;

/// Returns a value of the type of a schema, in which each field is present or not. Rules and limits of the schema are not
/// considered: a conversion has to work for objects that are not valid, too.
pub(super) fn random_value(schema: &Value, random: &mut Rng) -> Value {
    if let Some(allowed) = schema["enum"].as_array()
        && let Some(value) = random.choice(allowed)
    {
        return value.clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return if random.bool() {
            random.u16(..).into()
        } else {
            random_text(random).into()
        };
    }
    match schema["type"].as_str() {
        Some("object") => random_object(schema, random),
        Some("array") => {
            let count = random.usize(..=MAX_ITEMS);
            let items = (0..count).map(|_| random_value(&schema["items"], random));
            items.collect()
        }
        Some("integer") => random.i32(..).into(),
        Some("number") => f64::from(random.i16(..)).into(),
        Some("boolean") => random.bool().into(),
        _ => random_text(random).into(),
    }
}

fn random_object(schema: &Value, random: &mut Rng) -> Value {
    let mut fields = Map::new();
    let properties = schema["properties"].as_object();
    for (name, schema) in properties.into_iter().flatten() {
        if random.bool() {
            fields.insert(name.clone(), random_value(schema, random));
        }
    }
    if schema["additionalProperties"].is_object() {
        for _ in 0..random.usize(..=MAX_ITEMS) {
            let value = random_value(&schema["additionalProperties"], random);
            fields.insert(random_text(random), value);
        }
    }
    Value::Object(fields)
}

fn random_text(random: &mut Rng) -> String {
    let length = random.usize(..8);
    std::iter::repeat_with(|| random.lowercase())
        .take(length)
        .collect()
}

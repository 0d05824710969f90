//! Conversion of JSON to CEL values, typed by the schema as in the API server.

use std::cell::Cell;
use std::collections::HashMap;

use ::cel::common::types::{
    CelBool, CelBytes, CelDouble, CelDuration, CelInt, CelList, CelMap, CelMapKey, CelNull,
    CelString, CelTimestamp,
};
use ::cel::common::value::Val;
use base64::Engine;
use serde_json::{Map, Number, Value};

use crate::cel::dyn_value::{Preserved, Unrepresentable};
use crate::cel::field_usage::FieldUsage;
use crate::cel::list_map::Keyed;
use crate::cel::map_key;
use crate::cel::map_key::Identified;
use crate::format::go_fmt;
use crate::format::{Format, time};
use crate::schema::{JsonType, ListType, Schema};

/// Key of the entry with all unknown fields of an object, which is only used for comparisons. No rule can
/// access it.
const UNKNOWN: &str = "@unknown";
/// Key of the entry with the number of null fields of an object. They affect comparisons and nothing else.
const NULLS: &str = "@nulls";

/// Conversion that records whether any data has no CEL value.
#[derive(Default)]
pub(super) struct Conversion {
    met_broken: Cell<bool>,
}

impl Conversion {
    /// Returns true if any data had no CEL value.
    pub(super) fn met_broken(&self) -> bool {
        self.met_broken.get()
    }

    fn broken<'v>(&self, problem: impl Into<String>) -> Box<dyn Val + 'v> {
        self.met_broken.set(true);
        Box::new(Unrepresentable(problem.into()))
    }
}

impl Conversion {
    /// Converts a value of this schema.
    pub(super) fn of<'v>(&self, schema: &'v Schema, value: &'v Value) -> Box<dyn Val + 'v> {
        if value.is_null() {
            return if schema.nullable {
                Box::new(CelNull)
            } else {
                self.broken("invalid data, got null for schema with nullable=false")
            };
        }
        if schema.int_or_string {
            return match value {
                Value::String(text) => Box::new(CelString::from(text.as_str())),
                Value::Number(number) if number.as_i64().is_some() => integer(number),
                _ => self.broken(
                    "invalid data, expected XIntOrString value to be either a string or integer",
                ),
            };
        }
        let expected = match (schema.json_type, value) {
            (Some(JsonType::Object), Value::Object(fields)) => {
                return Box::new(CelMap::from(self.entries(
                    schema,
                    fields,
                    &FieldUsage::Whole,
                )));
            }
            (Some(JsonType::Array), Value::Array(items)) => {
                return match &schema.items {
                    Some(item_schema) => self.list(&schema.list_type, item_schema, items),
                    None => {
                        self.broken("invalid array type, expected Items with a non-empty Schema")
                    }
                };
            }
            (Some(JsonType::String), Value::String(text)) => return self.text(schema.format, text),
            (Some(JsonType::Number), Value::Number(number)) => {
                return Box::new(CelDouble::from(number.as_f64().unwrap_or_default()));
            }
            (Some(JsonType::Integer), Value::Number(number)) if number.as_i64().is_some() => {
                return integer(number);
            }
            (Some(JsonType::Boolean), Value::Bool(flag)) => return Box::new(CelBool::from(*flag)),
            (None, value) if schema.preserves_unknown => return Box::new(Preserved(value.clone())),
            (Some(JsonType::Object), _) => "a map for the provided schema with type=object",
            (Some(JsonType::Array), _) => "an array for the provided schema with type=array",
            (Some(JsonType::String), _) => "string, got",
            (Some(JsonType::Number), _) => "float, got",
            (Some(JsonType::Integer), _) => "int, got",
            (Some(JsonType::Boolean), _) => "bool, got",
            (None, _) => "a type",
        };
        let got = if expected.ends_with("got") {
            go_fmt::type_name(value)
        } else {
            ""
        };
        self.broken(format!("invalid data, expected {expected} {got}").trim_end())
    }

    /// Converts only the fields of a value that its rules read.
    pub(super) fn of_part<'v>(
        &self,
        schema: &'v Schema,
        value: &'v Value,
        reach: &FieldUsage,
    ) -> Box<dyn Val + 'v> {
        match (schema.json_type, value) {
            (Some(JsonType::Object), Value::Object(fields)) if !schema.int_or_string => {
                Box::new(CelMap::from(self.entries(schema, fields, reach)))
            }
            _ => self.of(schema, value),
        }
    }

    /// Converts the root of a resource. Its type and name are always included, independent of the schema.
    pub(super) fn of_resource<'v>(
        &self,
        schema: &'v Schema,
        value: &'v Value,
    ) -> Box<dyn Val + 'v> {
        match value {
            Value::Object(fields) => {
                let mut entries = self.entries(schema, fields, &FieldUsage::Whole);
                add_identity(&mut entries, fields);
                Box::new(CelMap::from(entries))
            }
            _ => {
                self.broken("invalid data, expected a map for the provided schema with type=object")
            }
        }
    }

    fn text<'v>(&self, format: Option<Format>, text: &'v str) -> Box<dyn Val + 'v> {
        let read: Option<Box<dyn Val>> = match format {
            Some(Format::Duration) => {
                time::duration(text).map(|value| Box::new(CelDuration::from(value)) as _)
            }
            Some(Format::Date) => {
                let midnight = time::date(text).map(|date| format!("{date}T00:00:00Z"));
                let moment = midnight.and_then(|text| time::moment(&text));
                moment.map(|value| Box::new(CelTimestamp::from(value)) as _)
            }
            Some(Format::DateTime) => {
                time::moment(text).map(|value| Box::new(CelTimestamp::from(value)) as _)
            }
            // The API server validates the standard alphabet, but decodes the URL-safe one.
            Some(Format::Byte) => base64::engine::general_purpose::URL_SAFE
                .decode(text)
                .ok()
                .map(|bytes| Box::new(CelBytes::from(bytes)) as _),
            _ => return Box::new(CelString::from(text)),
        };
        read.unwrap_or_else(|| self.broken(format!("Invalid formatted string {text}")))
    }

    /// Converts the fields of an object, with their CEL identifiers as keys.
    fn entries<'v>(
        &self,
        schema: &'v Schema,
        fields: &'v Map<String, Value>,
        reach: &FieldUsage,
    ) -> Entries<'v> {
        let most = match reach {
            FieldUsage::Fields(names) => names.len(),
            FieldUsage::Whole => fields.len(),
        };
        let mut entries = HashMap::with_capacity(most);
        if let Some(child) = schema.additional().filter(|_| schema.properties.is_empty()) {
            for (name, field) in fields.iter().filter(|(name, _)| reach.has(name)) {
                entries.insert(CelMapKey::from(name.as_str()), self.of(child, field));
            }
        } else {
            self.add_properties(schema, fields, reach, &mut entries);
        }
        if schema.embedded {
            add_identity(&mut entries, fields);
        }
        entries
    }

    fn add_properties<'v>(
        &self,
        schema: &'v Schema,
        fields: &'v Map<String, Value>,
        reach: &FieldUsage,
        entries: &mut Entries<'v>,
    ) {
        let mut unknown = Map::new();
        let mut nulls = 0;
        for (name, field) in fields {
            match schema.properties.get(name) {
                // A null field counts as absent.
                Some(_) if field.is_null() => nulls += 1,
                Some(child) => {
                    if let Some(name) = child.identifier.as_deref().filter(|name| reach.has(name)) {
                        entries.insert(CelMapKey::from(name), self.of(child, field));
                    }
                    if let Some(word) = child.reserved_word.as_deref()
                        && reach.has(word)
                    {
                        entries.insert(CelMapKey::from(word), self.of(child, field));
                    }
                }
                None if *reach == FieldUsage::Whole => {
                    unknown.insert(name.clone(), field.clone());
                }
                None => {}
            }
        }
        if *reach != FieldUsage::Whole {
            return;
        }
        if nulls > 0 {
            entries.insert(CelMapKey::from(NULLS), Box::new(CelInt::from(nulls)));
        }
        if !unknown.is_empty() {
            let unknown = Preserved(Value::Object(unknown));
            entries.insert(CelMapKey::from(UNKNOWN), Box::new(unknown));
        }
    }

    fn list<'v>(
        &self,
        list_type: &'v ListType,
        item_schema: &'v Schema,
        items: &'v [Value],
    ) -> Box<dyn Val + 'v> {
        let values: Vec<_> = items
            .iter()
            .map(|item| self.of(item_schema, item))
            .collect();
        let list = CelList::from(values);
        let by = match list_type {
            ListType::Atomic => return Box::new(list),
            ListType::Set => Identified::Whole,
            ListType::Map(keys) => Identified::By(
                keys.iter()
                    .map(|name| {
                        let schema = item_schema.properties.get(name);
                        let called = schema.and_then(|schema| schema.identifier.as_deref());
                        let json_type = schema.and_then(|schema| schema.json_type);
                        map_key::Field {
                            name: called
                                .is_none_or(|called| called == name)
                                .then(|| name.clone()),
                            is_float: json_type == Some(JsonType::Number),
                        }
                    })
                    .collect(),
            ),
        };
        Box::new(Keyed::new(by, list, items))
    }
}

fn integer<'v>(number: &Number) -> Box<dyn Val + 'v> {
    Box::new(CelInt::from(number.as_i64().unwrap_or_default()))
}

type Entries<'v> = HashMap<CelMapKey<'v>, Box<dyn Val + 'v>>;

fn add_identity<'v>(entries: &mut Entries<'v>, fields: &'v Map<String, Value>) {
    for name in ["apiVersion", "kind"] {
        if let Some(text) = fields.get(name).and_then(Value::as_str) {
            entries.insert(CelMapKey::from(name), Box::new(CelString::from(text)));
        }
    }
    if let Some(metadata) = fields.get("metadata") {
        let names = ["name", "generateName"].into_iter().filter_map(|name| {
            let text = metadata.get(name)?.as_str()?;
            Some((
                CelMapKey::from(name),
                Box::new(CelString::from(text)) as Box<dyn Val + 'v>,
            ))
        });
        let names: Entries<'v> = names.collect();
        entries.insert(CelMapKey::from("metadata"), Box::new(CelMap::from(names)));
    }
}

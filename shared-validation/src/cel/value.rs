//! JSON as CEL values, typed by the schema, as the API server types it.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;

use ::cel::ExecutionError;
use ::cel::common::traits::{Adder, Container, Indexer, Iterable, Sizer};
use ::cel::common::types::{
    CelBool, CelBytes, CelDouble, CelDuration, CelInt, CelList, CelMap, CelMapKey, CelNull,
    CelString, CelTimestamp, LIST_TYPE, Type,
};
use ::cel::common::value::{CowVal, StaticVal, Val};
use base64::Engine;
use serde_json::{Map, Number, Value};

use crate::cel::reach::Reach;
use crate::format::{Format, time};
use crate::go;
use crate::schema::{JsonType, ListType, Schema};

/// The key under which an object keeps, for comparison, the fields that its schema does not know. No
/// rule can name it.
const UNKNOWN: &str = "@unknown";
/// The key under which an object keeps the number of its null fields: they count when it is compared,
/// and for nothing else.
const NULLS: &str = "@nulls";

/// Makes values, and notes whether some of the data has none.
#[derive(Default)]
pub(super) struct Conversion {
    met_broken: Cell<bool>,
}

impl Conversion {
    /// Whether data was met that no CEL value stands for.
    pub(super) fn met_broken(&self) -> bool {
        self.met_broken.get()
    }

    fn broken<'v>(&self, problem: impl Into<String>) -> Box<dyn Val + 'v> {
        self.met_broken.set(true);
        Box::new(Broken(problem.into()))
    }
}

impl Conversion {
    /// A value of this schema, as CEL sees it.
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
                return Box::new(self.object(schema, fields, &Reach::Whole));
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
            go::type_name(value)
        } else {
            ""
        };
        self.broken(format!("invalid data, expected {expected} {got}").trim_end())
    }

    /// As much of a value as its rules look at.
    pub(super) fn of_part<'v>(
        &self,
        schema: &'v Schema,
        value: &'v Value,
        reach: &Reach,
    ) -> Box<dyn Val + 'v> {
        match (schema.json_type, value) {
            (Some(JsonType::Object), Value::Object(fields)) if !schema.int_or_string => {
                Box::new(self.object(schema, fields, reach))
            }
            _ => self.of(schema, value),
        }
    }

    /// The root of a resource: its type and name are there whatever the schema says.
    pub(super) fn of_resource<'v>(
        &self,
        schema: &'v Schema,
        value: &'v Value,
    ) -> Box<dyn Val + 'v> {
        match value {
            Value::Object(fields) => {
                let mut entries = self.entries(schema, fields, &Reach::Whole);
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
            // The API server validates the standard alphabet and then reads the one of URLs.
            Some(Format::Byte) => base64::engine::general_purpose::URL_SAFE
                .decode(text)
                .ok()
                .map(|bytes| Box::new(CelBytes::from(bytes)) as _),
            _ => return Box::new(CelString::from(text)),
        };
        read.unwrap_or_else(|| self.broken(format!("Invalid formatted string {text}")))
    }

    fn object<'v>(
        &self,
        schema: &'v Schema,
        fields: &'v Map<String, Value>,
        reach: &Reach,
    ) -> CelMap<'v> {
        let mut entries = self.entries(schema, fields, reach);
        if schema.embedded {
            add_identity(&mut entries, fields);
        }
        CelMap::from(entries)
    }

    fn entries<'v>(
        &self,
        schema: &'v Schema,
        fields: &'v Map<String, Value>,
        reach: &Reach,
    ) -> Entries<'v> {
        let most = match reach {
            Reach::Fields(names) => names.len(),
            Reach::Whole => fields.len(),
        };
        let mut entries = HashMap::with_capacity(most);
        if let Some(child) = schema.additional().filter(|_| schema.properties.is_empty()) {
            for (name, field) in fields {
                if reach.has(name) {
                    entries.insert(CelMapKey::from(name.as_str()), self.of(child, field));
                }
            }
            return entries;
        }
        let mut unknown = Map::new();
        let mut nulls = 0;
        for (name, field) in fields {
            match schema.properties.get(name) {
                // A null field counts as absent.
                Some(_) if field.is_null() => nulls += 1,
                Some(child) => {
                    if let Some(name) = escape(name).filter(|name| reach.has(name)) {
                        entries.insert(key(name), self.of(child, field));
                    }
                }
                None if *reach == Reach::Whole => {
                    unknown.insert(name.clone(), field.clone());
                }
                None => {}
            }
        }
        if *reach != Reach::Whole {
            return entries;
        }
        if nulls > 0 {
            entries.insert(CelMapKey::from(NULLS), Box::new(CelInt::from(nulls)));
        }
        if !unknown.is_empty() {
            entries.insert(
                CelMapKey::from(UNKNOWN),
                Box::new(Preserved(Value::Object(unknown))),
            );
        }
        entries
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
        match list_type {
            ListType::Atomic => Box::new(list),
            ListType::Set => Box::new(Keyed { list, keys: None }),
            ListType::Map(keys) => {
                let keys = keys
                    .iter()
                    .filter_map(|name| escape(name).map(key))
                    .collect();
                Box::new(Keyed {
                    list,
                    keys: Some(keys),
                })
            }
        }
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

/// A property's name as a CEL identifier; some names have none.
/// <https://kubernetes.io/docs/reference/using-api/cel/#escaping>
fn escape(name: &str) -> Option<Cow<'_, str>> {
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__").into());
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if name.bytes().all(plain) && !name.contains("__") {
        return Some(name.into());
    }
    if !name
        .bytes()
        .all(|b| plain(b) || matches!(b, b'.' | b'-' | b'/'))
    {
        return None;
    }
    let escaped = name
        .replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__");
    Some(escaped.into())
}

fn key(name: Cow<'_, str>) -> CelMapKey<'_> {
    match name {
        Cow::Borrowed(name) => CelMapKey::from(name),
        Cow::Owned(name) => CelMapKey::from(name),
    }
}

/// The property that an identifier stands for.
pub(super) fn unescape(identifier: &str) -> String {
    let inner = identifier
        .strip_prefix("__")
        .and_then(|rest| rest.strip_suffix("__"));
    if let Some(name) = inner.filter(|name| RESERVED.contains(name)) {
        return name.to_owned();
    }
    identifier
        .replace("__dot__", ".")
        .replace("__dash__", "-")
        .replace("__slash__", "/")
        .replace("__underscores__", "__")
}

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

/// Data that has no CEL value, and why: every operation on it fails.
#[derive(Clone, Debug)]
pub(super) struct Broken(pub(super) String);

impl Val for Broken {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        static TYPE: Type = Type::new_unspecified_type("@broken");
        &TYPE
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

impl StaticVal for Broken {}

/// Data that the schema does not describe: it can be compared, and nothing else.
#[derive(Clone, Debug, PartialEq)]
struct Preserved(Value);

impl Val for Preserved {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        static TYPE: Type = Type::new_unspecified_type("@preserved");
        &TYPE
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>() == Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

impl StaticVal for Preserved {}

/// A list whose items have identities: a set, or a map by keys. Order does not count when it is
/// compared, and `+` is a union.
#[derive(Debug)]
struct Keyed<'v> {
    list: CelList<'v>,
    /// The fields that identify an item; none for a set.
    keys: Option<Vec<CelMapKey<'v>>>,
}

impl Keyed<'_> {
    fn is_same(&self, a: &dyn Val, b: &dyn Val) -> bool {
        let Some(keys) = &self.keys else {
            return a.equals(b);
        };
        keys.iter().all(|key| match (part(a, key), part(b, key)) {
            (Some(a), Some(b)) => a.equals(b.as_ref()),
            (None, None) => true,
            _ => false,
        })
    }
}

fn part<'b, 'v>(value: &'b (dyn Val + 'v), key: &CelMapKey<'_>) -> Option<CowVal<'b, 'v>> {
    value.as_indexer()?.get(key.inner()).ok()
}

impl Val for Keyed<'_> {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        &LIST_TYPE
    }

    fn as_adder<'b, 'w>(&'b self) -> Option<&'b (dyn Adder + 'w)>
    where
        Self: 'w,
    {
        Some(self)
    }

    fn as_container(&self) -> Option<&dyn Container> {
        self.list.as_container()
    }

    fn as_indexer<'b, 'w>(&'b self) -> Option<&'b (dyn Indexer + 'w)>
    where
        Self: 'w,
    {
        self.list.as_indexer()
    }

    fn as_iterable<'b, 'w>(&'b self) -> Option<&'b (dyn Iterable + 'w)>
    where
        Self: 'w,
    {
        self.list.as_iterable()
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        self.list.as_sizer()
    }

    fn equals(&self, other: &dyn Val) -> bool {
        let Some(iterable) = other.as_iterable() else {
            return false;
        };
        let mut others = iterable.iter();
        let mut count = 0;
        while let Some(other) = others.next() {
            count += 1;
            let own = self
                .list
                .inner()
                .iter()
                .find(|own| self.is_same(own.as_ref(), other));
            if !own.is_some_and(|own| self.keys.is_none() || own.equals(other)) {
                return false;
            }
        }
        count == self.list.inner().len()
    }

    fn clone_as_boxed<'w>(&self) -> Box<dyn Val + 'w>
    where
        Self: 'w,
    {
        Box::new(Keyed {
            list: self.list.clone(),
            keys: self.keys.clone(),
        })
    }
}

impl Adder for Keyed<'_> {
    fn add<'b, 'w>(&'b self, rhs: &(dyn Val + 'w)) -> Result<CowVal<'b, 'w>, ExecutionError>
    where
        Self: 'w,
    {
        let mut others = rhs
            .as_iterable()
            .ok_or_else(|| ExecutionError::function_error("_+_", "no such overload"))?
            .iter();
        let mut sum: Vec<Box<dyn Val + 'w>> = self
            .list
            .inner()
            .iter()
            .map(|item| item.clone_as_boxed())
            .collect();
        while let Some(other) = others.next() {
            let place = sum.iter().position(|own| self.is_same(own.as_ref(), other));
            match place {
                Some(place) => sum[place] = other.clone_as_boxed(),
                None => sum.push(other.clone_as_boxed()),
            }
        }
        let keys = self.keys.clone();
        Ok(CowVal::owned(Keyed {
            list: CelList::from(sum),
            keys,
        }))
    }
}

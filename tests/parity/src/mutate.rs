//! Mutations of valid objects: typical errors of users and tools, and attempts of attackers.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use crate::generate::runner;
use crate::samples::{FLOATS, INTEGERS, TEXTS};

/// Source of mutated objects. The same seed gives the same objects.
pub struct Mutator {
    runner: TestRunner,
    mutations: BoxedStrategy<Vec<(Index, Mutation)>>,
    valid_objects: Vec<Value>,
}

/// Mutation at one place of an object.
#[derive(Clone, Debug)]
enum Mutation {
    /// Remove the field or item.
    Drop,
    /// Replace it by a value of any type.
    Retype(Value),
    /// Move a number out of its range, or a text or list out of its length.
    OutOfRange(i64),
    /// Increment or decrement a number; remove or repeat the last character of a text.
    Adjust(bool),
    /// Repeat an item or a field.
    Duplicate,
    /// Append Unicode characters to a text or to the name of a field.
    Unicode(&'static str),
    /// Replace it by a text, list or map of this size.
    Huge(usize),
    /// Nest it in lists and objects of this depth.
    Deep(usize),
    /// Remove a character of the name of a field, change its case, or replace it.
    Rename(u8),
    /// Replace it by the value at the same place in another object.
    Cross(Index),
}

/// Prefix of the second field with the same name, until the object is serialized.
const TWICE: &str = "\u{1}twice:";

/// Object to send. Its text contains more than the value if a field is repeated.
#[derive(Clone, Debug)]
pub struct Mutated {
    /// The object as read by a parser that keeps the last field of a name.
    pub value: Value,
    /// The object as JSON.
    pub text: String,
}

impl Mutator {
    /// Returns a mutator of these objects.
    #[must_use]
    pub fn new(valid_objects: Vec<Value>, seed: u64) -> Self {
        let mutations = proptest::collection::vec((any::<Index>(), mutation()), 0..4);
        Self {
            runner: runner(seed),
            mutations: mutations.boxed(),
            valid_objects,
        }
    }

    /// Returns one of the original objects.
    pub fn valid_object(&mut self) -> Value {
        let choice = self.sample(&any::<Index>().boxed());
        self.valid_objects[choice.index(self.valid_objects.len())].clone()
    }

    /// Returns the object with mutations of its `spec`.
    pub fn mutated(&mut self, object: &Value) -> Mutated {
        let mutations = self.sample(&self.mutations.clone());
        let mut value = object.clone();
        for (index, mutation) in mutations {
            let pointers = pointers(&value);
            if let Some(pointer) = pointers.get(index.index(pointers.len().max(1))) {
                self.apply(&mut value, pointer, &mutation);
            }
        }
        let mark = json!(TWICE).to_string();
        let text = value.to_string().replace(mark.trim_end_matches('"'), "\"");
        let value = serde_json::from_str(&text)
            .expect("renaming a repeated field keeps the text valid JSON");
        Mutated { value, text }
    }

    fn apply(&self, object: &mut Value, pointer: &str, mutation: &Mutation) {
        let (parent, last) = pointer.rsplit_once('/').unwrap_or_default();
        let other = match mutation {
            Mutation::Cross(index) => {
                let other = &self.valid_objects[index.index(self.valid_objects.len())];
                other.pointer(pointer).cloned()
            }
            _ => None,
        };
        match object.pointer_mut(parent) {
            Some(Value::Object(fields)) => {
                let name = last.replace("~1", "/").replace("~0", "~");
                in_object(fields, &name, mutation, other);
            }
            Some(Value::Array(items)) => {
                if let Ok(at) = last.parse::<usize>()
                    && at < items.len()
                {
                    in_list(items, at, mutation, other);
                }
            }
            _ => {}
        }
    }

    fn sample<T: std::fmt::Debug>(&mut self, strategy: &BoxedStrategy<T>) -> T {
        strategy
            .new_tree(&mut self.runner)
            .expect("no strategy filters values")
            .current()
    }
}

fn mutation() -> BoxedStrategy<Mutation> {
    let anything = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        select(INTEGERS).prop_map(Value::from),
        select(FLOATS).prop_map(Value::from),
        select(TEXTS).prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([[{}]])),
        Just(json!({"a": {"b": null}})),
        Just(json!([null, 1, "a"])),
    ];
    prop_oneof![
        3 => Just(Mutation::Drop),
        4 => anything.prop_map(Mutation::Retype),
        3 => select(INTEGERS).prop_map(Mutation::OutOfRange),
        4 => any::<bool>().prop_map(Mutation::Adjust),
        2 => Just(Mutation::Duplicate),
        2 => select(&["é", "👩‍👩‍👧", "\u{202e}abc", "\u{0}", "a\u{301}", "\u{feff}", "\u{2028}", "ＡＢＣ", "ı"][..])
            .prop_map(Mutation::Unicode),
        1 => (0_usize..3000).prop_map(Mutation::Huge),
        1 => (1_usize..35).prop_map(Mutation::Deep),
        2 => any::<u8>().prop_map(Mutation::Rename),
        8 => any::<Index>().prop_map(Mutation::Cross),
    ]
    .boxed()
}

fn in_object(
    fields: &mut Map<String, Value>,
    name: &str,
    mutation: &Mutation,
    other: Option<Value>,
) {
    match mutation {
        Mutation::Drop => {
            fields.remove(name);
        }
        Mutation::Duplicate => {
            let value = fields.get(name).cloned().unwrap_or_default();
            fields.insert(format!("{TWICE}{name}"), value);
        }
        Mutation::Rename(how) => {
            let value = fields.remove(name).unwrap_or_default();
            let new = match how % 4 {
                0 => name.to_uppercase(),
                1 => name.chars().skip(1).collect(),
                2 => format!("{name}s"),
                _ => "unknown".to_owned(),
            };
            fields.insert(new, value);
        }
        Mutation::Unicode(text) if fields.get(name).is_none_or(|value| !value.is_string()) => {
            let value = fields.remove(name).unwrap_or_default();
            fields.insert(format!("{name}{text}"), value);
        }
        Mutation::Cross(_) => {
            if let Some(other) = other {
                fields.insert(name.to_owned(), other);
            }
        }
        _ => {
            if let Some(value) = fields.get_mut(name) {
                in_value(value, mutation);
            }
        }
    }
}

fn in_list(items: &mut Vec<Value>, at: usize, mutation: &Mutation, other: Option<Value>) {
    match (mutation, other) {
        (Mutation::Drop, _) => {
            items.remove(at);
        }
        (Mutation::Duplicate, _) => items.push(items[at].clone()),
        (Mutation::Cross(_), Some(other)) => items[at] = other,
        _ => in_value(&mut items[at], mutation),
    }
}

fn in_value(value: &mut Value, mutation: &Mutation) {
    match (mutation, value) {
        (Mutation::Retype(other), value) => *value = other.clone(),
        (Mutation::OutOfRange(number), value @ Value::Number(_)) => *value = json!(number),
        // The API server accepts requests of up to 3 MiB.
        (Mutation::OutOfRange(number), Value::String(text)) if text.len() < 10_000 => {
            *text = text.repeat(usize::try_from(number.rem_euclid(90)).unwrap_or_default());
        }
        (Mutation::Adjust(up), Value::Number(number)) => {
            if let Some(whole) = number.as_i64() {
                *number = whole.saturating_add(if *up { 1 } else { -1 }).into();
            }
        }
        (Mutation::Adjust(longer), Value::String(text)) => match text.pop() {
            Some(last) if *longer => text.extend([last, last]),
            _ => {}
        },
        (Mutation::Adjust(_), Value::Bool(flag)) => *flag = !*flag,
        (Mutation::Unicode(other), Value::String(text)) => text.push_str(other),
        (Mutation::Huge(size), Value::String(text)) => *text = "a".repeat(*size * 20),
        (Mutation::Huge(size), Value::Object(fields)) => {
            fields.extend((0..*size).map(|index| (format!("k{index}"), json!("v"))));
        }
        (Mutation::Huge(size), value) => *value = Value::Array(vec![json!(1); *size]),
        (Mutation::Deep(depth), value) => {
            for level in 0..*depth {
                let inner = value.take();
                *value = if level % 2 == 0 {
                    json!([inner])
                } else {
                    json!({"a": inner})
                };
            }
        }
        _ => {}
    }
}

/// Returns every place within the `spec`, including the `spec`, as JSON pointers.
fn pointers(object: &Value) -> Vec<String> {
    let mut pointers = Vec::new();
    if let Some(spec) = object.get("spec") {
        below(spec, "/spec".to_owned(), &mut pointers);
    }
    pointers
}

fn below(value: &Value, pointer: String, pointers: &mut Vec<String>) {
    // Limit, because otherwise a huge value would provide nearly all places.
    const ENOUGH: usize = 200;
    if pointers.len() > ENOUGH {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, child) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                below(child, format!("{pointer}/{name}"), pointers);
            }
        }
        Value::Array(items) => {
            for (index, child) in items.iter().enumerate() {
                below(child, format!("{pointer}/{index}"), pointers);
            }
        }
        _ => {}
    }
    pointers.push(pointer);
}

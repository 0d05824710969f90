//! Random objects from the schema of a CRD: valid ones, and ones that violate it.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value, json};

use crate::samples::{FLOATS, INTEGERS, TEXTS};

/// Source of random objects. The same seed gives the same objects.
pub struct Generator {
    runner: TestRunner,
    object: BoxedStrategy<Value>,
    api_version: String,
    kind: String,
    made: usize,
}

impl Generator {
    /// Returns a generator for one version of a CRD.
    #[must_use]
    pub fn new(crd: &Value, version: &str, seed: u64) -> Self {
        let versions = crd["spec"]["versions"].as_array();
        let definition = versions
            .into_iter()
            .flatten()
            .find(|one| one["name"] == version);
        let schema = definition.map_or(Value::Null, |one| one["schema"]["openAPIV3Schema"].clone());
        let group = crd["spec"]["group"].as_str().unwrap_or_default();
        Self {
            runner: runner(seed),
            object: fields(&schema, &["apiVersion", "kind", "metadata", "status"]),
            api_version: format!("{group}/{version}"),
            kind: crd["spec"]["names"]["kind"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            made: 0,
        }
    }

    /// Returns the next object, with a unique name.
    pub fn next_object(&mut self) -> Value {
        let name = format!("o-{}", self.made);
        self.made += 1;
        self.named(&name)
    }

    /// Returns an object with this name.
    pub fn named(&mut self, name: &str) -> Value {
        let mut object = self.sample(&self.object.clone());
        object["apiVersion"] = json!(self.api_version);
        object["kind"] = json!(self.kind);
        object["metadata"] = json!({"name": name});
        object
    }

    /// Returns the object with some of its fields generated again.
    pub fn changed(&mut self, old: &Value) -> Value {
        let name = old["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let other = self.named(&name);
        let choice = self.sample(&proptest::collection::vec(any::<u8>(), 64).boxed());
        let mut choice = choice.into_iter();
        merged(old, &other, &mut choice)
    }

    fn sample<T: std::fmt::Debug>(&mut self, strategy: &BoxedStrategy<T>) -> T {
        strategy
            .new_tree(&mut self.runner)
            .expect("no strategy filters values")
            .current()
    }
}

/// Returns the seed of the random objects of a test: `LOCKSTEP_SEED`, or always the same number, so that a test fails
/// only because of a change.
///
/// # Panics
///
/// If `LOCKSTEP_SEED` is not a number.
#[must_use]
pub fn seed() -> u64 {
    std::env::var("LOCKSTEP_SEED")
        .map_or(1, |seed| seed.parse().expect("LOCKSTEP_SEED is a number"))
}

/// Returns a reproducible source of random values.
pub(crate) fn runner(seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let chance = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    TestRunner::new_with_rng(Config::default(), chance)
}

/// Merges two objects field by field: each field is that of `old`, that of `other`, or missing.
fn merged(old: &Value, other: &Value, choice: &mut impl Iterator<Item = u8>) -> Value {
    let (Value::Object(old_fields), Value::Object(other_fields)) = (old, other) else {
        return match choice.next().unwrap_or_default() % 4 {
            0 => other.clone(),
            _ => old.clone(),
        };
    };
    let mut names: Vec<_> = old_fields.keys().chain(other_fields.keys()).collect();
    names.sort();
    names.dedup();
    let mut fields = Map::new();
    for name in names {
        let chosen = match (old_fields.get(name), other_fields.get(name)) {
            (Some(old), Some(other)) => Some(merged(old, other, choice)),
            (Some(old), None) => {
                (!choice.next().unwrap_or_default().is_multiple_of(6)).then(|| old.clone())
            }
            (None, other) => other
                .filter(|_| choice.next().unwrap_or_default().is_multiple_of(3))
                .cloned(),
        };
        if let Some(value) = chosen {
            fields.insert(name.clone(), value);
        }
    }
    Value::Object(fields)
}

/// Percentage of values that are generated without regard to the schema.
const BROKEN_PERCENT: u32 = 6;

fn value(schema: &Value) -> BoxedStrategy<Value> {
    prop_oneof![
        100 - BROKEN_PERCENT => fitting(schema),
        BROKEN_PERCENT => anything(),
    ]
    .boxed()
}

/// Returns a value of the type of the schema. Most values are within its bounds.
fn fitting(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(options) = schema["enum"]
        .as_array()
        .filter(|options| !options.is_empty())
    {
        return prop_oneof![12 => select(options.clone()), 1 => text(schema)].boxed();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return prop_oneof![integer(schema), text(schema), number()].boxed();
    }
    if schema["nullable"] == true {
        let mut plain = schema.clone();
        plain["nullable"] = json!(false);
        return prop_oneof![4 => fitting(&plain), 1 => Just(Value::Null)].boxed();
    }
    match schema["type"].as_str() {
        Some("string") => text(schema),
        Some("integer") => prop_oneof![12 => integer(schema), 1 => number()].boxed(),
        Some("number") => prop_oneof![2 => number(), 1 => integer(schema)].boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("array") => list(schema),
        Some("object") => fields(schema, &[]),
        _ => anything(),
    }
}

fn text(schema: &Value) -> BoxedStrategy<Value> {
    let sample = || select(TEXTS).prop_map(Value::from);
    let mut choices: Vec<(u32, BoxedStrategy<Value>)> = vec![(4, sample().boxed())];
    // Strings that the CEL rules of the field contain.
    let known = literals(schema);
    if !known.is_empty() {
        choices.push((6, select(known).prop_map(Value::from).boxed()));
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        let plain = pattern.trim_start_matches('^').trim_end_matches('$');
        if let Ok(matching) = proptest::string::string_regex(plain) {
            choices.push((24, matching.prop_map(Value::from).boxed()));
        }
    }
    for (bound, weight) in [("minLength", 4), ("maxLength", 4)] {
        if let Some(length) = schema[bound].as_u64().filter(|length| *length < 2000) {
            let length = usize::try_from(length).unwrap_or_default();
            let repeated =
                (length.saturating_sub(1)..=length + 1).prop_map(|n| Value::from("a".repeat(n)));
            choices.push((weight, repeated.boxed()));
        }
    }
    Union::new_weighted(choices).boxed()
}

/// Returns the string literals in the CEL rules of a node.
fn literals(schema: &Value) -> Vec<String> {
    let rules = schema["x-kubernetes-validations"].as_array();
    let sources = rules
        .into_iter()
        .flatten()
        .filter_map(|rule| rule["rule"].as_str());
    sources
        .flat_map(|source| {
            source
                .split('\'')
                .skip(1)
                .step_by(2)
                .map(String::from)
                .collect::<Vec<_>>()
        })
        .collect()
}

fn integer(schema: &Value) -> BoxedStrategy<Value> {
    let mut choices: Vec<(u32, BoxedStrategy<Value>)> = vec![
        (3, select(INTEGERS).prop_map(Value::from).boxed()),
        (3, (-2_i64..12).prop_map(Value::from).boxed()),
    ];
    for bound in ["minimum", "maximum"] {
        if let Some(limit) = schema[bound].as_i64() {
            let near = (limit.saturating_sub(1)..=limit.saturating_add(1)).prop_map(Value::from);
            choices.push((3, near.boxed()));
        }
    }
    if let (Some(least), Some(most)) = (schema["minimum"].as_i64(), schema["maximum"].as_i64())
        && least < most
    {
        choices.push((16, (least..=most).prop_map(Value::from).boxed()));
    }
    Union::new_weighted(choices).boxed()
}

fn number() -> BoxedStrategy<Value> {
    prop_oneof![
        3 => select(FLOATS),
        1 => -10.0..10.0_f64,
    ]
    .prop_map(Value::from)
    .boxed()
}

fn list(schema: &Value) -> BoxedStrategy<Value> {
    let item = if schema["items"].is_object() {
        value(&schema["items"])
    } else {
        anything()
    };
    let lists = proptest::collection::vec(item, 0..5);
    // Some lists contain an item twice.
    (lists, any::<u8>())
        .prop_map(|(mut items, repeat)| {
            if repeat < 30
                && let Some(first) = items.first().cloned()
            {
                items.push(first);
            }
            Value::Array(items)
        })
        .boxed()
}

/// Returns an object with some fields of the schema and, rarely, with an unknown field.
fn fields(schema: &Value, left_out: &[&str]) -> BoxedStrategy<Value> {
    let required: Vec<_> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    let mut object: BoxedStrategy<Map<String, Value>> = Just(Map::new()).boxed();
    let properties: Vec<_> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| !left_out.contains(&name.as_str()))
        .collect();
    if properties.len() > 20 {
        // Objects with all fields would be too large: one to three.
        let each: Vec<_> = properties
            .iter()
            .map(|(name, child)| {
                let name = (*name).clone();
                value(child)
                    .prop_map(move |value| (name.clone(), value))
                    .boxed()
            })
            .collect();
        object = proptest::collection::vec(Union::new(each), 1..4)
            .prop_map(|entries| entries.into_iter().collect())
            .boxed();
    } else {
        for (name, child) in properties {
            let chance = if required.iter().any(|required| *required == name) {
                0.97
            } else {
                0.5
            };
            let name = name.clone();
            object = (object, proptest::option::weighted(chance, value(child)))
                .prop_map(move |(mut object, value)| {
                    object.extend(value.map(|value| (name.clone(), value)));
                    object
                })
                .boxed();
        }
    }
    if schema["additionalProperties"].is_object() {
        let key = select(&["a", "b", "k", "x.y", "ab", "a b", ""][..]).prop_map(String::from);
        let entries =
            proptest::collection::btree_map(key, value(&schema["additionalProperties"]), 0..4);
        object = (object, entries)
            .prop_map(|(mut object, entries)| {
                object.extend(entries);
                object
            })
            .boxed();
    }
    let stray =
        select(&["unknown", "Spec", "a-b", "metadata", "apiVersion"][..]).prop_map(String::from);
    (
        object,
        proptest::option::weighted(0.03, (stray, anything())),
    )
        .prop_map(|(mut object, stray)| {
            if let Some((name, value)) = stray {
                object.entry(name).or_insert(value);
            }
            Value::Object(object)
        })
        .boxed()
}

/// Returns any JSON value.
fn anything() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        select(INTEGERS).prop_map(Value::from),
        select(FLOATS).prop_map(Value::from),
        select(TEXTS).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            proptest::collection::btree_map("[a-z]{1,3}", inner, 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
    .boxed()
}

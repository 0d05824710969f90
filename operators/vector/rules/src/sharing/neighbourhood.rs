//! All pipelines that there are and those who may run them, for who sees them all at once.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::claims::PortClaims;
use super::namesakes::Names;
use super::runner::Runner;
use super::taken::SharedAddresses;
use super::{PIPELINES, RUNNERS, keys, runners, shared, told_of_pipeline, told_of_runner};

/// Pipelines and those who may run them, as far as pipelines are compared.
#[derive(Default)]
pub struct ClusterSnapshot {
    pipelines: IndexedValues<PortClaims>,
    runners: IndexedValues<Runner>,
    names: Names,
}

/// What is told of objects, by the keys under which they are found.
struct IndexedValues<T> {
    told: Vec<Arc<T>>,
    places: HashMap<String, Vec<usize>>,
}

impl ClusterSnapshot {
    /// Whether objects of a kind matter here.
    #[must_use]
    pub fn has(kind: &str) -> bool {
        PIPELINES.contains(&kind) || RUNNERS.contains(&kind)
    }

    /// Takes note of an object; one of another kind does not matter.
    pub fn add(&mut self, object: &Value) {
        let kind = object["kind"].as_str().unwrap_or_default();
        if PIPELINES.contains(&kind) {
            self.pipelines.file(told_of_pipeline(object));
            self.names.see(object);
        } else if RUNNERS.contains(&kind) {
            self.runners.file(told_of_runner(object));
        }
    }

    /// What a pipeline shares with others; null of what is none.
    #[must_use]
    pub fn shared(&self, pipeline: &Value) -> Value {
        let kind = pipeline["kind"].as_str().unwrap_or_default();
        if !PIPELINES.contains(&kind) {
            return Value::Null;
        }
        let others = self.pipelines.find(keys(pipeline));
        let runners = self.runners.find(runners(pipeline));
        let shared = SharedAddresses::deserialize(shared(pipeline, &others, &runners));
        json!(SharedAddresses {
            namesakes: self.names.collisions(pipeline),
            // Where nobody runs it, it shares nothing else.
            ..shared.unwrap_or_default()
        })
    }
}

impl<T> Default for IndexedValues<T> {
    fn default() -> Self {
        Self {
            told: Vec::new(),
            places: HashMap::new(),
        }
    }
}

impl<T> IndexedValues<T> {
    fn file(&mut self, (keys, told): (Vec<String>, T)) {
        for key in keys {
            self.places.entry(key).or_default().push(self.told.len());
        }
        self.told.push(Arc::new(told));
    }

    fn find(&self, keys: impl IntoIterator<Item = String>) -> Vec<Arc<T>> {
        let places = keys.into_iter().filter_map(|key| self.places.get(&key));
        let places: BTreeSet<_> = places.flatten().collect();
        let found = places.into_iter().map(|&at| Arc::clone(&self.told[at]));
        found.collect()
    }
}

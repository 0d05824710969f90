//! Snapshot of all pipelines and workloads, for callers that have all objects at the same time.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::port_allocation::claim::PortClaims;
use crate::port_allocation::conflict::SharedAddresses;
use crate::port_allocation::name_collision::Names;
use crate::port_allocation::workload_facts::WorkloadFacts;
use crate::port_allocation::{
    PIPELINES, WORKLOADS, index_pipeline, index_workload, keys, shared, workloads,
};

/// Index of pipelines and workloads, with the facts that are needed to compare pipelines.
#[derive(Default)]
pub struct ClusterSnapshot {
    pipelines: IndexedValues<PortClaims>,
    workloads: IndexedValues<WorkloadFacts>,
    names: Names,
}

/// Index entries by index key.
struct IndexedValues<T> {
    values: Vec<Arc<T>>,
    positions: HashMap<String, Vec<usize>>,
}

impl ClusterSnapshot {
    /// Returns true if objects of this kind belong in the snapshot.
    #[must_use]
    pub fn has(kind: &str) -> bool {
        PIPELINES.contains(&kind) || WORKLOADS.contains(&kind)
    }

    /// Adds an object; objects of other kinds are ignored.
    pub fn add(&mut self, object: &Value) {
        let kind = object["kind"].as_str().unwrap_or_default();
        if PIPELINES.contains(&kind) {
            self.pipelines.insert(index_pipeline(object));
            self.names.see(object);
        } else if WORKLOADS.contains(&kind) {
            self.workloads.insert(index_workload(object));
        }
    }

    /// Returns what a pipeline shares with others, or null for an object of another kind.
    #[must_use]
    pub fn shared(&self, pipeline: &Value) -> Value {
        let kind = pipeline["kind"].as_str().unwrap_or_default();
        if !PIPELINES.contains(&kind) {
            return Value::Null;
        }
        let others = self.pipelines.find(keys(pipeline));
        let workloads = self.workloads.find(workloads(pipeline));
        let shared = SharedAddresses::deserialize(shared(pipeline, &others, &workloads));
        json!(SharedAddresses {
            namesakes: self.names.collisions(pipeline),
            // A pipeline without a workload shares nothing else.
            ..shared.unwrap_or_default()
        })
    }
}

impl<T> Default for IndexedValues<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            positions: HashMap::new(),
        }
    }
}

impl<T> IndexedValues<T> {
    fn insert(&mut self, (keys, value): (Vec<String>, T)) {
        for key in keys {
            self.positions
                .entry(key)
                .or_default()
                .push(self.values.len());
        }
        self.values.push(Arc::new(value));
    }

    fn find(&self, keys: impl IntoIterator<Item = String>) -> Vec<Arc<T>> {
        let positions = keys.into_iter().filter_map(|key| self.positions.get(&key));
        let positions: BTreeSet<_> = positions.flatten().collect();
        let found = positions
            .into_iter()
            .map(|&at| Arc::clone(&self.values[at]));
        found.collect()
    }
}

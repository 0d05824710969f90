//! What a pipeline shares a Vector with, as the watches bring it.

use std::collections::{BTreeMap, BTreeSet};

use controller::predicate::Change;
use controller::{ReconcileError, Reference, Related, Watch};
use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use serde_json::Value;
use vector_rules::sharing;

/// Kinds that hold pipelines.
const PIPELINES: &[&str] = &["VectorPipeline", "ClusterVectorPipeline"];

/// Kinds that run them.
const RUNNERS: &[&str] = &["Vector", "VectorAggregator", "ClusterVectorAggregator"];

/// The kinds whose objects a pipeline may share a Vector with, and those who run it. A kind that is not installed has
/// no objects.
pub(crate) struct Neighbours {
    pipelines: Vec<ApiResource>,
    runners: Vec<ApiResource>,
}

impl Neighbours {
    pub(crate) fn among(installed: &[ApiResource]) -> Self {
        let of = |kinds: &[&str]| {
            let of_these = |resource: &&ApiResource| kinds.contains(&resource.kind.as_str());
            installed.iter().filter(of_these).cloned().collect()
        };
        let runners: Vec<_> = of(RUNNERS);
        Self {
            // Where nobody runs pipelines, they share nothing.
            pipelines: if runners.is_empty() {
                Vec::new()
            } else {
                of(PIPELINES)
            },
            runners,
        }
    }

    /// Only who shares a port with another is asked again when that changes, and only who listens at all when those
    /// change who run it.
    pub(crate) fn watches(&self) -> Vec<Watch> {
        let pipelines = self.pipelines.iter().map(|resource| {
            Watch::dynamic(resource.clone(), |pipeline| {
                references(sharing::ports(pipeline))
            })
            .keyed(|pipeline| sharing::ports(pipeline).into_iter().collect())
            .when(|change| differs(change, sharing::seen_by_others))
        });
        let runners = self.runners.iter().map(|resource| {
            Watch::dynamic(resource.clone(), |pipeline| {
                let listens = !sharing::ports(pipeline).is_empty();
                references(sharing::together_with(pipeline).filter(|_| listens))
            })
            .keyed(|runner| vec![sharing::runs_together(runner)])
            .when(|change| differs(change, sharing::seen_by_pipelines))
        });
        pipelines.chain(runners).collect()
    }

    /// Which addresses of a pipeline others have.
    pub(crate) fn taken(
        &self,
        pipeline: &Value,
        related: Related<'_>,
    ) -> Result<Value, ReconcileError> {
        let ports = sharing::ports(pipeline);
        let Some(together) = sharing::together_with(pipeline).filter(|_| !ports.is_empty()) else {
            return Ok(Value::Null);
        };
        let find = |resources: &[ApiResource], keys: &BTreeSet<String>| {
            let mut found = BTreeMap::new();
            for resource in resources {
                for key in keys {
                    let objects = related.keyed(resource, key)?.into_iter();
                    // One that shares several ports is one.
                    found.extend(objects.map(|object| (object.uid(), as_json(&object))));
                }
            }
            Ok(found.into_values().collect::<Vec<_>>())
        };
        let runners = find(&self.runners, &BTreeSet::from([together]))?;
        if runners.is_empty() {
            return Ok(Value::Null);
        }
        let others = find(&self.pipelines, &ports)?;
        Ok(sharing::taken(pipeline, &others, &runners))
    }
}

fn references(keys: impl IntoIterator<Item = String>) -> Vec<Reference> {
    keys.into_iter().map(Reference::Keyed).collect()
}

fn differs<T: PartialEq>(change: &Change<'_, DynamicObject>, of: impl Fn(&Value) -> T) -> bool {
    change.differs(|object| of(&as_json(object)))
}

fn as_json(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

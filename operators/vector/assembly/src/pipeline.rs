//! Pipelines as the assembly reads them.

use std::collections::BTreeMap;
use std::fmt;

use lockstep_vector_api::selection::SelectablePipeline;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Namespace and name of a pipeline. Everything is put together in this order, so that the result does not depend on the
/// order in which pipelines are listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PipelineKey {
    /// Namespace; none for a cluster-scoped pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

impl From<&SelectablePipeline> for PipelineKey {
    fn from(pipeline: &SelectablePipeline) -> Self {
        Self {
            namespace: pipeline.namespace.clone(),
            name: pipeline.name.clone(),
        }
    }
}

impl fmt::Display for PipelineKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Pipeline as it is to run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunnablePipeline {
    /// Namespace; none for a cluster-scoped pipeline.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Spec: `sources`, `transforms`, `sinks`, `secret`, `skipPrefix`.
    pub spec: Value,
    /// Port on which the pipeline receives Kubernetes Events already, from its part that runs now. It keeps this port, so
    /// that other pipelines that come and go do not change it.
    pub event_port: Option<u16>,
}

impl From<&SelectablePipeline> for RunnablePipeline {
    fn from(pipeline: &SelectablePipeline) -> Self {
        Self {
            namespace: pipeline.namespace.clone(),
            name: pipeline.name.clone(),
            uid: pipeline.uid.clone(),
            generation: pipeline.generation,
            annotations: pipeline.annotations.clone(),
            spec: pipeline.spec.clone(),
            event_port: None,
        }
    }
}

impl RunnablePipeline {
    /// Returns the namespace and the name.
    #[must_use]
    pub fn key(&self) -> PipelineKey {
        PipelineKey {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

/// Reason why a pipeline is not part of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PipelineProblem {
    /// Pipeline.
    pub pipeline: PipelineKey,
    /// Reason, for the author of the pipeline. It names no object of another tenant.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipeline_is_written_with_its_namespace_if_it_has_one() {
        let of = |namespace: Option<&str>| RunnablePipeline {
            namespace: namespace.map(str::to_owned),
            name: "p".to_owned(),
            ..RunnablePipeline::default()
        };
        assert_eq!(of(Some("a")).key().to_string(), "a/p");
        assert_eq!(of(None).key().to_string(), "p");
        assert!(of(None).key() < of(Some("a")).key());
    }
}

//! Names of the objects of a workload, and the observed state of those that a reconciliation reads.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Secret;
use lockstep_controller::{ReconcileError, SyncRequest};
use lockstep_vector_api::RunnerKind;
use lockstep_vector_assembly::Assembly;
use serde_json::{Value, json};

use crate::run::stored_parts;
use crate::run::workload::RunsPipelines;

/// Names of the objects of a workload.
pub(crate) struct Names {
    pub(crate) name: String,
    namespace: String,
    is_aggregator: bool,
}

impl Names {
    pub(crate) fn of<K: RunsPipelines>(object: &K, raw: &Value) -> Self {
        let of = |field: &str| raw["metadata"][field].as_str().unwrap_or_default();
        let namespace = object
            .resource_namespace()
            .unwrap_or_else(|| of("namespace"));
        Self {
            name: format!("{}-{}", of("name"), K::KIND_OF_RUNNER.as_str()),
            namespace: namespace.to_owned(),
            is_aggregator: K::KIND_OF_RUNNER == RunnerKind::Aggregator,
        }
    }

    fn parts_secret_name(&self) -> String {
        format!("{}-parts", self.name)
    }

    /// Returns the Secret with the parts that run from now on.
    pub(crate) fn parts_secret(&self, assembly: &Assembly) -> Value {
        let content = k8s_openapi::ByteString(stored_parts::write(&assembly.parts));
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self.parts_secret_name(), "namespace": self.namespace},
            "data": {stored_parts::KEY: content},
        })
    }

    /// Returns the values of the Secrets of pipelines that are published now.
    pub(crate) fn published_secrets<K>(
        &self,
        request: &SyncRequest<'_, K>,
    ) -> Result<BTreeMap<String, Vec<u8>>, ReconcileError> {
        let name = format!("{}-secret-assets", self.name);
        let secret: Option<Secret> = request.children().get_namespaced(&self.namespace, &name)?;
        let data = secret.and_then(|secret| secret.data).unwrap_or_default();
        Ok(data
            .into_iter()
            .map(|(file, value)| (file, value.0))
            .collect())
    }

    /// Returns the content of the Secret with the parts that run now.
    pub(crate) fn stored_parts<K>(
        &self,
        request: &SyncRequest<'_, K>,
    ) -> Result<Option<Vec<u8>>, ReconcileError> {
        let (children, name) = (request.children(), self.parts_secret_name());
        let secret: Option<Secret> = children.get_namespaced(&self.namespace, &name)?;
        let mut data = secret.and_then(|secret| secret.data).unwrap_or_default();
        Ok(data.remove(stored_parts::KEY).map(|content| content.0))
    }

    /// Returns the observed Deployment and `StatefulSet` of an aggregator, and whether the desired one is rolled out.
    pub(crate) fn observed<K>(
        &self,
        request: &SyncRequest<'_, K>,
    ) -> Result<(Option<Value>, Option<Value>, bool), ReconcileError> {
        if !self.is_aggregator {
            return Ok((None, None, false));
        }
        let children = request.children();
        let deployment: Option<Deployment> =
            children.get_namespaced(&self.namespace, &self.name)?;
        let stateful_set: Option<StatefulSet> =
            children.get_namespaced(&self.namespace, &self.name)?;
        let is_persistent =
            request.raw_parent().pointer("/spec/persistence/enabled") == Some(&Value::Bool(true));
        let kind = if is_persistent {
            "StatefulSet"
        } else {
            "Deployment"
        };
        let desired = json!({
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": self.name, "namespace": self.namespace},
        });
        let is_ready = children.pending_reason(&desired).is_none();
        Ok((
            deployment.map(|it| json!(it)),
            stateful_set.map(|it| json!(it)),
            is_ready,
        ))
    }
}

//! Names of the Secrets of a workload, and their content.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use lockstep_controller::{ReconcileError, SyncRequest};
use lockstep_vector_assembly::Assembly;
use serde_json::{Value, json};

use crate::run::check::pods::{self, Records};
use crate::run::collect::stored_parts;
use lockstep_vector_api::WorkloadKind;

/// Names of the objects of a workload.
pub(crate) struct Names {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) event_collector: String,
}

impl Names {
    pub(crate) fn new<K: WorkloadKind>(object: &K, raw: &Value) -> Self {
        let of = |field: &str| raw["metadata"][field].as_str().unwrap_or_default();
        let namespace = object.namespace_of_owned().unwrap_or_default();
        Self {
            name: format!("{}-{}", of("name"), K::ROLE.as_str()),
            namespace: namespace.to_owned(),
            event_collector: format!("{}-event-collector", of("name")),
        }
    }

    /// Returns the names that cluster-scoped objects have, unless another workload has the first of them.
    pub(crate) fn plain(&self) -> [&str; 2] {
        [&self.name, &self.event_collector]
    }

    fn parts_secret_name(&self) -> String {
        format!("{}-parts", self.name)
    }

    /// Returns the Secret with the parts that run from now on, and with the results of checks.
    pub(crate) fn parts_secret(&self, assembly: &Assembly, checks: &Records) -> Value {
        let content = k8s_openapi::ByteString(stored_parts::write(&assembly.parts));
        let checks = checks.write().map(k8s_openapi::ByteString);
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self.parts_secret_name(), "namespace": self.namespace},
            "data": {stored_parts::KEY: content, pods::KEY: checks},
        })
    }

    /// Returns the values of the Secrets of pipelines that are published now.
    pub(crate) fn published_secrets<K>(
        &self,
        request: &SyncRequest<'_, K>,
    ) -> Result<BTreeMap<String, Vec<u8>>, ReconcileError> {
        self.secret_assets(request, &self.name)
    }

    /// Returns the values of Secrets that the Pods of an object get.
    pub(crate) fn secret_assets<K>(
        &self,
        request: &SyncRequest<'_, K>,
        object: &str,
    ) -> Result<BTreeMap<String, Vec<u8>>, ReconcileError> {
        let name = format!("{object}-secret-assets");
        let secret: Option<Secret> = request.children().get_namespaced(&self.namespace, &name)?;
        let data = secret.and_then(|secret| secret.data).unwrap_or_default();
        Ok(data
            .into_iter()
            .map(|(file, value)| (file, value.0))
            .collect())
    }

    /// Returns a value of the Secret with the parts that run now.
    pub(crate) fn stored<K>(
        &self,
        request: &SyncRequest<'_, K>,
        key: &str,
    ) -> Result<Option<Vec<u8>>, ReconcileError> {
        let (children, name) = (request.children(), self.parts_secret_name());
        let secret: Option<Secret> = children.get_namespaced(&self.namespace, &name)?;
        let mut data = secret.and_then(|secret| secret.data).unwrap_or_default();
        Ok(data.remove(key).map(|content| content.0))
    }
}

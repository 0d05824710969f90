//! Namespaces in which workloads may take pipelines or data of other namespaces.

use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, ApiResource};
use lockstep_controller::{ReconcileError, Reference, RelatedObjects, Watch, path_segment};
use lockstep_vector_api::workload_namespace::{
    NAMESPACE_NOT_MARKED, WORKLOAD_NAMESPACES_ARGUMENT, is_marked, mark_command,
    namespace_of_owned_objects,
};
use serde_json::{Value, json};

/// Namespaces in which an administrator allows workloads that take pipelines or data of other namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WorkloadNamespaces {
    /// Namespaces with the annotation, which are watched.
    #[default]
    Annotated,
    /// Namespaces of the argument. No Namespace is read.
    Listed(Vec<String>),
}

impl WorkloadNamespaces {
    /// Returns the watch on Namespaces, if they are read: a workload refers to that of its owned objects.
    pub(crate) fn watch(&self) -> Option<Watch> {
        if matches!(self, Self::Listed(_)) {
            return None;
        }
        let watch = Watch::new::<Namespace>(|workload| {
            let namespace = namespace_of_owned_objects(workload);
            let key = namespace.map(|namespace| Reference::IndexKey(namespace.to_owned()));
            key.into_iter().collect()
        });
        Some(watch.metadata_only().index_by(|namespace| {
            let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
            (vec![name.to_owned()], is_marked(namespace))
        }))
    }

    /// Returns the permission to watch Namespaces, and to read one at admission.
    pub(crate) fn rbac_rule() -> Value {
        json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]})
    }

    /// Returns an error if a namespace is not marked, as cached from the watch.
    ///
    /// # Errors
    ///
    /// The namespace is not marked, or not cached yet: without its annotations, a workload could run that must not.
    pub(crate) fn require(
        &self,
        namespace: &str,
        related: RelatedObjects<'_>,
    ) -> Result<(), ReconcileError> {
        let remedy = match self {
            Self::Listed(names) if names.iter().any(|name| name == namespace) => return Ok(()),
            Self::Listed(_) => {
                format!(
                    "by adding it to the argument {WORKLOAD_NAMESPACES_ARGUMENT} of the controller"
                )
            }
            Self::Annotated => {
                let resource = ApiResource::erase::<Namespace>(&());
                let found = related.by_index::<bool>(&resource, &[namespace.to_owned()])?;
                match found.first().map(|is_marked| **is_marked) {
                    Some(true) => return Ok(()),
                    Some(false) => format!("with `{}`", mark_command(namespace)),
                    None => {
                        let message = format!(
                            "the Namespace '{namespace}' does not exist, or the watch has not delivered it yet"
                        );
                        return Err(ReconcileError::transient("NamespaceUnknown", message));
                    }
                }
            }
        };
        Err(ReconcileError::permanent(
            NAMESPACE_NOT_MARKED,
            format!(
                "the namespace '{namespace}' is not marked for workloads that collect data of other namespaces. Nothing is created or published, and what runs keeps its last configuration. An administrator can allow it {remedy}; users who may read Secrets in the namespace can then read all that is collected"
            ),
        ))
    }

    /// Returns true if a namespace is marked, as the API server knows now.
    ///
    /// # Errors
    ///
    /// The Namespace cannot be read.
    pub(crate) async fn includes(&self, client: &Client, namespace: &str) -> Result<bool, String> {
        if let Self::Listed(names) = self {
            return Ok(names.iter().any(|name| name == namespace));
        }
        // The field of a cluster-scoped workload may be missing.
        if namespace.is_empty() {
            return Ok(false);
        }
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let found = namespaces.get_metadata_opt(&path_segment(namespace)).await;
        let found = found
            .map_err(|error| format!("the Namespace '{namespace}' cannot be read: {error}"))?;
        Ok(found.is_some_and(|found| is_marked(&json!({"metadata": found.metadata}))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_namespace_needs_no_annotation_and_no_namespace_is_read() {
        let listed = WorkloadNamespaces::Listed(vec!["infra".to_owned()]);
        assert!(listed.watch().is_none());
        assert_eq!(listed.require("infra", RelatedObjects::default()), Ok(()));
        let error = listed.require("team", RelatedObjects::default());
        let error = error.expect_err("it is not listed");
        assert_eq!(error.reason(), NAMESPACE_NOT_MARKED);
        assert!(
            error.to_string().contains("--vector-workload-namespaces"),
            "{error}"
        );
        assert!(!error.passes_by_itself());
    }
}

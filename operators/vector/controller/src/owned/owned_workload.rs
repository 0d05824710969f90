//! A workload with everything that its owned objects are made of.

use std::collections::BTreeMap;

use lockstep_vector_api::{Workload, WorkloadRole};
use serde_json::{Value, json};

use crate::owned::cluster::{Cluster, ClusterScopedNames};
use crate::owned::fields::Fields;
use crate::owned::labels::{self, DATA_LAYOUT, DATA_MIGRATION, GLOBAL_OPTIONS_CHECKSUM};
use crate::owned::publication::Publication;

/// A workload with everything that its owned objects are made of.
pub(crate) struct OwnedWorkload<'a> {
    pub(crate) role: WorkloadRole,
    /// Name of the workload.
    pub(crate) name: String,
    /// Namespace of the owned objects.
    pub(crate) namespace: String,
    pub(crate) settings: &'a Workload,
    pub(crate) publication: &'a Publication,
    pub(crate) cluster: &'a Cluster,
    /// Name of the objects that check a configuration. None if the objects run Vector.
    pub(crate) check: Option<&'a str>,
}

impl OwnedWorkload<'_> {
    /// Returns the name that most owned objects have.
    pub(crate) fn object_name(&self) -> String {
        self.check.map_or_else(
            || format!("{}-{}", self.name, self.role.as_str()),
            str::to_owned,
        )
    }

    /// Returns the name of the Service that gives each Pod of a `StatefulSet` a DNS name.
    pub(crate) fn headless_service_name(&self) -> String {
        format!("{}-headless", self.object_name())
    }

    /// Returns the name of the Secret with the values of the Secrets that pipelines refer to.
    pub(crate) fn secret_assets_name(&self) -> String {
        format!("{}-secret-assets", self.object_name())
    }

    /// Returns the name of the objects of the event collector.
    pub(crate) fn event_collector_name(&self) -> String {
        format!("{}-event-collector", self.name)
    }

    /// Returns the labels that select the Pods.
    pub(crate) fn match_labels(&self) -> BTreeMap<String, String> {
        match self.check {
            Some(_) => labels::match_labels(&self.name, labels::Component::ConfigCheck),
            None => labels::of_pods(self.role, &self.name),
        }
    }

    /// Returns the labels of the Pods and of the other objects.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        labels::merge(self.match_labels(), &self.settings.labels)
    }

    /// Returns the metadata of a namespaced object.
    pub(crate) fn metadata(&self, name: &str) -> Fields {
        self.metadata_with_labels(name, &self.labels())
    }

    /// Returns the metadata of a namespaced object with these labels.
    pub(crate) fn metadata_with_labels(
        &self,
        name: &str,
        labels: &BTreeMap<String, String>,
    ) -> Fields {
        let metadata = metadata(labels, &self.settings.annotations);
        metadata
            .with("name", name)
            .with("namespace", self.namespace.as_str())
    }

    /// Returns the metadata of a cluster-scoped object with these labels.
    pub(crate) fn cluster_metadata(&self, name: &str, labels: &BTreeMap<String, String>) -> Fields {
        metadata(labels, &self.settings.annotations).with("name", self.cluster_name(name))
    }

    /// Returns the name of a cluster-scoped object.
    pub(crate) fn cluster_name(&self, name: &str) -> String {
        match self.cluster.cluster_scoped_names {
            ClusterScopedNames::Plain => name.to_owned(),
            ClusterScopedNames::WithNamespace => format!("{}-{name}", self.namespace),
        }
    }

    /// Returns true if Vector serves its API.
    pub(crate) fn has_api(&self) -> bool {
        let api = self.settings.api.as_ref();
        api.and_then(|api| api.enabled).unwrap_or_default()
    }

    /// Returns true if the configuration is stored compressed.
    pub(crate) fn is_compressed(&self) -> bool {
        self.settings.compress_config_file.unwrap_or_default()
    }

    /// Returns true if a pipeline refers to a Secret.
    pub(crate) fn uses_secrets(&self) -> bool {
        !self.publication.secrets.is_empty()
    }

    /// Returns true if Vector has a token for the Kubernetes API and the permissions to read from it.
    pub(crate) fn reads_kubernetes_api(&self) -> bool {
        // An agent reads the metadata of the Pods on its node. Its token does not depend on its pipelines: otherwise a
        // pipeline could restart the agents of all nodes.
        self.role == WorkloadRole::Agent || self.publication.reads_kubernetes_api
    }

    /// Returns true if the Pods ask for the token that their service account does not give them. That of the agents
    /// does: their Pod template is the one of the operator of kaasops, whose Pods need no restart then.
    pub(crate) fn asks_for_token(&self) -> bool {
        self.role == WorkloadRole::Aggregator && self.publication.reads_kubernetes_api
    }

    /// Returns the metadata of the object that runs Vector.
    pub(crate) fn workload_metadata(&self) -> Fields {
        let mut annotations = self.settings.annotations.clone();
        if let Some(hash) = &self.publication.adopted_hash {
            annotations.insert(GLOBAL_OPTIONS_CHECKSUM.to_owned(), hash.clone());
        }
        if let Some(layout) = &self.publication.data_layout {
            annotations.insert(DATA_LAYOUT.to_owned(), layout.clone());
        }
        if let Some(previous) = &self.publication.previous {
            annotations.insert(DATA_MIGRATION.to_owned(), previous.annotation.clone());
        }
        metadata(&self.labels(), &annotations)
            .with("name", self.object_name())
            .with("namespace", self.namespace.as_str())
    }
}

/// Returns metadata without a name.
pub(crate) fn metadata(
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) -> Fields {
    let annotations = (!annotations.is_empty()).then(|| json!(annotations));
    Fields::new()
        .with("labels", json!(labels))
        .with_some("annotations", annotations)
}

/// Returns an object.
pub(crate) fn object(api_version: &str, kind: &str, metadata: Fields) -> Fields {
    Fields::new()
        .with("apiVersion", api_version)
        .with("kind", kind)
        .with("metadata", Value::from(metadata))
}

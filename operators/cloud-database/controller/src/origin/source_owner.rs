//! Sources of data that do not belong to the namespace of an object: a snapshot, an instance whose earlier state is restored, that is
//! replicated, or that is adopted.
//!
//! tags of the source → no object, or one of another cluster? → has an administrator listed it for the namespace of the object?
//!                    → another namespace? → may the namespace of the object use it?
//!
//! The answer is in a Namespace, as with a ReferenceGrant of the Gateway API: who may change an object cannot let it read what
//! belongs to others. That of a source with an owner in this cluster is in the Namespace of the owner. All others have no owner in
//! this cluster who could consent, so that an administrator lists them in the Namespace of the object.

use std::fmt::{Display, Formatter};

use aws_sdk_rds::types::Tag;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::api::Api;
use lockstep_cloud_database_api::{ALLOWED_SOURCES, CloudDatabase, SHARED_WITH};
use lockstep_controller::{ReadObject, ReconcileError, path_segment};

use crate::instance::instance_reconciler::InstanceReconciler;
use crate::instance::step_error::StepError;
use crate::instance::tags::{self, OBJECT_TAG, TaggedObject};
use crate::origin::allowed_sources::AllowedSources;
use crate::origin::source_policy::UnownedSources;

/// Source of data, as RDS reports it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundSource<'a> {
    pub(crate) name: SourceName<'a>,
    /// ARN. None of a snapshot of another account, which is named by its ARN.
    pub(crate) arn: Option<&'a str>,
    pub(crate) tags: &'a [Tag],
}

/// Source of data, as the spec names it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SourceName<'a> {
    /// Identifier or resource ID.
    Instance(&'a str),
    /// Identifier or ARN.
    Snapshot(&'a str),
}

impl<'a> SourceName<'a> {
    fn as_str(self) -> &'a str {
        match self {
            Self::Instance(name) | Self::Snapshot(name) => name,
        }
    }
}

impl Display for SourceName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Instance(name) => write!(f, "the RDS instance '{name}'"),
            Self::Snapshot(name) => write!(f, "the snapshot '{name}'"),
        }
    }
}

/// Value of an annotation, and the Namespace that was asked for it.
struct ReadAnnotation {
    value: Result<Option<String>, ReconcileError>,
    read: ReadObject,
}

impl InstanceReconciler {
    /// Returns an error if an object may not use a source of data.
    pub(crate) async fn require_allowed(
        &self,
        object: &CloudDatabase,
        found: FoundSource<'_>,
    ) -> Result<(), StepError> {
        let policy = &self.shared.source_policy;
        let source = found.name;
        let Some(owner) = tags::owner_of(found.tags) else {
            if policy.unowned == UnownedSources::Allow {
                return Ok(());
            }
            let why = format!("{source} has no tags of an object");
            return self.require_listed(object, found, &why).await;
        };
        let ours = self.rds.cluster_name();
        if let Some(cluster) = owner.other_cluster(ours) {
            let why = match ours {
                Some(ours) => format!(
                    "{source} belongs to the cluster '{cluster}' ({owner}), and this one is '{ours}'"
                ),
                None => format!(
                    "{source} belongs to the cluster '{cluster}' ({owner}), and the controller runs without --cluster-name"
                ),
            };
            return self.require_listed(object, found, &why).await;
        }
        // Objects of a cluster that was restored from a backup of etcd have the UIDs of those of the other cluster.
        if owner.is(object) {
            return Ok(());
        }
        self.require_shared(object, source, owner).await
    }

    /// Returns an error if no administrator has listed a source for the namespace of an object. `why` says why that is necessary.
    async fn require_listed(
        &self,
        object: &CloudDatabase,
        found: FoundSource<'_>,
        why: &str,
    ) -> Result<(), StepError> {
        let policy = &self.shared.source_policy;
        let namespace = object.namespace().unwrap_or_default();
        let name = found.name.as_str();
        if !policy.reads_namespaces {
            let listed = policy.allowed.of_namespace(&namespace);
            if listed.contains(name, found.arn) {
                return Ok(());
            }
            let allowed = format!("--allowed-sources={namespace}={name}");
            let how = match AllowedSources::default().text_with(name) {
                Some(_) => format!("run the controller with {allowed}"),
                None => "run the controller with --allowed-sources".to_owned(),
            };
            return Err(self.not_allowed(&format!(
                "{why}. An administrator can allow its use in the namespace '{namespace}': {how}"
            )));
        }
        let ReadAnnotation { value, read } = self.annotation(&namespace, ALLOWED_SOURCES).await;
        let value = value.map_err(|error| StepError::from(error).with_reads(vec![read.clone()]))?;
        let listed = AllowedSources::parse(value.as_deref().unwrap_or_default());
        if listed.contains(name, found.arn) {
            return Ok(());
        }
        let how = match listed.text_with(name) {
            Some(list) => format!(
                "kubectl annotate namespace {namespace} --overwrite '{ALLOWED_SOURCES}={list}'"
            ),
            None => format!("add it to the annotation {ALLOWED_SOURCES} of the Namespace"),
        };
        let error = self.not_allowed(&format!(
            "{why}. An administrator can allow its use in the namespace '{namespace}': {how}"
        ));
        Err(error.with_reads(vec![read]))
    }

    /// Returns an error if a source belongs to another namespace of the cluster, which does not allow that of an object to use it.
    async fn require_shared(
        &self,
        object: &CloudDatabase,
        source: SourceName<'_>,
        owner: TaggedObject<'_>,
    ) -> Result<(), StepError> {
        let own = object.namespace().unwrap_or_default();
        let Some(namespace) = owner.namespace() else {
            return Err(self.not_allowed(&format!(
                "{source} belongs to another object ({owner}), whose namespace is not known. An administrator can name it: add the tag {OBJECT_TAG} with the value NAMESPACE/NAME, and if the instance is deleted, add the tag to its automated backups"
            )));
        };
        if namespace == own {
            return Ok(());
        }
        let belongs = format!("{source} belongs to the namespace '{namespace}' ({owner})");
        if !self.shared.source_policy.reads_namespaces {
            return Err(self.not_allowed(&format!(
                "{belongs}, and a controller that is limited to some namespaces does not read what that namespace allows"
            )));
        }
        let ReadAnnotation { value, read } = self.annotation(namespace, SHARED_WITH).await;
        let value = value.map_err(|error| StepError::from(error).with_reads(vec![read.clone()]))?;
        let names = value.unwrap_or_default();
        if names_namespace(&names, &own) {
            return Ok(());
        }
        let others = names.split(',').map(str::trim);
        let others = others.filter(|name| !name.is_empty());
        let names: Vec<_> = others.chain([own.as_str()]).collect();
        let error = self.not_allowed(&format!(
            "{belongs}. An administrator can allow its use: kubectl annotate namespace {namespace} --overwrite '{SHARED_WITH}={}'",
            names.join(",")
        ));
        Err(error.with_reads(vec![read]))
    }

    /// Reads an annotation of a Namespace from the API server. A Namespace that does not exist has none.
    async fn annotation(&self, namespace: &str, annotation: &str) -> ReadAnnotation {
        let namespaces: Api<Namespace> = Api::all(self.shared.client.clone());
        let found = namespaces.get_metadata_opt(&path_segment(namespace)).await;
        let present = found.as_ref().ok().and_then(Option::as_ref);
        let read = ReadObject::of_cluster::<Namespace>(
            namespace,
            present.and_then(|namespace| namespace.metadata.resource_version.clone()),
        );
        let value = match &found {
            Ok(found) => {
                let annotations = found.as_ref().map(ResourceExt::annotations);
                Ok(annotations.and_then(|all| all.get(annotation)).cloned())
            }
            Err(error) => Err(ReconcileError::Transient {
                reason: "NamespaceUnreadable",
                message: format!("cannot read the Namespace '{namespace}': {error}"),
            }),
        };
        ReadAnnotation { value, read }
    }

    fn not_allowed(&self, why: &str) -> StepError {
        self.stalled("SourceNotAllowed", format!("{why}; no data is read"))
    }
}

/// Returns true if the value of the annotation names a namespace.
fn names_namespace(names: &str, namespace: &str) -> bool {
    let mut names = names.split(',').map(str::trim);
    names.any(|name| name == namespace || name == "*")
}

impl TaggedObject<'_> {
    fn is(&self, object: &CloudDatabase) -> bool {
        self.uid.is_some() && self.uid == object.metadata.uid.as_deref()
    }

    fn namespace(&self) -> Option<&str> {
        let (namespace, _) = self.name?.split_once('/')?;
        Some(namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_names_others_one_by_one_or_all() {
        for (names, expected) in [
            ("shop", true),
            ("billing, shop", true),
            ("*", true),
            ("shop-2,sho", false),
            ("", false),
        ] {
            assert_eq!(names_namespace(names, "shop"), expected, "{names}");
        }
    }
}

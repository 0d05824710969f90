//! Sources of data that belong to objects of other namespaces: a snapshot, an instance whose earlier state is restored, that is
//! replicated, or that is adopted.
//!
//! tags of the source → same namespace? → may the namespace of the object use it?
//!
//! The answer is in the Namespace of the source, as with a ReferenceGrant of the Gateway API: who may change an object cannot
//! let it read what belongs to others.

use aws_sdk_rds::types::Tag;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::api::Api;
use lockstep_cloud_database_api::{CloudDatabase, SHARED_WITH};
use lockstep_controller::{ReadObject, ReconcileError};

use crate::instance_reconciler::InstanceReconciler;
use crate::source_policy::UnownedSources;
use crate::step_error::StepError;
use crate::tags::{self, OBJECT_TAG, TaggedObject};

impl InstanceReconciler {
    /// Returns an error if an object may not use a source of data with these tags. `source` describes it.
    pub(crate) async fn require_allowed(
        &self,
        object: &CloudDatabase,
        source: &str,
        tags: &[Tag],
    ) -> Result<(), StepError> {
        let own = object.namespace().unwrap_or_default();
        let Some(owner) = tags::owner_of(tags, self.rds.cluster_name()) else {
            return match self.shared.source_policy.unowned {
                UnownedSources::Allow => Ok(()),
                UnownedSources::Deny => Err(self.not_allowed(&format!(
                    "{source} has no tags of an object of this cluster, and the controller runs with --unowned-sources=deny"
                ))),
            };
        };
        if owner.is(object) || owner.namespace() == Some(&own) {
            return Ok(());
        }
        let Some(namespace) = owner.namespace() else {
            return Err(self.not_allowed(&format!(
                "{source} belongs to another object ({owner}), whose namespace is not known. An administrator can name it: add the tag {OBJECT_TAG} with the value NAMESPACE/NAME, and if the instance is deleted, add the tag to its automated backups"
            )));
        };
        let belongs = format!("{source} belongs to the namespace '{namespace}' ({owner})");
        if !self.shared.source_policy.reads_namespaces {
            return Err(self.not_allowed(&format!(
                "{belongs}, and a controller that is limited to some namespaces does not read what that namespace allows"
            )));
        }
        let (is_shared, read) = self.is_shared(namespace, &own).await;
        match is_shared {
            Ok(true) => Ok(()),
            Ok(false) => {
                let error = self.not_allowed(&format!(
                    "{belongs}. An administrator can allow its use: kubectl annotate namespace {namespace} {SHARED_WITH}={own}"
                ));
                Err(error.with_reads(vec![read]))
            }
            Err(error) => Err(StepError::from(error).with_reads(vec![read])),
        }
    }

    /// Returns true if a Namespace lets another one use the sources of its objects. A Namespace that does not exist does not.
    async fn is_shared(
        &self,
        namespace: &str,
        with: &str,
    ) -> (Result<bool, ReconcileError>, ReadObject) {
        let namespaces: Api<Namespace> = Api::all(self.shared.client.clone());
        let found = namespaces.get_metadata_opt(namespace).await;
        let present = found.as_ref().ok().and_then(Option::as_ref);
        let read = ReadObject::of_cluster::<Namespace>(
            namespace,
            present.and_then(|it| it.metadata.resource_version.clone()),
        );
        let is_shared = match &found {
            Ok(found) => Ok(found.as_ref().is_some_and(|it| {
                let names = it.annotations().get(SHARED_WITH);
                names.is_some_and(|names| names_namespace(names, with))
            })),
            Err(error) => Err(ReconcileError::Transient {
                reason: "NamespaceUnreadable",
                message: format!("cannot read the Namespace '{namespace}': {error}"),
            }),
        };
        (is_shared, read)
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

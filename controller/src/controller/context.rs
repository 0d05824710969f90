//! Context of the reconciliations of one controller.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, ApiResource, DynamicObject};
use kube::{Client, ResourceExt};
use lockstep_shared_validation::{PolicyHandle, Validator};

use crate::api::reconciler::Reconciler;
use crate::cache::write_through::WriteThrough;
use crate::children::{AppliedChanges, ChildWriter, OwnedType, Owner};
use crate::controller::deletion_timeouts::DeletionTimeouts;
use crate::custom_object::CustomObject;
use crate::dynamic_object;
use crate::events::recorder::EventRecorder;
use crate::field_manager::FieldManager;
use crate::metrics::Metrics;
use crate::queue::backoff::Backoffs;
use crate::sharding::scope::ShardScope;
use crate::status::reconcile_request::ReconcileRequests;
use crate::status::unconfirmed::UnconfirmedStatuses;
use crate::watch::dependency::Watch;
use crate::watch::namespace_watches::NamespaceWatches;
use crate::watch::read_objects::ReadObjects;

/// Context of the reconciliations of one controller.
pub(crate) struct Context<R> {
    pub(crate) client: Client,
    pub(crate) manager: FieldManager,
    pub(crate) resource: ApiResource,
    /// Name of the controller.
    pub(crate) controller: String,
    /// Name of the controller in metrics: the same, followed by its namespace if it is restricted to one.
    pub(crate) name: String,
    /// Namespace that the controller is restricted to, if any.
    pub(crate) namespace: Option<String>,
    pub(crate) validator: Arc<dyn Validator>,
    pub(crate) reconciler: R,
    pub(crate) owned_types: Vec<OwnedType>,
    /// State of the watches on the types of children that are watched by namespace.
    pub(crate) namespace_watches: NamespaceWatches,
    pub(crate) watches: Vec<Watch>,
    /// Objects that reconciliations have read by their names.
    pub(crate) read_objects: ReadObjects,
    /// Shards whose objects are reconciled; all objects, if there are none.
    pub(crate) shards: Option<ShardScope>,
    /// If true, the kind is namespaced.
    pub(crate) is_namespaced: bool,
    /// If true, the kind has the status subresource.
    pub(crate) has_status: bool,
    /// Finalizer that keeps an object until its cleanup is done, if one is needed.
    pub(crate) finalizer: Option<String>,
    pub(crate) deletion_timeouts: DeletionTimeouts,
    /// Objects that reconciliations have just written.
    pub(crate) written: WriteThrough,
    pub(crate) recorder: EventRecorder,
    pub(crate) backoffs: Backoffs,
    /// Reconciliations that users have requested.
    pub(crate) reconcile_requests: ReconcileRequests,
    /// Objects whose last status write had no answer.
    pub(crate) unconfirmed_statuses: UnconfirmedStatuses,
    pub(crate) metrics: Metrics,
    pub(crate) policy: PolicyHandle,
}

impl<R> Context<R> {
    pub(crate) fn api(&self, namespace: Option<&str>) -> Api<CustomObject> {
        dynamic_object::api(&self.client, &self.resource, namespace)
    }

    /// Returns one of the objects as the owner of children.
    pub(crate) fn owner<'a>(
        &'a self,
        namespace: Option<&'a str>,
        name: &'a str,
        uid: &'a str,
    ) -> Owner<'a> {
        Owner {
            resource: &self.resource,
            controller: &self.controller,
            finalizer: self.finalizer.as_deref(),
            namespace,
            name,
            uid,
        }
    }

    /// Returns a writer for the children of an owner.
    pub(crate) fn writer<'a>(&'a self, owner: Owner<'a>) -> ChildWriter<'a> {
        ChildWriter {
            client: &self.client,
            owner,
            manager: &self.manager,
            types: &self.owned_types,
            cache: &self.written.children,
            changes: AppliedChanges::default(),
            writes: &self.metrics.child_writes,
        }
    }

    /// Returns true if the API server still has an object. A 404 may concern something else, such as a subresource
    /// that its CRD does not have yet.
    pub(crate) async fn exists(&self, object: &DynamicObject) -> bool {
        let namespace = object.namespace();
        let (namespace, name) = (namespace.as_deref(), object.name_any());
        match dynamic_object::metadata(&self.client, &self.resource, namespace, &name).await {
            Ok(Some(found)) => found.metadata.uid == object.metadata.uid,
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Returns the delay before a failed reconciliation is retried.
    pub(crate) fn record_failure(&self, object: &DynamicObject) -> Duration {
        let deleting = object.metadata.deletion_timestamp.is_some();
        let generation = object.metadata.generation.unwrap_or_default();
        let uid = object.uid().unwrap_or_default();
        self.backoffs.record_failure(&uid, generation, deleting)
    }

    /// Does work for an object. Returns none if another replica holds the shard of its UID, or if the work was stopped because
    /// this replica loses the shard.
    pub(crate) async fn within_shard<F: Future>(&self, uid: &str, work: F) -> Option<F::Output> {
        let Some(shards) = &self.shards else {
            return Some(work.await);
        };
        let permit = shards.permit(uid)?;
        let done = permit.run(work).await;
        if done.is_none() {
            tracing::warn!(
                controller = self.name,
                uid,
                "work on an object was stopped: the lease of its shard expires"
            );
        }
        done
    }
}

impl<R: Reconciler> Context<R> {
    /// Removes all state of an object that no longer exists, or that another replica reconciles.
    pub(crate) fn forget(&self, uid: &str) {
        self.backoffs.reset(uid);
        self.reconcile_requests.forget(uid);
        self.unconfirmed_statuses.forget(uid);
        self.written.objects.forget(uid);
        self.recorder.forget(uid);
        self.metrics.violating_objects.forget(uid);
        self.metrics.terminating.forget(uid);
        self.metrics.failing.forget(uid);
        self.metrics.stalled.forget(uid);
        self.reconciler.forget(uid);
    }
}

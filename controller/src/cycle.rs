//! The one way through the loop, the same for every kind.
//!
//! fetch → being deleted? finalize → default → check → initialize → reconcile → children → status → requeue

use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, ApiResource, DynamicObject};
use kube::{Client, ResourceExt};
use shared_validation::{CurrentPolicy, Judge};

use crate::announce::Announcer;
use crate::backoff::Backoffs;
use crate::children::{ChildType, ChildWriter, Journal, Observed, Owner};
use crate::metrics::Metrics;
use crate::objects;
use crate::pause;
use crate::reconcile::Reconcile;
use crate::related::Watched;
use crate::round::Round;
use crate::stalls::Stalls;
use crate::watch::Watch;
use crate::written::Written;

/// When an object is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Not before it changes.
    OnChange,
    /// After this time, if it does not change before.
    After(Duration),
    /// The same, because something has gone wrong.
    Failed(Duration),
}

/// Everything that a round needs.
pub(crate) struct Cycle<R> {
    pub(crate) client: Client,
    pub(crate) resource: ApiResource,
    /// What the loop of this kind is called.
    pub(crate) controller: String,
    /// What metrics call the loop: the same, with the namespace that it keeps to.
    pub(crate) name: String,
    /// The namespace that it keeps to, if it does.
    pub(crate) within: Option<String>,
    pub(crate) ruleset: Arc<dyn Judge>,
    pub(crate) reconciler: R,
    pub(crate) child_types: Vec<ChildType>,
    pub(crate) watches: Vec<Watch>,
    pub(crate) children: Observed,
    /// Whether its objects are in namespaces.
    pub(crate) is_namespaced: bool,
    /// Whether the kind has a status of its own to write.
    pub(crate) has_status: bool,
    /// What keeps an object until what it stands for is gone, if anything has to.
    pub(crate) finalizer: Option<String>,
    pub(crate) stalls: Stalls,
    /// What the rounds have written to the objects themselves.
    pub(crate) written: Written,
    pub(crate) announcer: Announcer,
    pub(crate) backoffs: Backoffs,
    pub(crate) metrics: Metrics,
    pub(crate) policy: CurrentPolicy,
}

impl<R> Cycle<R> {
    pub(crate) fn api(&self, namespace: Option<&str>) -> Api<DynamicObject> {
        objects::api(&self.client, &self.resource, namespace)
    }

    /// One of its objects, as the owner of children.
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

    pub(crate) fn writer<'a>(&'a self, owner: Owner<'a>, journal: &'a Journal) -> ChildWriter<'a> {
        ChildWriter {
            client: &self.client,
            owner,
            types: &self.child_types,
            observed: &self.children,
            journal,
            writes: &self.metrics.child_writes,
        }
    }

    /// Whether the API server still has an object. What it says it does not find may be something else, such as
    /// a subresource that its CRD does not have yet.
    pub(crate) async fn stands(&self, object: &DynamicObject) -> bool {
        let namespace = object.namespace();
        let api = self.api(namespace.as_deref());
        match api.get_metadata_opt(&object.name_any()).await {
            Ok(Some(found)) => found.metadata.uid == object.metadata.uid,
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// The delay before a round is repeated that did not come to its end.
    pub(crate) fn after_failure(&self, object: &DynamicObject) -> Duration {
        let deleting = object.metadata.deletion_timestamp.is_some();
        let generation = object.metadata.generation.unwrap_or_default();
        let uid = object.uid().unwrap_or_default();
        self.backoffs.after_failure(&uid, generation, deleting)
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.backoffs.reset(uid);
        self.written.forget(uid);
        self.announcer.forget(uid);
        self.metrics.standing.forget(uid);
        self.metrics.terminating.forget(uid);
        self.metrics.failing.forget(uid);
    }
}

impl<R: Reconcile> Cycle<R> {
    /// Runs one round for an object. An error is the API server's; everything else ends in the status.
    pub(crate) async fn run(
        &self,
        stored: &DynamicObject,
        related: &[Watched],
    ) -> Result<Next, kube::Error> {
        let round = Round::new(self, stored, related)?;
        let next = if pause::is_paused(stored) {
            round.pause().await?
        } else if stored.metadata.deletion_timestamp.is_some() {
            round.end().await?
        } else {
            round.keep().await?
        };
        Ok(match next {
            Next::After(_) if round.is_outdated() => Next::After(Duration::ZERO),
            next => next,
        })
    }
}

//! The steps of a reconciliation, the same for every kind.
//!
//! fetch → being deleted? finalize → default → validate → initialize → reconcile → children → status → requeue

pub(crate) mod action;
mod conclusion;
mod finalize;
pub(crate) mod finalizer;
mod report;
mod update;
mod validate;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use json_patch::PatchOperation;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use lockstep_shared_validation::{LastValidated, ValidationResult};
use serde_json::Value;

use crate::api::reconciler::{Readiness, Reconciler};
use crate::api::request::Children;
use crate::cache::related::{RelatedCache, RelatedObjects};
use crate::cache::store::CompressedObject;
use crate::children::{AppliedChanges, ChildMap, ChildWriter, Owner};
use crate::controller::context::Context;
use crate::custom_object::CustomObject;
use crate::dynamic_object::to_value;
use crate::reconcile::action::Action;
use crate::reconcile::conclusion::{Conclusion, Stop};
use crate::reconcile::validate::Stored;
use crate::status::patch::Status;
use crate::status::paused;
use crate::status::reconcile_request::{HANDLED, ReconcileRequest};

const VALID: &str = "Valid";
const PAUSED: &str = "Paused";

/// Phase of an object, which decides the steps of its reconciliation.
enum Phase {
    /// A user has paused the object.
    Paused,
    /// The object is being deleted.
    Deleting,
    Active,
}

impl Phase {
    fn of(object: &DynamicObject) -> Self {
        if paused::is_paused(object) {
            Self::Paused
        } else if object.metadata.deletion_timestamp.is_some() {
            Self::Deleting
        } else {
            Self::Active
        }
    }
}

/// Reconciles an object once. Returns only errors of the API server; all other errors are reported in the status.
///
/// `cached` is the object in the cache, if it comes from there.
pub(crate) async fn reconcile<R: Reconciler>(
    context: &Context<R>,
    stored: &DynamicObject,
    related: &[RelatedCache],
    cached: Option<Arc<CompressedObject>>,
) -> Result<Action, kube::Error> {
    let reconciliation = Reconciliation::new(context, stored, related, cached)?;
    reconciliation.begin_request();
    let concluded = match Phase::of(stored) {
        Phase::Paused => Ok(reconciliation.pause()),
        // The futures of an operator are large: on the heap, they cannot exhaust the stack of a worker thread.
        Phase::Deleting => Box::pin(reconciliation.finalize()).await,
        Phase::Active => Box::pin(reconciliation.update()).await,
    };
    let conclusion = match concluded {
        Ok(conclusion) => conclusion,
        Err(Stop::Concluded(conclusion)) => *conclusion,
        Err(Stop::Api(error)) => return Err(error),
    };
    reconciliation.report(conclusion).await
}

/// One reconciliation of one object.
pub(crate) struct Reconciliation<'a, R> {
    context: &'a Context<R>,
    related: &'a [RelatedCache],
    api: Api<CustomObject>,
    name: String,
    reference: ObjectReference,
    uid: String,
    deleting_since: Option<Timestamp>,
    /// None if the kind is cluster-scoped.
    namespace: Option<String>,
    finalizers: Vec<String>,
    /// Request of a user for this reconciliation.
    request: Option<ReconcileRequest>,
    stored: Arc<Stored>,
    /// Children of the object when the reconciliation began.
    children: ChildMap,
}

impl<'a, R: Reconciler> Reconciliation<'a, R> {
    pub(crate) fn new(
        context: &'a Context<R>,
        stored: &DynamicObject,
        related: &'a [RelatedCache],
        cached: Option<Arc<CompressedObject>>,
    ) -> Result<Self, kube::Error> {
        let object = to_value(stored).map_err(kube::Error::SerdeError)?;
        let namespace = stored.namespace();
        let uid = stored.uid().unwrap_or_default();
        let mut children = context.written.children.children_of(&uid);
        let deletion = stored.metadata.deletion_timestamp.as_ref();
        let handled = object["status"][HANDLED].as_str();
        // A paused object is reconciled, and its request handled, when it is resumed.
        let request = (!paused::is_paused(stored))
            .then(|| context.reconcile_requests.open(&uid, stored, handled))
            .flatten();
        let mut reconciliation = Self {
            request,
            context,
            related,
            api: context.api(namespace.as_deref()),
            deleting_since: deletion.map(|time| time.0),
            namespace,
            finalizers: stored.finalizers().to_vec(),
            children: ChildMap::new(),
            name: stored.name_any(),
            reference: stored.object_ref(&context.resource),
            uid,
            stored: Arc::new(Stored {
                generation: stored.metadata.generation.unwrap_or_default(),
                last_validated: LastValidated::from_status_of(&object),
                policy: context.policy.get(),
                cached,
                object,
            }),
        };
        // Labels can be copied, so ownership is checked.
        let owner = reconciliation.owner();
        children.retain(|key, child| owner.owns(&context.owned_types[key.type_index], child));
        reconciliation.children = children;
        Ok(reconciliation)
    }
}

impl<R: Reconciler> Reconciliation<'_, R> {
    /// Changes nothing but the condition `Paused`.
    fn pause(&self) -> Conclusion {
        // An existing condition `Paused` stays, since it has its own `lastTransitionTime`.
        let mut status = Status::from_object(&self.stored.object, self.context.has_status);
        let message = format!(
            "Reconciliation is paused: nothing is changed or deleted while the annotation `{}` is \"true\"",
            paused::ANNOTATION
        );
        status.set_condition(PAUSED, true, "Annotated", &message);
        // A spec change made while the object is paused has not been observed.
        status.keep_observed_generation();
        Conclusion::Status(status, Action::AwaitChange)
    }

    /// Returns the status of an object that is not paused.
    fn status(&self) -> Status {
        let mut status = Status::from_object(&self.stored.object, self.context.has_status);
        status.remove_condition(PAUSED);
        status
    }

    fn observed_children(&self) -> Children<'_> {
        Children {
            children: &self.children,
        }
    }

    fn owner(&self) -> Owner<'_> {
        let namespace = self.namespace.as_deref();
        self.context.owner(namespace, &self.name, &self.uid)
    }

    fn writer(&self) -> ChildWriter<'_> {
        self.context.writer(self.owner())
    }

    /// Ends the back-off of an object for a new request. Attempts that fail then have a back-off again.
    fn begin_request(&self) {
        if self.request.as_ref().is_some_and(|request| request.is_new) {
            self.context.backoffs.reset(&self.uid);
        }
    }

    async fn patch(&self, operations: Vec<PatchOperation>) -> Result<DynamicObject, kube::Error> {
        let patch = Patch::<()>::Json(json_patch::Patch(operations));
        let params = PatchParams::default();
        let patched = self.api.patch(&self.name, &params, &patch).await?;
        let patched = patched.into_inner();
        self.context.written.objects.record(patched.clone());
        Ok(patched)
    }

    /// Patches the status if it differs. Returns true if it was written.
    async fn write_status(&self, status: &mut Status) -> Result<bool, kube::Error> {
        let unconfirmed = &self.context.unconfirmed_statuses;
        let must_confirm = unconfirmed.contains(&self.uid);
        let written = status.write(&self.api, &self.name, must_confirm).await;
        match &written {
            Ok(_) => unconfirmed.forget(&self.uid),
            Err(_) => unconfirmed.add(&self.uid),
        }
        let written = written?;
        let stalled = &self.context.metrics.stalled;
        stalled.set(&self.context.name, &self.uid, status.stalled_reason());
        let is_written = written.is_some();
        if let Some(object) = written {
            self.context.written.objects.record(object);
        }
        Ok(is_written)
    }

    fn related(&self) -> RelatedObjects<'_> {
        RelatedObjects {
            watches: &self.context.watches,
            watched: self.related,
            namespace: self.namespace.as_deref().unwrap_or_default(),
        }
    }

    async fn validate(&self, others: &Arc<Value>) -> ValidationResult {
        self.stored.validate(&self.context.validator, others).await
    }

    /// Returns the readiness of an object whose operator does not set it: it is ready once all children, in their
    /// current state, are up to date.
    fn readiness(&self, desired: &[Value], changes: &AppliedChanges) -> Readiness {
        let children = changes.children_after(&self.children);
        let observation = Children {
            children: &children,
        };
        let mut desired = desired.iter().filter(|child| self.is_awaited(child));
        let waits_for = desired.find_map(|child| observation.pending_reason(child));
        if self.deleting_since.is_some() {
            let message =
                waits_for.unwrap_or("the external resources are being removed".to_owned());
            return Readiness {
                ready: false,
                reason: "Terminating",
                message,
            };
        }
        match waits_for {
            Some(message) => Readiness {
                ready: false,
                reason: "ChildrenInProgress",
                message,
            },
            None => Readiness {
                ready: true,
                reason: "Available",
                message: "All owned resources are up to date".to_owned(),
            },
        }
    }

    /// Returns true if the readiness of the object depends on this child.
    fn is_awaited(&self, child: &Value) -> bool {
        let text = |field: &str| child[field].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let mut types = self.context.owned_types.iter();
        types.all(|type_| !type_.is(api_version, kind) || type_.is_awaited(child))
    }

    fn backoff(&self) -> Action {
        Action::Backoff(self.retry_delay())
    }

    /// Returns the delay before the next attempt, which grows with each one.
    fn retry_delay(&self) -> Duration {
        let backoffs = &self.context.backoffs;
        let is_deleted = self.deleting_since.is_some();
        backoffs.record_failure(&self.uid, self.stored.generation, is_deleted)
    }

    fn forget(&self) {
        self.context.forget(&self.uid);
    }
}

//! The one way through the loop, the same for every kind.
//!
//! fetch → being deleted? finalize → default → check → initialize → reconcile → children → status → requeue

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::runtime::reflector::Store;
use kube::{Client, Resource, ResourceExt};
use serde_json::{Value, json};
use shared_validation::{Accepted, Candidate, CurrentPolicy, Judge, Verdict, aggregate, decode};

use crate::announce::{self, Announcer};
use crate::backoff::{Backoffs, LONGEST_WHILE_DELETING};
use crate::children::{ChildType, ChildWriter, Children, Failure, Observed, Owner};
use crate::finalizers;
use crate::metrics::{Metrics, ViolationLabels};
use crate::pause;
use crate::reconcile::{Deleted, Finalized, Progress, Readiness, Reconcile, ReconcileError};
use crate::related::Related;
use crate::request::{Observation, SyncRequest};
use crate::stalls::Stalls;
use crate::status::{READY, Standing, Status};
use crate::watch::Watch;
use crate::written::Written;

const VALID: &str = "Valid";
const PAUSED: &str = "Paused";
/// The reason of every Event that tells of a failure; which one it is, its note tells.
const PROCESSING_ERROR: &str = "ProcessingError";
const DELETION_STALLED: &str = "DeletionStalled";

/// What keeps an object, while `--cascade=orphan` deletes it, until its children have forgotten it.
const ORPHAN: &str = "orphan";

/// When an object is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
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
    pub(crate) ruleset: Arc<dyn Judge>,
    pub(crate) reconciler: R,
    pub(crate) child_types: Vec<ChildType>,
    pub(crate) watches: Vec<Watch>,
    pub(crate) children: Observed,
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
    /// What the loop of this kind is called.
    pub(crate) fn controller(&self) -> String {
        self.ruleset.kind().to_lowercase()
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.backoffs.reset(uid);
        self.written.forget(uid);
        self.announcer.forget(uid);
        self.metrics.standing.forget(uid);
        self.metrics.terminating.forget(uid);
    }
}

/// One object in one round.
struct Round<'a, R> {
    cycle: &'a Cycle<R>,
    related: &'a [Store<DynamicObject>],
    api: Api<DynamicObject>,
    name: String,
    reference: ObjectReference,
    uid: String,
    generation: i64,
    deleting_since: Option<Timestamp>,
    /// None for an object of a kind that lives in no namespace.
    namespace: Option<String>,
    finalizers: Vec<String>,
    /// The object as stored.
    object: Value,
    accepted: Option<Accepted>,
    children: Children,
    controller: String,
}

impl<R: Reconcile> Cycle<R> {
    /// Runs one round for an object. An error is the API server's; everything else ends in the status.
    pub(crate) async fn run(
        &self,
        stored: &DynamicObject,
        related: &[Store<DynamicObject>],
    ) -> Result<Next, kube::Error> {
        let object = serde_json::to_value(stored).map_err(kube::Error::SerdeError)?;
        let namespace = stored.namespace();
        let uid = stored.uid().unwrap_or_default();
        let mut children = self.children.of(&uid);
        let owner = Owner {
            resource: &self.resource,
            controller: &self.controller(),
            finalizer: None,
            namespace: namespace.as_deref(),
            name: &stored.name_any(),
            uid: &uid,
        };
        // Labels can be copied.
        children.retain(|place, child| owner.has(&self.child_types[place.0], child));
        let round = Round {
            cycle: self,
            related,
            api: self.api(namespace.as_deref()),
            controller: self.controller(),
            deleting_since: stored
                .metadata
                .deletion_timestamp
                .as_ref()
                .map(|time| time.0),
            namespace,
            finalizers: stored.finalizers().to_vec(),
            children,
            name: stored.name_any(),
            reference: stored.object_ref(&self.resource),
            uid,
            generation: stored.metadata.generation.unwrap_or_default(),
            accepted: Accepted::read(&object),
            object,
        };
        if pause::is_paused(stored) {
            round.pause().await
        } else if stored.metadata.deletion_timestamp.is_some() {
            round.delete().await
        } else {
            round.keep().await
        }
    }
}

impl<R> Cycle<R> {
    fn api(&self, namespace: Option<&str>) -> Api<DynamicObject> {
        let client = self.client.clone();
        match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &self.resource),
            None => Api::all_with(client, &self.resource),
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
}

impl<R: Reconcile> Round<'_, R> {
    /// Leaves everything as it is, and says so.
    async fn pause(&self) -> Result<Next, kube::Error> {
        // With the condition that stands: since when it does is its own to tell.
        let mut status = Status::of(&self.object, self.cycle.has_status);
        let message = format!(
            "nothing is changed, nor deleted, while the annotation `{}` is \"true\"",
            pause::ANNOTATION
        );
        status.condition(PAUSED, true, "Annotated", &message);
        // What has been asked for since has been seen by nobody.
        status.keep_observed_generation();
        self.write(&mut status).await?;
        Ok(Next::OnChange)
    }

    /// The status as it stands, of an object that is not left alone any more.
    fn status(&self) -> Status {
        let mut status = Status::of(&self.object, self.cycle.has_status);
        status.no_condition(PAUSED);
        status
    }

    async fn delete(&self) -> Result<Next, kube::Error> {
        let removal = self
            .cycle
            .finalizer
            .as_deref()
            .and_then(|finalizer| finalizers::removal(&self.finalizers, finalizer));
        let Some(removal) = removal else {
            self.forget();
            return Ok(Next::OnChange);
        };
        let deleted = Deleted {
            object: &self.object,
            accepted: self.accepted.as_ref(),
            valid: self.check().is_valid(),
            children: self.observation(),
        };
        self.note_terminating();
        match self.cycle.reconciler.finalize(&deleted).await {
            Ok(Finalized::Gone) => self.release(&removal, None).await,
            Ok(Finalized::Kept(what)) => self.release(&removal, Some(&what)).await,
            Ok(Finalized::Waiting(progress)) => {
                let why = progress.readiness.as_ref().map(|it| it.message.clone());
                let why = why.unwrap_or_default();
                match self.stalled(&why).await {
                    Some(status) => self.progressed(status, progress).await,
                    None => self.let_go(&removal, &why).await,
                }
            }
            Err(error) => match self.stalled(&error.to_string()).await {
                Some(status) => self.failed(status, &error, true).await,
                None => self.let_go(&removal, &error.to_string()).await,
            },
        }
    }

    /// How long the object has been being deleted.
    fn waits(&self) -> Duration {
        let since = self.deleting_since.unwrap_or_else(Timestamp::now);
        Timestamp::now()
            .duration_since(since)
            .try_into()
            .unwrap_or_default()
    }

    fn note_terminating(&self) {
        if let Some(since) = self.deleting_since {
            let terminating = &self.cycle.metrics.terminating;
            terminating.set(&self.controller, &self.uid, since);
        }
    }

    /// The status of an object that is kept because of this, which is told if it has been so for long. None
    /// when it is kept no longer.
    async fn stalled(&self, why: &str) -> Option<Status> {
        let Stalls {
            told_after,
            let_go_after,
        } = self.cycle.stalls;
        let waits = self.waits();
        if let_go_after.is_some_and(|limit| waits >= limit) {
            return None;
        }
        let mut status = self.status();
        if waits >= told_after {
            let since = self.deleting_since.unwrap_or_default();
            let message = format!("its deletion began at {since} and has not ended: {why}");
            status.condition(DELETION_STALLED, true, "FinalizerStalled", &message);
            self.cycle
                .announcer
                .warn(&self.reference, DELETION_STALLED, &message)
                .await;
        }
        Some(status)
    }

    /// Gives up: the object goes, and what it stood for is left behind.
    async fn let_go(&self, removal: &Patch<()>, why: &str) -> Result<Next, kube::Error> {
        let own = Status::of(&self.object, self.cycle.has_status).own_fields();
        let left = Value::Object(own);
        tracing::error!(
            %left,
            why,
            "the object goes though its cleanup has not ended: what it stood for is left behind"
        );
        let note = format!("let go though its cleanup has not ended; left behind: {left}; {why}");
        self.cycle
            .announcer
            .warn(&self.reference, "Orphaned", &note)
            .await;
        if let Err(error) = self.writer().release(self.keeps_all()).await {
            tracing::error!(%error, "its children may be left behind as well");
        }
        self.remove_finalizer(removal).await
    }

    /// Whether the children are to stay, as `--cascade=orphan` asks for.
    fn keeps_all(&self) -> bool {
        self.finalizers.iter().any(|name| name == ORPHAN)
    }

    /// Lets the object go, whatever is kept of what it stood for: first its children, then the object itself.
    async fn release(&self, removal: &Patch<()>, kept: Option<&str>) -> Result<Next, kube::Error> {
        let (why, error) = match self.writer().release(self.keeps_all()).await {
            Ok(true) => {
                if let Some(what) = kept {
                    tracing::warn!(what, "the object goes and what it stood for stays");
                    let announcer = &self.cycle.announcer;
                    announcer.tell(&self.reference, "Kept", what).await;
                }
                return self.remove_finalizer(removal).await;
            }
            Ok(false) => {
                let why = "its children that are in no namespace have not yet gone";
                (why.to_owned(), None)
            }
            Err(error) => {
                let why = format!("its children cannot be let go: {error}");
                let error = ReconcileError::Transient {
                    reason: "ChildrenNotReleased",
                    message: why.clone(),
                };
                (why, Some(error))
            }
        };
        match (self.stalled(&why).await, error) {
            (None, _) => self.let_go(removal, &why).await,
            (Some(status), Some(error)) => self.failed(status, &error, true).await,
            (Some(mut status), None) => {
                status.stands(Standing::Reconciling, "ChildrenLeaving", &why);
                self.write(&mut status).await?;
                // Their watches tell when they are gone.
                Ok(Next::After(LONGEST_WHILE_DELETING))
            }
        }
    }

    async fn remove_finalizer(&self, removal: &Patch<()>) -> Result<Next, kube::Error> {
        self.api
            .patch(&self.name, &PatchParams::default(), removal)
            .await?;
        tracing::info!("the finalizer is removed");
        self.forget();
        Ok(Next::OnChange)
    }

    fn observation(&self) -> Observation<'_> {
        Observation {
            children: &self.children,
        }
    }

    fn writer(&self) -> ChildWriter<'_> {
        ChildWriter {
            client: &self.cycle.client,
            owner: Owner {
                resource: &self.cycle.resource,
                controller: &self.controller,
                finalizer: self.cycle.finalizer.as_deref(),
                namespace: self.namespace.as_deref(),
                name: &self.name,
                uid: &self.uid,
            },
            types: &self.cycle.child_types,
            observed: &self.cycle.children,
            writes: &self.cycle.metrics.child_writes,
        }
    }

    async fn patch(&self, operations: Vec<PatchOperation>) -> Result<DynamicObject, kube::Error> {
        let patch = Patch::<()>::Json(json_patch::Patch(operations));
        let params = PatchParams::default();
        let patched = self.api.patch(&self.name, &params, &patch).await?;
        self.cycle.written.note(patched.clone());
        Ok(patched)
    }

    /// Writes what differs of the status, if anything does. Says whether anything was written.
    async fn write(&self, status: &mut Status) -> Result<bool, kube::Error> {
        let written = status.write(&self.api, &self.name).await?;
        let is_written = written.is_some();
        if let Some(object) = written {
            self.cycle.written.note(object);
        }
        Ok(is_written)
    }

    async fn keep(&self) -> Result<Next, kube::Error> {
        let verdict = self.check();
        let kind = self.cycle.ruleset.kind();
        self.cycle.metrics.standing.set(kind, &self.uid, &verdict);
        let mut status = self.status();
        if !verdict.is_valid() {
            return self
                .invalid(
                    status,
                    &verdict.message(),
                    Next::After(announce::RENEW_AFTER),
                )
                .await;
        }
        let object = match decode::<R::Kind>(&verdict.object) {
            Ok(object) => object,
            Err(error) => {
                let message = format!("cannot be read: {error}");
                return self
                    .invalid(status, &message, Next::After(announce::RENEW_AFTER))
                    .await;
            }
        };
        if let Some(operations) = self.initialization(&verdict) {
            match self.patch(operations).await {
                // The watch brings the next round with the object as it then is.
                Ok(patched) if patched.metadata.resource_version != self.resource_version() => {
                    return Ok(Next::OnChange);
                }
                // The cluster's CRD, of another release, drops what was added: no event will come, and
                // the defaults hold in memory.
                Ok(_) => {}
                Err(kube::Error::Api(refusal)) if is_refusal(refusal.code) => {
                    let error = ReconcileError::Transient {
                        reason: "CannotInitialize",
                        message: format!(
                            "cannot persist defaults and finalizer: {}",
                            refusal.message
                        ),
                    };
                    return self.failed(status, &error, false).await;
                }
                Err(error) => return Err(error),
            }
        }
        status.condition(
            VALID,
            true,
            "Valid",
            "the object keeps every rule of its kind",
        );
        let accepted = Accepted::of(&verdict.object, self.cycle.ruleset.transition_fields());
        status.accept(&accepted.in_spite_of(&verdict.inherited));
        status.fields(self.cycle.reconciler.identity(&object));
        // What is about to be done outside must be known even if this process does not live to tell.
        if status.memory_differs() {
            self.write(&mut status).await?;
        }
        let request = SyncRequest {
            parent: &object,
            raw: &verdict.object,
            children: self.observation(),
            related: Related {
                watches: &self.cycle.watches,
                stores: self.related,
                namespace: self.namespace.as_deref().unwrap_or_default(),
            },
        };
        match self.cycle.reconciler.reconcile(&request).await {
            Ok(progress) => self.settle(status, progress).await,
            Err(ReconcileError::Told {
                status: fields,
                error,
            }) => {
                status.fields(fields);
                self.step_failed(status, *error).await
            }
            Err(error) => self.step_failed(status, error).await,
        }
    }

    async fn step_failed(
        &self,
        status: Status,
        error: ReconcileError,
    ) -> Result<Next, kube::Error> {
        match error {
            ReconcileError::Invalid(errors) => {
                // The object itself stands; what it names does not.
                let after = self
                    .cycle
                    .backoffs
                    .after_failure(&self.uid, self.generation, false);
                self.invalid(status, &aggregate(&errors), Next::Failed(after))
                    .await
            }
            error => self.failed(status, &error, false).await,
        }
    }

    /// Makes the children as they are to be, and reports how far all of it got.
    async fn settle(
        &self,
        mut status: Status,
        mut progress: Progress,
    ) -> Result<Next, kube::Error> {
        match self
            .writer()
            .settle(&progress.children, &self.children)
            .await
        {
            Ok(()) => {
                progress
                    .readiness
                    .get_or_insert_with(|| self.readiness(&progress.children));
                self.progressed(status, progress).await
            }
            Err(Failure::Step(error)) => {
                status.fields(progress.status);
                self.failed(status, &error, false).await
            }
            Err(Failure::Api(kube::Error::Api(answer))) => {
                status.fields(progress.status);
                let error = ReconcileError::Transient {
                    reason: "ChildNotWritten",
                    message: format!("a child cannot be written: {}", answer.message),
                };
                self.failed(status, &error, false).await
            }
            Err(Failure::Api(error)) => Err(error),
        }
    }

    /// Whether the children, as they now are, are all that they are to be.
    fn readiness(&self, desired: &[Value]) -> Readiness {
        let children = self.cycle.children.of(&self.uid);
        let observation = Observation {
            children: &children,
        };
        let mut desired = desired.iter();
        match desired.find_map(|child| observation.waits_for(child)) {
            Some(message) => Readiness {
                ready: false,
                reason: "ChildrenInProgress",
                message,
            },
            None => Readiness {
                ready: true,
                reason: "Available",
                message: "all that belongs to the object is as it should be".to_owned(),
            },
        }
    }

    fn check(&self) -> Verdict {
        let unchanged = self
            .accepted
            .as_ref()
            .is_some_and(|accepted| accepted.generation == self.generation);
        let candidate = if unchanged {
            // What has been accepted stays accepted: a stricter rule of a later release warns.
            Candidate::update(&self.object, &self.object)
        } else {
            Candidate::create(&self.object)
        };
        let policy = self.cycle.policy.get();
        let candidate = candidate.since(self.accepted.as_ref()).under(&policy);
        self.cycle.ruleset.check(&candidate)
    }

    /// One patch with the defaults to persist and our finalizer, if any of it is missing.
    fn initialization(&self, verdict: &Verdict) -> Option<Vec<PatchOperation>> {
        let mut operations = verdict.additions.0.clone();
        if let Some(finalizer) = &self.cycle.finalizer
            && !self.finalizers.contains(finalizer)
        {
            let (place, value): (&[_], _) = if self.finalizers.is_empty() {
                (&["metadata", "finalizers"], json!([finalizer]))
            } else {
                (&["metadata", "finalizers", "-"], json!(finalizer))
            };
            operations.push(add(place, value));
        }
        if operations.is_empty() {
            return None;
        }
        // With the resource version: what was decided on stale data is refused as a conflict.
        let version = json!(self.resource_version());
        operations.insert(0, add(&["metadata", "resourceVersion"], version));
        Some(operations)
    }

    fn resource_version(&self) -> Option<String> {
        let version = self.object.pointer("/metadata/resourceVersion");
        version.and_then(Value::as_str).map(String::from)
    }

    /// Frozen: nothing is changed outside until the object is.
    async fn invalid(
        &self,
        mut status: Status,
        message: &str,
        next: Next,
    ) -> Result<Next, kube::Error> {
        status.condition(VALID, false, "Invalid", message);
        status.stands(
            Standing::Stalled,
            "Invalid",
            "the object breaks rules of its kind; nothing is changed until it is corrected",
        );
        let written = self.write(&mut status).await?;
        self.cycle
            .announcer
            .warn(&self.reference, "Invalid", message)
            .await;
        if written {
            tracing::warn!(message, "the object is invalid");
            self.count_violations();
        }
        Ok(next)
    }

    async fn progressed(
        &self,
        mut status: Status,
        progress: Progress,
    ) -> Result<Next, kube::Error> {
        let Progress {
            status: fields,
            readiness,
            requeue_after,
            children: _,
        } = progress;
        let readiness = readiness.unwrap_or_else(|| self.readiness(&[]));
        // Not where it has been so from the first: then there is nothing to tell.
        let turned_ready = readiness.ready && status.stood(READY, false);
        status.fields(fields);
        let standing = if readiness.ready {
            Standing::Ready
        } else {
            Standing::Reconciling
        };
        status.stands(standing, readiness.reason, &readiness.message);
        match self.write(&mut status).await {
            Err(kube::Error::Api(answer)) if answer.is_invalid() => {
                // Without the operator's own fields.
                let error = ReconcileError::Permanent {
                    reason: "StatusRefused",
                    message: format!("the status cannot be written: {}", answer.message),
                };
                return self.failed(self.status(), &error, false).await;
            }
            written => written?,
        };
        self.cycle.backoffs.reset(&self.uid);
        if turned_ready {
            self.cycle
                .announcer
                .tell(&self.reference, readiness.reason, &readiness.message)
                .await;
        }
        Ok(Next::After(requeue_after))
    }

    async fn failed(
        &self,
        mut status: Status,
        error: &ReconcileError,
        deleting: bool,
    ) -> Result<Next, kube::Error> {
        let error = match error {
            ReconcileError::Told {
                status: fields,
                error,
            } => {
                status.fields(fields.clone());
                error
            }
            error => error,
        };
        let message = error.to_string();
        let (reason, next) = match error {
            // Looked at again all the same: the change may be made outside, where no watch sees it.
            ReconcileError::Permanent { reason, .. } if deleting => {
                (*reason, Next::Failed(LONGEST_WHILE_DELETING))
            }
            ReconcileError::Permanent { reason, .. } => {
                (*reason, Next::Failed(announce::RENEW_AFTER))
            }
            ReconcileError::Transient { reason, .. } => (*reason, self.backoff(deleting)),
            ReconcileError::Invalid(_) | ReconcileError::Told { .. } => {
                ("Invalid", self.backoff(deleting))
            }
        };
        tracing::warn!(reason, message, "the step failed");
        let standing = match error {
            ReconcileError::Permanent { .. } => Standing::Stalled,
            _ => Standing::Reconciling,
        };
        status.stands(standing, reason, &message);
        self.write(&mut status).await?;
        self.cycle
            .announcer
            .warn(
                &self.reference,
                PROCESSING_ERROR,
                &format!("{reason}: {message}"),
            )
            .await;
        Ok(next)
    }

    fn backoff(&self, deleting: bool) -> Next {
        Next::Failed(
            self.cycle
                .backoffs
                .after_failure(&self.uid, self.generation, deleting),
        )
    }

    fn forget(&self) {
        self.cycle.forget(&self.uid);
    }

    fn count_violations(&self) {
        for violation in self.check().errors {
            let kind = self.cycle.ruleset.kind().to_owned();
            let labels = ViolationLabels {
                kind,
                rule: violation.rule,
                place: "loop",
            };
            self.cycle.metrics.violations.get_or_create(&labels).inc();
        }
    }
}

/// The delay before a round is repeated that did not come to its end.
pub(crate) fn failure<R>(cycle: &Cycle<R>, object: &DynamicObject) -> Duration {
    let deleting = object.metadata.deletion_timestamp.is_some();
    let generation = object.metadata.generation.unwrap_or_default();
    cycle
        .backoffs
        .after_failure(&object.uid().unwrap_or_default(), generation, deleting)
}

/// Whether the API server will say the same again, however often it is asked.
fn is_refusal(code: u16) -> bool {
    (400..500).contains(&code) && !matches!(code, 404 | 409 | 429)
}

fn add(place: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation {
        path: pointer(place),
        value,
    })
}

fn pointer(place: &[&str]) -> PointerBuf {
    PointerBuf::from_tokens(place.iter().copied())
}

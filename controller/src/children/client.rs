//! Requests to the API server for children, and the handling of the responses.

use std::collections::BTreeMap;

use jiff::Timestamp;
use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, Time};
use kube::api::{
    Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions,
    PropagationPolicy, ValidationDirective,
};
use kube::core::{Request, Status};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::api::error::ReconcileError;
use crate::children::desired::{ChildRef, Desired};
use crate::children::key::ChildKey;
use crate::children::owner::label;
use crate::children::{
    AppliedChanges, CONTROLLER_LABEL, ChildCache, OWNER_LABEL, OwnedType, Owner,
};
use crate::custom_object::{CustomMetadata, OwnedObject};
use crate::dynamic_object;
use crate::field_manager::FieldManager;
use crate::metrics::ChildWrites;
use crate::queue::backoff::LONGEST_OF_REJECTED;
use crate::reconcile::finalizer;

/// Reason why not all children are up to date.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// To be reported to the user of the owner.
    Step(ReconcileError),
    /// An error of the API server that may be temporary.
    Api(kube::Error),
}

impl WriteError {
    /// Returns the error to report, or the original one if the API server did not respond.
    pub(crate) fn into_reconcile_error(self) -> Result<ReconcileError, kube::Error> {
        match self {
            Self::Step(error) => Ok(error),
            Self::Api(kube::Error::Api(response)) => {
                let message = format!("a child cannot be written: {}", response.message);
                let error = ReconcileError::transient("ChildNotWritten", message);
                Ok(error.requeue_after(LONGEST_OF_REJECTED))
            }
            Self::Api(error) => Err(error),
        }
    }
}

impl From<ReconcileError> for WriteError {
    fn from(error: ReconcileError) -> Self {
        Self::Step(error)
    }
}

impl From<kube::Error> for WriteError {
    fn from(error: kube::Error) -> Self {
        Self::Api(error)
    }
}

/// Writer for the children of one owner.
pub(crate) struct ChildWriter<'a> {
    pub(crate) client: &'a Client,
    pub(crate) owner: Owner<'a>,
    pub(crate) manager: &'a FieldManager,
    pub(crate) types: &'a [OwnedType],
    pub(crate) cache: &'a ChildCache,
    pub(crate) changes: AppliedChanges,
    pub(crate) writes: &'a ChildWrites,
}

impl ChildWriter<'_> {
    /// Returns true if the owner exists and is not being deleted. If its deletion orphans the children, their
    /// watch events may arrive before its own.
    pub(crate) async fn may_own(&self) -> Result<bool, kube::Error> {
        let owner = self.live_owner().await?;
        Ok(owner.is_some_and(|owner| owner.metadata.deletion_timestamp.is_none()))
    }

    /// Returns true if the owner still has our finalizer: a child that is created for an owner without it is never
    /// deleted.
    pub(crate) async fn may_clean_up(&self) -> Result<bool, kube::Error> {
        let owner = self.live_owner().await?;
        let mut finalizers = owner.iter().flat_map(ResourceExt::finalizers);
        Ok(finalizers.any(|name| Some(name.as_str()) == self.owner.finalizer))
    }

    /// Returns the owner as the API server has it.
    pub(crate) async fn live_owner(&self) -> Result<Option<CustomMetadata>, kube::Error> {
        let Owner {
            resource,
            namespace,
            name,
            ..
        } = self.owner;
        let owner = dynamic_object::metadata(self.client, resource, namespace, name).await?;
        let uid = Some(self.owner.uid);
        Ok(owner.filter(|owner| owner.metadata.uid.as_deref() == uid))
    }

    pub(crate) async fn create_object(
        &mut self,
        key: &ChildKey,
        body: &Value,
    ) -> Result<(), kube::Error> {
        let params = PostParams {
            field_manager: Some(self.manager.as_str().to_owned()),
            ..PostParams::default()
        };
        let body = serde_json::to_vec(body).map_err(kube::Error::SerdeError)?;
        let api = self.api(key);
        let making = self.cache.expect_create(self.owner.uid, key);
        let mut request = Request::new(api.resource_url())
            .create(&params, body)
            .map_err(kube::Error::BuildRequest)?;
        // By default the API server drops unknown fields.
        let uri = format!("{}&fieldValidation=Strict", request.uri());
        *request.uri_mut() = uri
            .parse()
            .map_err(|error| kube::Error::HttpError(http::Error::from(error)))?;
        let made = self.client.request::<OwnedObject>(request).await;
        let made = made.map(DynamicObject::from);
        if making.has_missed(made.as_ref().ok()) {
            self.changes.record_missed();
        }
        self.record(key, "create", made?);
        Ok(())
    }

    pub(crate) async fn apply(
        &mut self,
        key: &ChildKey,
        child: &Desired,
        live: &DynamicObject,
    ) -> Result<(), WriteError> {
        let mut entries = live.metadata.managed_fields.iter().flatten();
        if entries.any(|entry| self.manager.has_created(entry)) {
            self.claim_created_fields(key).await?;
        }
        let params = PatchParams {
            force: true,
            field_manager: Some(self.manager.as_str().to_owned()),
            field_validation: Some(ValidationDirective::Strict),
            ..PatchParams::default()
        };
        let mut body = child.body.clone();
        // The UID prevents a change of an object that has replaced this one.
        body["metadata"]["uid"] = json!(live.metadata.uid);
        let patched = self
            .api(key)
            .patch(key.name(), &params, &Patch::Apply(body))
            .await;
        let patched = patched.map_err(|error| self.rejected(key, error))?;
        self.record(key, "apply", patched.into());
        Ok(())
    }

    /// Converts our managed fields of the creation into those of an apply, so that the next apply removes fields
    /// that are no longer desired.
    async fn claim_created_fields(&mut self, key: &ChildKey) -> Result<(), kube::Error> {
        let api = self.api(key);
        for is_last in [false, false, false, true] {
            let Some(live) = api.get_opt(key.name()).await? else {
                return Ok(());
            };
            let live = DynamicObject::from(live);
            let mut entries = live.metadata.managed_fields.iter().flatten();
            let Some(at) = entries.position(|entry| self.manager.has_created(entry)) else {
                return Ok(());
            };
            let has_applied = live
                .metadata
                .managed_fields
                .iter()
                .flatten()
                .any(|entry| self.manager.has_applied(entry));
            let patch = as_applied(at, has_applied, self.manager);
            match api.patch(key.name(), &PatchParams::default(), &patch).await {
                Ok(patched) => {
                    self.record(key, "patch", patched.into());
                    return Ok(());
                }
                // Other clients write to the object, too, and the index of our entry has changed.
                Err(kube::Error::Api(status)) if status.is_invalid() && !is_last => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Adds the labels by which the watches find a child, the owner reference for the garbage collector, and the
    /// managed fields after a takeover, and changes nothing else.
    pub(crate) async fn annotate(
        &mut self,
        key: &ChildKey,
        live: &DynamicObject,
        taken_over: Option<Vec<ManagedFieldsEntry>>,
    ) -> Result<(), kube::Error> {
        let marks = [
            (CONTROLLER_LABEL, self.owner.controller),
            (OWNER_LABEL, self.owner.uid),
        ];
        let is_marked = marks
            .iter()
            .all(|(name, value)| label(live, name) == Some(*value));
        let controlled = live
            .owner_references()
            .iter()
            .any(|it| it.uid == self.owner.uid);
        let is_owned = controlled || !self.owner.can_reference(&self.types[key.type_index]);
        if is_marked && is_owned || !self.may_own().await? {
            return Ok(());
        }
        let mut metadata = json!({
            "uid": live.metadata.uid,
            "resourceVersion": live.metadata.resource_version,
            "labels": BTreeMap::from(marks),
        });
        if !is_owned {
            let mut owners = json!(live.owner_references());
            if let Some(owners) = owners.as_array_mut() {
                owners.push(self.owner.reference());
            }
            metadata["ownerReferences"] = owners;
        }
        if let Some(entries) = taken_over {
            tracing::info!(child = key.name(), "took over a child of another client");
            metadata["managedFields"] = json!(entries);
        }
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let params = PatchParams {
            field_manager: Some(self.manager.as_str().to_owned()),
            ..PatchParams::default()
        };
        let patched = self.api(key).patch(key.name(), &params, &patch).await?;
        self.record(key, "patch", patched.into());
        Ok(())
    }

    /// Deletes a child, unless it is already being deleted.
    pub(crate) async fn delete(
        &mut self,
        key: &ChildKey,
        live: &DynamicObject,
    ) -> Result<(), kube::Error> {
        self.remove_finalizer(key, live).await?;
        if live.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            preconditions: Some(Preconditions {
                uid: live.uid(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match self.api(key).delete(key.name(), &params).await {
            Ok(_) => {
                let mut deleted = live.clone();
                deleted.metadata.deletion_timestamp = Some(Time(Timestamp::now()));
                self.cache.record_delete(self.owner.uid, key, &deleted);
                self.changes.record_write(key, deleted);
                self.count(key, "delete");
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(kube::Error::Api(status)) if status.is_conflict() => {
                // Another object has replaced it, or something else rejects the deletion.
                let existing = self.api(key).get_opt(key.name()).await?;
                if existing.is_some_and(|existing| existing.uid() == live.metadata.uid) {
                    return Err(kube::Error::Api(status));
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Removes our finalizer from a child.
    pub(crate) async fn remove_finalizer(
        &mut self,
        key: &ChildKey,
        live: &DynamicObject,
    ) -> Result<(), kube::Error> {
        let removal = self
            .owner
            .finalizer
            .and_then(|finalizer| finalizer::remove_patch(live.finalizers(), finalizer));
        let Some(patch) = removal else {
            return Ok(());
        };
        let params = PatchParams::default();
        match self.api(key).patch(key.name(), &params, &patch).await {
            Ok(patched) => self.record(key, "patch", patched.into()),
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    pub(crate) fn api(&self, key: &ChildKey) -> Api<OwnedObject> {
        let type_ = &self.types[key.type_index];
        let namespace = type_.is_namespaced.then_some(key.namespace());
        dynamic_object::api(self.client, &type_.resource, namespace)
    }

    pub(crate) fn child_ref(&self, key: &ChildKey) -> ChildRef {
        let resource = &self.types[key.type_index].resource;
        ChildRef {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
            name: key.name().to_owned(),
        }
    }

    /// Converts an error of the API server to one that is reported to the user. Each of them may pass without a change of ours:
    /// admission policies and webhooks reject with any code, a permission may be granted, room may become available.
    pub(crate) fn rejected(&self, key: &ChildKey, error: kube::Error) -> WriteError {
        let kube::Error::Api(status) = &error else {
            return error.into();
        };
        let why = format!("was rejected by the API server: {}", status.message);
        match status.code {
            403 if is_namespace_terminating(status) => {
                let why =
                    "cannot be created: its namespace is being deleted and accepts no new objects";
                self.child_ref(key)
                    .transient_error("NamespaceTerminating", why)
                    .into()
            }
            400 | 422 => self
                .child_ref(key)
                .permanent_error("ChildInvalid", &why)
                .retried()
                .into(),
            403 | 404 | 413 => self
                .child_ref(key)
                .transient_error("ChildRejected", &why)
                .requeue_after(LONGEST_OF_REJECTED)
                .into(),
            _ => error.into(),
        }
    }

    /// Records a written child.
    fn record(&mut self, key: &ChildKey, verb: &'static str, mut child: DynamicObject) {
        dynamic_object::set_type_meta(
            &mut child,
            &self.types[key.type_index].resource,
            self.manager,
        );
        self.cache.record_write(self.owner.uid, key, &child);
        self.changes.record_write(key, child);
        self.count(key, verb);
    }

    fn count(&self, key: &ChildKey, verb: &'static str) {
        let kind = &self.types[key.type_index].resource.kind;
        tracing::debug!(kind, child = key.name(), verb, "wrote a child");
        self.writes.count(self.owner.controller, kind, verb);
    }
}

fn is_namespace_terminating(status: &Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    causes.any(|cause| cause.reason == "NamespaceTerminating")
}

/// Returns the patch that turns the entry of `managedFields` at this index into one of an apply, if it is still
/// the expected entry. If an entry of an apply exists already, this one is removed: its fields are about to be
/// applied.
fn as_applied(at: usize, has_applied: bool, manager: &FieldManager) -> Patch<()> {
    let at = at.to_string();
    let entry = ["metadata", "managedFields", at.as_str()];
    let place = |field| PointerBuf::from_tokens(entry.into_iter().chain([field]));
    let test = |field, value| {
        PatchOperation::Test(TestOperation {
            path: place(field),
            value: json!(value),
        })
    };
    let change = if has_applied {
        PatchOperation::Remove(RemoveOperation {
            path: PointerBuf::from_tokens(entry),
        })
    } else {
        PatchOperation::Replace(ReplaceOperation {
            path: place("operation"),
            value: json!("Apply"),
        })
    };
    let tests = [
        test("manager", manager.as_str()),
        test("operation", "Update"),
    ];
    Patch::Json(json_patch::Patch(
        tests.into_iter().chain([change]).collect(),
    ))
}

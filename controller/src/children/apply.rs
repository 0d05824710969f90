//! Apply: creates, updates and deletes children until they are as desired.

use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::Value;

use crate::cache::write_through::children::ChildMap;
use crate::children::client::{ChildWriter, WriteError};
use crate::children::desired::{Desired, desired};
use crate::children::key::ChildKey;
use crate::children::managed_fields::owns_all_fields;
use crate::children::owner::controller_of;
use crate::children::take_over::taken_over;
use crate::children::{APPLIED_ANNOTATION, AppliedChanges, OWNER_LABEL, UpdateStrategy};
use crate::custom_object::OwnedObject;
use crate::dynamic_object;
use crate::field_manager::FieldManager;

impl ChildWriter<'_> {
    /// Creates missing children, updates those that differ and deletes those that are no longer desired.
    ///
    /// # Guarantees
    ///
    /// Nothing is sent for a child that is up to date, and no object that another client has created is changed or
    /// deleted.
    pub(crate) async fn apply_all(
        mut self,
        children: &[Value],
        observed: &ChildMap,
    ) -> Result<AppliedChanges, WriteError> {
        let desired = desired(&self.owner, self.types, children)?;
        for (key, child) in &desired {
            match observed.get(key) {
                None => self.create(key, child).await?,
                Some(_) if child.is_minimal => {}
                Some(live) => self.update(key, child, live).await?,
            }
        }
        for (key, live) in observed {
            let type_ = &self.types[key.type_index];
            if !desired.contains_key(key) && self.owner.may_delete(type_, live) {
                self.delete(key, live).await?;
            }
        }
        Ok(self.changes)
    }

    /// Does the same for the children for cleanup of an owner that is being deleted; its other children are left
    /// unchanged. Returns none if the owner turns out to be gone or to have lost our finalizer.
    pub(crate) async fn clean_up(
        self,
        children: &[Value],
        observed: &ChildMap,
    ) -> Result<Option<AppliedChanges>, WriteError> {
        let desired = desired(&self.owner, self.types, children)?;
        for key in desired.keys() {
            if !self.types[key.type_index].is_cleanup_job() {
                let why = "is desired while its owner is being deleted, but its type is not declared for cleanup; declare it with `OwnedType::cleanup_job`, or leave it out";
                return Err(self
                    .child_ref(key)
                    .permanent_error("ChildOfDeleted", why)
                    .into());
            }
        }
        let is_complete = desired.keys().all(|key| observed.contains_key(key));
        if !is_complete && !self.may_clean_up().await? {
            return Ok(None);
        }
        let mut cleaning = observed.clone();
        cleaning.retain(|key, _| self.types[key.type_index].is_cleanup_job());
        self.apply_all(children, &cleaning).await.map(Some)
    }

    /// Removes our finalizer from all children of an owner that is about to be removed, and deletes the children
    /// that the garbage collector would not delete. Returns true if all of this is done.
    ///
    /// `unwatched` are the types of children that are not watched any more once the owner is gone, with their namespaces. If
    /// the garbage collector left some behind, they would never be found, so they are deleted here.
    pub(crate) async fn release(
        &mut self,
        keep_all: bool,
        unwatched: &[(usize, String)],
    ) -> Result<bool, kube::Error> {
        if !keep_all {
            for (at, namespace) in unwatched {
                self.delete_all_in(*at, namespace).await?;
            }
        }
        let mut are_gone = true;
        for (at, type_) in self.types.iter().enumerate() {
            let is_named = self.owner.can_reference(type_);
            if type_.is_cleanup_job() || is_named && !type_.has_finalizer {
                // Children for cleanup are deleted last; the garbage collector deletes the others.
                continue;
            }
            for (key, child) in self.list_live(at).await? {
                if keep_all || is_named {
                    self.remove_finalizer(&key, &child).await?;
                } else {
                    self.delete(&key, &child).await?;
                    are_gone = false;
                }
            }
        }
        if are_gone {
            self.delete_cleanup_jobs().await?;
        }
        Ok(are_gone)
    }

    /// Deletes the children of a type in a namespace. Without the permission, they are left to the garbage collector.
    async fn delete_all_in(&mut self, at: usize, namespace: &str) -> Result<(), kube::Error> {
        if self.types[at].is_cleanup_job() {
            return Ok(());
        }
        let children = match self.list_live_in(at, Some(namespace)).await {
            Err(kube::Error::Api(status)) if status.is_forbidden() => return Ok(()),
            children => children?,
        };
        for (key, child) in children {
            match self.delete(&key, &child).await {
                Err(kube::Error::Api(status)) if status.is_forbidden() => return Ok(()),
                deleted => deleted?,
            }
        }
        Ok(())
    }

    /// Returns true if a type of children is for cleanup.
    pub(crate) fn has_cleanup_jobs(&self) -> bool {
        self.types.iter().any(|type_| type_.is_cleanup_job())
    }

    /// Deletes the children for cleanup.
    pub(crate) async fn delete_cleanup_jobs(&mut self) -> Result<(), kube::Error> {
        let types = self.types.iter().enumerate();
        for (at, _) in types.filter(|(_, type_)| type_.is_cleanup_job()) {
            for (key, child) in self.list_live(at).await? {
                self.delete(&key, &child).await?;
            }
        }
        Ok(())
    }

    /// Returns the children of a type from the API server instead of the cache, since they are not reconciled
    /// again after this.
    async fn list_live(&self, at: usize) -> Result<Vec<(ChildKey, DynamicObject)>, kube::Error> {
        // Only in the owner's own namespace, if it has one: no permission beyond it is needed.
        let is_namespaced = self.types[at].is_namespaced;
        let namespace = self.owner.namespace.filter(|_| is_namespaced);
        self.list_live_in(at, namespace).await
    }

    async fn list_live_in(
        &self,
        at: usize,
        namespace: Option<&str>,
    ) -> Result<Vec<(ChildKey, DynamicObject)>, kube::Error> {
        let type_ = &self.types[at];
        let api: Api<OwnedObject> = dynamic_object::api(self.client, &type_.resource, namespace);
        let ours = format!("{OWNER_LABEL}={}", self.owner.uid);
        let live = api.list(&ListParams::default().labels(&ours)).await?.items;
        let live = live.into_iter().map(DynamicObject::from);
        let live = live.filter(|child| self.owner.owns(type_, child));
        let with_key = |mut child: DynamicObject| {
            dynamic_object::set_type_meta(&mut child, &type_.resource, self.manager);
            (ChildKey::of(at, &child), child)
        };
        Ok(live.map(with_key).collect())
    }

    async fn create(&mut self, key: &ChildKey, child: &Desired) -> Result<(), WriteError> {
        // Not an apply, which would take over an object of this name that another client has created.
        match self.create_object(key, &child.body).await {
            Ok(()) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                self.adopt(key, child).await
            }
            Err(error) => Err(self.rejected(key, error)),
        }
    }

    /// Handles a child that exists although no watch has delivered it: it was created a moment ago, was orphaned
    /// by a deleted owner, or belongs to another client.
    async fn adopt(&mut self, key: &ChildKey, child: &Desired) -> Result<(), WriteError> {
        let Some(live) = self.api(key).get_opt(key.name()).await? else {
            // Deleted again in the meantime.
            let made = self.create_object(key, &child.body).await;
            return made.map_err(|error| self.rejected(key, error));
        };
        let mut live = DynamicObject::from(live);
        let type_ = &self.types[key.type_index];
        // Before the fields of other clients are removed from the copy.
        let taken_over = taken_over(&live, self.owner.uid, self.manager);
        dynamic_object::set_type_meta(&mut live, &type_.resource, self.manager);
        let is_left_behind = self.owner.may_adopt(type_, &live);
        if self.owner.owns(type_, &live) || is_left_behind {
            if is_left_behind {
                tracing::info!(child = key.name(), "adopted an orphaned child");
            }
            self.changes.record_found(key, live.clone());
            self.annotate(key, &live, taken_over).await?;
            return self.update(key, child, &live).await;
        }
        if self.owner.will_be_garbage_collected(&live) {
            let why =
                "exists and is about to be deleted; it is created once the existing object is gone";
            return Err(self
                .child_ref(key)
                .transient_error("ChildTerminating", why)
                .into());
        }
        let whose = controller_of(&live).map_or_else(
            || "was not created by this controller".to_owned(),
            |controller| format!("belongs to {} '{}'", controller.kind, controller.name),
        );
        let why = format!(
            "exists and {whose}; choose another name for it, or delete the existing object"
        );
        Err(self
            .child_ref(key)
            .permanent_error("ChildNotOwned", &why)
            .into())
    }

    /// Updates an existing child according to its strategy.
    async fn update(
        &mut self,
        key: &ChildKey,
        child: &Desired,
        live: &DynamicObject,
    ) -> Result<(), WriteError> {
        let strategy = self.types[key.type_index].strategy;
        // A child that is being deleted is created again once it is gone.
        let is_going = live.metadata.deletion_timestamp.is_some();
        if is_going || strategy == UpdateStrategy::CreateOnly || !differs(child, live, self.manager)
        {
            return Ok(());
        }
        let has_lost_its_owner =
            controller_of(live).is_none() && self.owner.can_reference(&self.types[key.type_index]);
        if has_lost_its_owner && !self.may_own().await? {
            return Ok(());
        }
        match strategy {
            UpdateStrategy::Apply => self.apply(key, child, live).await,
            UpdateStrategy::Recreate => Ok(self.delete(key, live).await?),
            UpdateStrategy::OnDelete | UpdateStrategy::CreateOnly => Ok(()),
        }
    }
}

/// Returns true if a child differs from what was last written, or if that differs from what is desired.
fn differs(child: &Desired, live: &DynamicObject, manager: &FieldManager) -> bool {
    let written = live.annotations().get(APPLIED_ANNOTATION);
    if written != Some(&child.fingerprint) {
        return true;
    }
    let is_secret_kept = child
        .secrets
        .iter()
        .flatten()
        .all(|(name, value)| live.data["data"].get(name) == Some(value));
    !is_secret_kept || !owns_all_fields(&child.body, live, manager)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::{Method, Request, Response};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Client;
    use kube::api::ApiResource;
    use kube::client::Body;
    use kube::core::GroupVersionKind;
    use prometheus_client::registry::Registry;
    use serde_json::json;

    use super::*;
    use crate::children::{ChildCache, OwnedType, Owner};
    use crate::metrics::Metrics;

    /// Applies one child, given the existing children and the responses of the API server. Returns the requests
    /// that were sent, and the recorded changes.
    async fn apply_one(
        children: Vec<DynamicObject>,
        observed: &ChildCache,
        response: impl Fn(&Method) -> (u16, Value) + Send + Sync + 'static,
    ) -> (Vec<Method>, AppliedChanges) {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        let server = tower::service_fn(move |request: Request<Body>| {
            let (code, response) = response(request.method());
            log.lock().expect("a log").push(request.method().clone());
            let response = Response::builder().status(code).body(response.to_string());
            let response = response.expect("an answer").map(String::into_bytes);
            async move { Ok::<_, std::io::Error>(response.map(Body::from)) }
        });
        let client = Client::new(server, "default");
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("g", "v1", "K"));
        let metrics = Metrics::register(&mut Registry::default());
        let types = [OwnedType::namespaced::<ConfigMap>()];
        let writer = ChildWriter {
            client: &client,
            owner: Owner {
                resource: &resource,
                controller: "k",
                finalizer: None,
                namespace: Some("n"),
                name: "a",
                uid: "1",
            },
            manager: &FieldManager::new("lockstep"),
            types: &types,
            cache: observed,
            changes: AppliedChanges::default(),
            writes: &metrics.child_writes,
        };
        let key = ChildKey::of(0, &child());
        let children = children.into_iter();
        let children = children.map(|child| (key.clone(), Arc::new(child)));
        let children = children.collect();
        let desired = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"},
        });
        let applied = writer.apply_all(&[desired], &children).await;
        let changes = applied.expect("it succeeds");
        let requests = requests.lock().expect("a log").clone();
        (requests, changes)
    }

    fn child() -> DynamicObject {
        let child = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "c", "namespace": "n", "uid": "2", "resourceVersion": "7",
                "labels": {"lockstep.dev/owner-uid": "1"},
            },
        });
        serde_json::from_value(child).expect("an object")
    }

    /// Returns the requests for a child that has lost its owner reference, given the metadata of the owner in the
    /// API server.
    async fn requests_for(owner_metadata: Value) -> Vec<Method> {
        let response = json!({"apiVersion": "v1", "kind": "Any", "metadata": owner_metadata});
        let response = move |_: &Method| (200, response.clone());
        apply_one(vec![child()], &ChildCache::default(), response)
            .await
            .0
    }

    /// The child was created by an earlier reconciliation that did not receive the response.
    #[tokio::test]
    async fn a_child_that_a_watch_delivers_while_its_creation_fails_triggers_a_reconciliation() {
        for is_delivered in [true, false] {
            let observed = Arc::new(ChildCache::default());
            let watched = Arc::clone(&observed);
            let response = move |method: &Method| {
                if method != Method::POST {
                    return (200, json!(child()));
                }
                if is_delivered {
                    let owners = watched.has_observed(0, None, Some(child()));
                    assert!(owners.is_empty(), "the current reconciliation handles it");
                }
                let status = json!({"kind": "Status", "reason": "AlreadyExists", "code": 409});
                (409, status)
            };
            let (requests, changes) = apply_one(Vec::new(), &observed, response).await;
            assert_eq!(requests[..2], [Method::POST, Method::GET]);
            assert_eq!(changes.has_missed(), is_delivered);
        }
    }

    #[tokio::test]
    async fn a_child_that_is_being_orphaned_is_not_adopted_again() {
        let existing = json!({"name": "a", "uid": "1"});
        assert_eq!(requests_for(existing).await, [Method::GET, Method::PATCH]);
        let deleting =
            json!({"name": "a", "uid": "1", "deletionTimestamp": "2026-01-05T10:00:00Z"});
        assert_eq!(requests_for(deleting).await, [Method::GET]);
        let another = json!({"name": "a", "uid": "9"});
        assert_eq!(requests_for(another).await, [Method::GET]);
    }
}

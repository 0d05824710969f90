//! Protection of related objects from deletion while they are in use.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use lockstep_shared_validation::Validator;
use tokio::sync::watch;

use crate::cache::object_key::ObjectKey;
use crate::cache::reference_index::ReferenceIndex;
use crate::cache::related::RelatedCache;
use crate::cache::store::{LabelPattern, Store};
use crate::controller::context::Context;
use crate::custom_object::CustomObject;
use crate::dynamic_object;
use crate::events::recorder::RENEW_AFTER;
use crate::predicate::UpdateEvent;
use crate::queue::backoff::{Backoffs, LONGEST_WHILE_DELETING};
use crate::queue::priority_queue::Queue;
use crate::queue::ready_keys::Priority;
use crate::reconcile::finalizer;
use crate::watch::dependency::Reference;
use crate::watch::event_stream;

/// Maximum number of referring objects that an Event names.
const MAX_NAMED: usize = 5;

/// Finalizer protection for the related objects of one type.
///
/// # Guarantees
///
/// An object that has our finalizer and that no object refers to loses the finalizer, even if events were missed:
/// each object is compared with its current state once at the start, and after each change of it or of the objects
/// that refer to it. An object counts as referring until we have nothing left to do for it, and not only until its
/// deletion begins.
pub(crate) struct InUseProtection<'a, R> {
    context: &'a Context<R>,
    resource: &'a ApiResource,
    /// Watches on this type, with their caches: an object that one of them does not receive may be referred to
    /// through another.
    watched: Vec<(usize, &'a RelatedCache)>,
    referrers: Arc<ReferenceIndex<ObjectKey>>,
    finalizer: String,
    queue: Queue<ObjectKey>,
    backoffs: Backoffs,
}

impl<'a, R> InUseProtection<'a, R> {
    /// Returns one protection for each type with a protecting watch.
    pub(crate) fn all(
        context: &'a Context<R>,
        watched: &'a [RelatedCache],
        referrers: &Arc<ReferenceIndex<ObjectKey>>,
    ) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        let protected = context.watches.iter().zip(watched).enumerate();
        for (at, (watch, watched)) in protected.filter(|(_, (watch, _))| watch.is_protected) {
            let resource = &watch.resource;
            if let Some(same) = all.iter_mut().find(|it| it.resource == resource) {
                same.watched.push((at, watched));
                continue;
            }
            let name = format!("{}-uses-{}", context.name, event_stream::name(resource));
            all.push(Self {
                context,
                resource,
                watched: vec![(at, watched)],
                referrers: Arc::clone(referrers),
                finalizer: finalizer(&*context.validator),
                queue: Queue::new(context.metrics.queue(&name), Duration::ZERO, None),
                backoffs: Backoffs::default(),
            });
        }
        all
    }

    /// Returns true if it protects the objects of a watch.
    pub(crate) fn is_on_watch(&self, watch: usize) -> bool {
        self.watched.iter().any(|(at, _)| *at == watch)
    }

    /// Handles a change of an object that is or was to be protected.
    pub(crate) fn on_event(&self, change: &UpdateEvent<'_, DynamicObject>) {
        // An object that a selector excludes from now on is deleted only for the watch.
        if let Some(object) = change.after.or(change.before) {
            let key = ObjectKey::of(object);
            self.queue.add(key, Priority::Event, Duration::ZERO);
        }
    }

    /// Handles the start or the end of a reference to objects.
    pub(crate) fn on_reference_changed(&self, namespace: &str, reference: &Reference) {
        let touched = match reference {
            Reference::Name(name) => vec![ObjectKey::new(namespace, name)],
            Reference::Label(name, value) => {
                let label = LabelPattern::new(name, value);
                let candidates = self
                    .stores()
                    .flat_map(|store| store.in_namespace(namespace));
                let candidates = candidates.filter(|cached| cached.may_have_label(&label));
                candidates
                    .map(|cached| ObjectKey::of(&cached.decompress()))
                    .collect()
            }
            Reference::IndexKey(key) => {
                let watched = self.watched.iter().map(|(_, watched)| watched);
                watched
                    .flat_map(|watched| watched.object_keys(key))
                    .collect()
            }
        };
        for key in touched {
            self.queue.add(key, Priority::Event, Duration::ZERO);
        }
    }

    /// Checks all objects again: one that was kept because references were unknown may no longer be needed.
    pub(crate) fn enqueue_all(&self) {
        for key in self.stores().flat_map(|store| store.keys(None)) {
            self.queue.add(key, Priority::Event, Duration::ZERO);
        }
    }

    fn stores(&self) -> impl Iterator<Item = &Store> {
        self.watched.iter().map(|(_, watched)| &watched.store)
    }

    pub(crate) fn close(&self) {
        self.queue.close();
    }

    /// Processes keys until the queue is closed, once all caches are filled.
    pub(crate) async fn work(&self, mut incomplete: watch::Receiver<usize>) {
        tokio::select! {
            _ = incomplete.wait_for(|watches| *watches == 0) => {}
            () = self.queue.closed() => {}
        }
        while let Some(key) = self.queue.next().await {
            let shown = key.to_string();
            let again_after = match self.reconcile(&key).await {
                Ok(again_after) => {
                    self.backoffs.reset(&shown);
                    again_after
                }
                Err(error) => {
                    let after = self.backoffs.record_failure(&shown, 0, true);
                    let resource = &self.resource.plural;
                    let finalizer = &self.finalizer;
                    tracing::warn!(%error, resource, object = shown, finalizer, ?after, "the finalizer of a related object cannot be added or removed");
                    Some(after)
                }
            };
            self.queue.done(&key, again_after);
        }
    }

    /// Adds or removes our finalizer on an object. Returns when to check again if nothing changes.
    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, kube::Error> {
        let mut stores = self.stores();
        let (object, users) = if let Some(cached) = stores.find_map(|store| store.get(key)) {
            let object = cached.decompress();
            let users = self.users(&object);
            (object, users)
        } else {
            // The object is gone, or a selector excludes it: then it is not protected.
            let client = &self.context.client;
            let namespace = Self::namespace(key);
            let found =
                dynamic_object::metadata(client, self.resource, namespace, key.name()).await?;
            let Some(found) = found else {
                return Ok(None);
            };
            let object = DynamicObject::from(found);
            (object, BTreeSet::new())
        };
        let uid = object.uid().unwrap_or_default();
        let update = self.update(key, &object, &users);
        let updated = self.context.within_shard(&uid, update).await;
        updated.unwrap_or(Ok(None))
    }

    /// Adds our finalizer to an object that others refer to, or removes it from one to which none does.
    async fn update(
        &self,
        key: &ObjectKey,
        object: &DynamicObject,
        users: &BTreeSet<ObjectKey>,
    ) -> Result<Option<Duration>, kube::Error> {
        let is_protected = object.finalizers().contains(&self.finalizer);
        if users.is_empty() {
            if is_protected && self.referrers.has_unknown() {
                return Ok(Some(LONGEST_WHILE_DELETING));
            }
            let removal = finalizer::remove_patch(object.finalizers(), &self.finalizer);
            if let Some(removal) = removal {
                self.patch(key, &removal, true).await?;
                tracing::info!(
                    object = %key,
                    "removed the finalizer: no object refers to this one any more"
                );
                let uid = object.uid().unwrap_or_default();
                self.context.recorder.forget(&uid);
            }
            return Ok(None);
        }
        if object.metadata.deletion_timestamp.is_some() {
            if is_protected {
                self.report(object, users).await;
            }
            return Ok(is_protected.then_some(RENEW_AFTER));
        }
        if let Some(addition) = finalizer::add_patch(object.finalizers(), &self.finalizer) {
            let version = object.metadata.resource_version.as_deref();
            let operations = vec![finalizer::resource_version_precondition(version), addition];
            let addition = Patch::Json(json_patch::Patch(operations));
            self.patch(key, &addition, false).await?;
        }
        Ok(None)
    }

    async fn patch(
        &self,
        key: &ObjectKey,
        patch: &Patch<()>,
        is_removal: bool,
    ) -> Result<(), kube::Error> {
        let client = &self.context.client;
        let api: Api<CustomObject> =
            dynamic_object::api(client, self.resource, Self::namespace(key));
        match api.patch(key.name(), &PatchParams::default(), patch).await {
            // The object is gone or has changed: a watch event follows. A removal tests first that the finalizer
            // is at its index.
            Err(kube::Error::Api(status))
                if matches!(status.code, 404 | 409) || is_removal && status.is_invalid() =>
            {
                Ok(())
            }
            patched => patched.map(drop),
        }
    }

    /// Returns the namespace of an object, or none if its kind is cluster-scoped.
    fn namespace(key: &ObjectKey) -> Option<&str> {
        Some(key.namespace()).filter(|namespace| !namespace.is_empty())
    }

    /// Returns the objects that refer to an object.
    fn users(&self, object: &DynamicObject) -> BTreeSet<ObjectKey> {
        let object = Arc::new(object.clone());
        let change = UpdateEvent {
            before: None,
            after: Some(&object),
        };
        let of_each = self.watched.iter().map(|(at, _)| {
            let filed = self.context.watches[*at].index_entry(&object);
            let keys = filed.map(|filed| filed.keys).unwrap_or_default();
            self.referrers.referrers_of(*at, &change, keys)
        });
        of_each.flatten().collect()
    }

    /// Publishes an Event with the reason why a deleted object still exists.
    async fn report(&self, object: &DynamicObject, users: &BTreeSet<ObjectKey>) {
        let kind = self.context.validator.kind();
        let mut named: Vec<_> = users
            .iter()
            .map(|user| format!("'{}'", user.name()))
            .collect();
        let more = named.len().saturating_sub(MAX_NAMED);
        named.truncate(MAX_NAMED);
        let named = named.join(", ");
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let note = format!(
            "still in use by {kind} {named}{more}; it is deleted once these objects are deleted or refer to another object"
        );
        let reference = object.object_ref(self.resource);
        self.context
            .recorder
            .warning(&reference, "InUse", &note)
            .await;
    }
}

/// Returns the finalizer that protects objects that objects of this kind refer to.
fn finalizer(ruleset: &dyn Validator) -> String {
    let kind = ruleset.kind().to_lowercase();
    format!("{kind}.{}/in-use-protection", ruleset.group())
}

//! What objects refer to, kept for as long as they do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::DynamicResourceScope;
use kube::{Resource, ResourceExt};
use serde_json::Value;
use shared_validation::Validator;
use tokio::sync::watch;

use crate::announce::RENEW_AFTER;
use crate::backoff::{Backoffs, LONGEST_WHILE_DELETING};
use crate::cycle::Context;
use crate::directory::display_key;
use crate::kept::{LabelPattern, ObjectKey, Store, key_of};
use crate::predicate::UpdateEvent;
use crate::queue::{Priority, Queue};
use crate::referrers::ReferenceIndex;
use crate::related::RelatedCache;
use crate::watch::Reference;
use crate::{finalizers, objects, watches};

/// How many of those are named that refer to something.
const MOST_NAMED: usize = 5;

/// Keeps the objects of a type while they are referred to.
///
/// # Guarantees
///
/// Whatever carries our finalizer and is referred to by nothing is let go, whatever was missed in between: each
/// object is looked at as it is, once at the start and after each change of it or of what refers to it. An object
/// refers to others until we have nothing left to do for it, and not only until its deletion begins.
pub(crate) struct InUseProtection<'a, R> {
    cycle: &'a Context<R>,
    resource: &'a ApiResource,
    /// The watches on this type, with what they have brought: what one of them does not know of may be referred to
    /// by another.
    watched: Vec<(usize, &'a RelatedCache)>,
    referrers: Arc<ReferenceIndex<ObjectKey>>,
    finalizer: String,
    queue: Queue<ObjectKey>,
    backoffs: Backoffs,
}

impl<'a, R> InUseProtection<'a, R> {
    /// One for each type of which a watch is to protect what it brings.
    pub(crate) fn all(
        cycle: &'a Context<R>,
        watched: &'a [RelatedCache],
        referrers: &Arc<ReferenceIndex<ObjectKey>>,
    ) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        let protected = cycle.watches.iter().zip(watched).enumerate();
        for (at, (watch, watched)) in protected.filter(|(_, (watch, _))| watch.is_protected) {
            let resource = &watch.resource;
            if let Some(same) = all.iter_mut().find(|it| it.resource == resource) {
                same.watched.push((at, watched));
                continue;
            }
            let name = format!("{}-uses-{}", cycle.name, watches::name(resource));
            all.push(Self {
                cycle,
                resource,
                watched: vec![(at, watched)],
                referrers: Arc::clone(referrers),
                finalizer: finalizer(&*cycle.validator),
                queue: Queue::new(cycle.metrics.queue(&name), Duration::ZERO),
                backoffs: Backoffs::default(),
            });
        }
        all
    }

    /// Whether it protects what a watch brings.
    pub(crate) fn is_on_watch(&self, watch: usize) -> bool {
        self.watched.iter().any(|(at, _)| *at == watch)
    }

    /// Something that is to be protected, or was, has changed.
    pub(crate) fn on_event(&self, change: &UpdateEvent<'_, DynamicObject>) {
        // What a selector leaves out from now on is gone for the watch alone.
        if let Some(object) = change.after.or(change.before) {
            let key = key_of(object);
            self.queue.add(key, Priority::Event, Duration::ZERO);
        }
    }

    /// Something begins or ceases to refer to these.
    pub(crate) fn on_reference_changed(&self, namespace: &str, reference: &Reference) {
        let touched = match reference {
            Reference::Name(name) => vec![(namespace.to_owned(), name.clone())],
            Reference::Label(name, value) => {
                let label = LabelPattern::new(name, value);
                let candidates = self
                    .stores()
                    .flat_map(|store| store.in_namespace(namespace));
                let candidates = candidates.filter(|kept| kept.may_have_label(&label));
                candidates.map(|kept| key_of(&kept.decompress())).collect()
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

    /// What has been kept for want of knowing better need not be any more.
    pub(crate) fn enqueue_all(&self) {
        for key in self.stores().flat_map(Store::keys) {
            self.queue.add(key, Priority::Event, Duration::ZERO);
        }
    }

    fn stores(&self) -> impl Iterator<Item = &Store> {
        self.watched.iter().map(|(_, watched)| &watched.store)
    }

    pub(crate) fn close(&self) {
        self.queue.close();
    }

    /// Works until it is closed, once all is known that there is.
    pub(crate) async fn work(&self, mut incomplete: watch::Receiver<usize>) {
        tokio::select! {
            _ = incomplete.wait_for(|watches| *watches == 0) => {}
            () = self.queue.closed() => {}
        }
        while let Some(key) = self.queue.next().await {
            let shown = display_key(&key);
            let again_after = match self.reconcile(&key).await {
                Ok(again_after) => {
                    self.backoffs.reset(&shown);
                    again_after
                }
                Err(error) => {
                    let after = self.backoffs.record_failure(&shown, 0, true);
                    let resource = &self.resource.plural;
                    let finalizer = &self.finalizer;
                    tracing::warn!(%error, resource, object = shown, finalizer, ?after, "what is referred to cannot be protected or let go");
                    Some(after)
                }
            };
            self.queue.done(&key, again_after);
        }
    }

    /// Brings our finalizer on an object to what it is to be. Says when to look again though nothing changes.
    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, kube::Error> {
        let mut stores = self.stores();
        let (object, users) = if let Some(kept) = stores.find_map(|store| store.get(key)) {
            let object = kept.decompress();
            let users = self.users(&object);
            (object, users)
        } else {
            // Gone, or left out by a selector: then it is not for us to keep.
            let Some(found) = self
                .api::<DynamicObject>(key)
                .get_metadata_opt(&key.1)
                .await?
            else {
                return Ok(None);
            };
            let object = DynamicObject {
                types: None,
                metadata: found.metadata,
                data: Value::Null,
            };
            (object, BTreeSet::new())
        };
        let is_protected = object.finalizers().contains(&self.finalizer);
        if users.is_empty() {
            if is_protected && self.referrers.has_unknown() {
                return Ok(Some(LONGEST_WHILE_DELETING));
            }
            let removal = finalizers::remove_patch(object.finalizers(), &self.finalizer);
            if let Some(removal) = removal {
                self.patch(key, &removal, true).await?;
                tracing::info!(
                    object = display_key(key),
                    "nothing refers to it any more: let go"
                );
                let uid = object.uid().unwrap_or_default();
                self.cycle.recorder.forget(&uid);
            }
            return Ok(None);
        }
        if object.metadata.deletion_timestamp.is_some() {
            if is_protected {
                self.report(&object, &users).await;
            }
            return Ok(is_protected.then_some(RENEW_AFTER));
        }
        if let Some(addition) = finalizers::add_patch(object.finalizers(), &self.finalizer) {
            let version = object.metadata.resource_version.as_deref();
            let operations = vec![finalizers::resource_version_precondition(version), addition];
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
        let api = self.api::<DynamicObject>(key);
        match api.patch(&key.1, &PatchParams::default(), patch).await {
            // Gone, or changed since: the watch tells. What removes tests first that it still fits.
            Err(kube::Error::Api(status))
                if matches!(status.code, 404 | 409) || is_removal && status.is_invalid() =>
            {
                Ok(())
            }
            patched => patched.map(drop),
        }
    }

    fn api<K>(&self, key: &ObjectKey) -> Api<K>
    where
        K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        let namespace = Some(key.0.as_str()).filter(|namespace| !namespace.is_empty());
        objects::api(&self.cycle.client, self.resource, namespace)
    }

    /// What refers to an object.
    fn users(&self, object: &DynamicObject) -> BTreeSet<ObjectKey> {
        let object = Arc::new(object.clone());
        let change = UpdateEvent {
            before: None,
            after: Some(&object),
        };
        let of_each = self.watched.iter().map(|(at, _)| {
            let filed = self.cycle.watches[*at].index_entry(&object);
            let keys = filed.map(|filed| filed.keys).unwrap_or_default();
            self.referrers.referrers_of(*at, &change, keys)
        });
        of_each.flatten().collect()
    }

    /// Says why something that somebody has deleted is still there.
    async fn report(&self, object: &DynamicObject, users: &BTreeSet<ObjectKey>) {
        let kind = self.cycle.validator.kind();
        let mut named: Vec<_> = users.iter().map(|(_, name)| format!("'{name}'")).collect();
        let more = named.len().saturating_sub(MOST_NAMED);
        named.truncate(MOST_NAMED);
        let named = named.join(", ");
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let note = format!(
            "kept for as long as it is referred to, by {kind} {named}{more}; it goes once they are gone or refer to another"
        );
        let reference = object.object_ref(self.resource);
        self.cycle
            .recorder
            .warning(&reference, "InUse", &note)
            .await;
    }
}

/// What keeps an object for the sake of those of a kind that refer to it.
fn finalizer(ruleset: &dyn Validator) -> String {
    let kind = ruleset.kind().to_lowercase();
    format!("{kind}.{}/in-use", ruleset.group())
}

//! What objects refer to, kept for as long as they do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use shared_validation::Judge;
use tokio::sync::watch;

use crate::backoff::Backoffs;
use crate::cycle::Cycle;
use crate::directory::shown;
use crate::kept::{Key, Label, Store, key_of};
use crate::predicate::Change;
use crate::queue::{Priority, Queue};
use crate::related::Referrers;
use crate::watch::{Reference, Watch};
use crate::{finalizers, objects, watches};

/// How many of those are named that refer to something.
const MOST_NAMED: usize = 5;

/// Keeps what one watch brings while it is referred to.
///
/// # Guarantees
///
/// Whatever carries our finalizer and is referred to by nothing is let go, whatever was missed in between: each
/// object is looked at as it is, once at the start and after each change of it or of what refers to it. An object
/// refers to others until it is gone, and not only until its deletion begins.
pub(crate) struct Protection<'a, R> {
    cycle: &'a Cycle<R>,
    watch: &'a Watch,
    /// The watches on the same type: what one of them does not know of may be referred to by another.
    same: Vec<usize>,
    store: &'a Store,
    referrers: Arc<Referrers<Key>>,
    finalizer: String,
    queue: Queue<Key>,
    backoffs: Backoffs,
}

impl<'a, R> Protection<'a, R> {
    /// None where the watch is not to protect.
    pub(crate) fn new(
        cycle: &'a Cycle<R>,
        at: usize,
        store: &'a Store,
        referrers: &Arc<Referrers<Key>>,
    ) -> Option<Self> {
        let watch = &cycle.watches[at];
        let is_same = |other: &Watch| other.is_protected && other.resource == watch.resource;
        let same = cycle.watches.iter().enumerate();
        let same = same.filter_map(|(at, other)| is_same(other).then_some(at));
        let name = format!("{}-uses-{}", cycle.name, watches::name(&watch.resource));
        watch.is_protected.then(|| Self {
            cycle,
            watch,
            same: same.collect(),
            store,
            referrers: Arc::clone(referrers),
            finalizer: finalizer(&*cycle.ruleset),
            queue: Queue::new(cycle.metrics.queue(&name), Duration::ZERO),
            backoffs: Backoffs::default(),
        })
    }

    /// Something that is, or was, protected has changed.
    pub(crate) fn saw(&self, change: &Change<'_, DynamicObject>) {
        // What a selector leaves out from now on is gone for the watch alone.
        let left = |before: &&Arc<DynamicObject>| before.finalizers().contains(&self.finalizer);
        if let Some(object) = change.after.or(change.before.filter(left)) {
            self.queue
                .add(key_of(object), Priority::Change, Duration::ZERO);
        }
    }

    /// Something begins or ceases to refer to these.
    pub(crate) fn is_touched(&self, namespace: &str, reference: &Reference) {
        let touched = match reference {
            Reference::Named(name) => vec![(namespace.to_owned(), name.clone())],
            Reference::Labelled(name, value) => {
                let label = Label::new(name, value);
                let candidates = self.store.within(namespace).into_iter();
                let candidates = candidates.filter(|kept| kept.may_carry(&label));
                candidates.map(|kept| key_of(&kept.open())).collect()
            }
        };
        for key in touched {
            self.queue.add(key, Priority::Change, Duration::ZERO);
        }
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
            let shown = shown(&key);
            let again_after = match self.look(&key).await {
                Ok(()) => {
                    self.backoffs.reset(&shown);
                    None
                }
                Err(error) => {
                    let after = self.backoffs.after_failure(&shown, 0, true);
                    let resource = &self.watch.resource.plural;
                    let finalizer = &self.finalizer;
                    tracing::warn!(%error, resource, object = shown, finalizer, ?after, "what is referred to cannot be protected or let go");
                    Some(after)
                }
            };
            self.queue.done(&key, again_after);
        }
    }

    /// Brings our finalizer on an object to what it is to be.
    async fn look(&self, key: &Key) -> Result<(), kube::Error> {
        let Some(object) = self.object(key).await? else {
            return Ok(());
        };
        let users = self.users(&object);
        let is_going = object.metadata.deletion_timestamp.is_some();
        let patch = if users.is_empty() {
            finalizers::removal(object.finalizers(), &self.finalizer)
        } else if is_going {
            self.tell(&object, &users).await;
            None
        } else {
            let addition = finalizers::addition(object.finalizers(), &self.finalizer);
            let version = object.metadata.resource_version.as_deref();
            let only = |addition| vec![finalizers::only_in(version), addition];
            addition.map(|addition| Patch::Json(json_patch::Patch(only(addition))))
        };
        let Some(patch) = patch else {
            return Ok(());
        };
        let namespace = Some(key.0.as_str()).filter(|namespace| !namespace.is_empty());
        let api = objects::api(&self.cycle.client, &self.watch.resource, namespace);
        let params = PatchParams::default();
        let patched: Result<DynamicObject, _> = api.patch(&key.1, &params, &patch).await;
        match patched {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => return Err(error),
            Ok(_) if users.is_empty() => {
                tracing::info!(object = shown(key), "nothing refers to it any more: let go");
                let uid = object.uid().unwrap_or_default();
                self.cycle.announcer.forget(&uid);
            }
            Ok(_) => {}
        }
        Ok(())
    }

    /// The object as the watch has brought it; where it has been left out, as it is.
    async fn object(&self, key: &Key) -> Result<Option<DynamicObject>, kube::Error> {
        if let Some(kept) = self.store.get(key) {
            return Ok(Some(kept.open()));
        }
        let namespace = Some(key.0.as_str()).filter(|namespace| !namespace.is_empty());
        let api =
            objects::api::<DynamicObject>(&self.cycle.client, &self.watch.resource, namespace);
        let found = api.get_metadata_opt(&key.1).await?;
        Ok(found.map(|found| DynamicObject {
            types: None,
            metadata: found.metadata,
            data: serde_json::Value::Null,
        }))
    }

    /// What refers to an object.
    fn users(&self, object: &DynamicObject) -> BTreeSet<Key> {
        let object = Arc::new(object.clone());
        let change = Change {
            before: None,
            after: Some(&object),
        };
        let of_each = self.same.iter().map(|at| self.referrers.of(*at, &change));
        of_each.flatten().collect()
    }

    /// Says why something that somebody has deleted is still there.
    async fn tell(&self, object: &DynamicObject, users: &BTreeSet<Key>) {
        let kind = self.cycle.ruleset.kind();
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
        let reference = object.object_ref(&self.watch.resource);
        self.cycle.announcer.warn(&reference, "InUse", &note).await;
    }
}

/// What keeps an object for the sake of those of a kind that refer to it.
fn finalizer(ruleset: &dyn Judge) -> String {
    let kind = ruleset.kind().to_lowercase();
    format!("{}/used-by-{kind}", ruleset.group())
}

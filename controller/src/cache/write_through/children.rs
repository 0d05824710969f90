//! Cache of children, by owner.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use kube::api::DynamicObject;
use parking_lot::Mutex;

use crate::cache::capacity::release_unused;
use crate::cache::store::{CompressedObject, Dictionary};
use crate::children::OWNER_LABEL;
use crate::children::key::ChildKey;
use crate::children::owner::label;
use crate::dynamic_object::resource_version;
#[cfg(test)]
use crate::predicate::UpdateEvent;
use crate::watch::event_stream::ObjectChange;

/// The children of one owner.
pub(crate) type ChildMap = BTreeMap<ChildKey, Arc<DynamicObject>>;

/// Cache of the children of all owners: as the watches delivered them, or as we have just written them.
///
/// # Guarantees
///
/// A write is visible from then on. A watch that lags behind does not restore an older state: reconciliations on
/// such a view would repeat every write. A state that the watch delivers after the write replaces it.
#[derive(Default)]
pub(crate) struct ChildCache {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// A vector, since most owners have few children.
    by_owner: HashMap<String, Vec<(ChildKey, Arc<CompressedObject>)>>,
    /// Latest resource version that the watch of each type has delivered in each namespace.
    observed_versions: HashMap<(usize, String), u64>,
    /// LZ4 dictionary of each type.
    dictionaries: HashMap<usize, Dictionary>,
    /// Children that a reconciliation is creating, by owner and key. The watch may deliver them before the API
    /// server's response arrives: then with this resource version.
    pending_creates: HashMap<(String, ChildKey), Option<u64>>,
}

/// A child that is being created, until this is dropped.
pub(crate) struct PendingCreate<'a> {
    observed: &'a ChildCache,
    created: (String, ChildKey),
}

impl PendingCreate<'_> {
    /// Returns true if the watch has delivered the child, but the response has not, or in another state.
    pub(crate) fn has_missed(&self, response: Option<&DynamicObject>) -> bool {
        let state = self.observed.state.lock();
        let delivered = state.pending_creates.get(&self.created).copied().flatten();
        delivered.is_some() && delivered != response.and_then(resource_version)
    }
}

impl Drop for PendingCreate<'_> {
    fn drop(&mut self) {
        self.observed
            .state
            .lock()
            .pending_creates
            .remove(&self.created);
    }
}

impl ChildCache {
    /// Updates the cache after a change and returns the UIDs of the current and the previous owner. An owner is
    /// left out if the change is a write of its own reconciliation, which handles it.
    pub(crate) fn on_change(&self, type_: usize, seen: &ObjectChange<'_>) -> BTreeSet<String> {
        let change = &seen.change;
        let mut state = self.state.lock();
        let latest = change.after.or(change.before);
        let namespace = latest.and_then(|child| child.metadata.namespace.clone());
        let namespace = namespace.unwrap_or_default();
        let latest_version = state
            .observed_versions
            .entry((type_, namespace))
            .or_default();
        *latest_version = (*latest_version).max(
            latest
                .and_then(|child| resource_version(child))
                .unwrap_or_default(),
        );
        let owner_of = |child: &DynamicObject| label(child, OWNER_LABEL).map(String::from);
        let before = change
            .before
            .and_then(|child| Some((owner_of(child)?, child)));
        let after = change
            .after
            .and_then(|child| Some((owner_of(child)?, child)));
        if let Some((owner, child)) = &before
            && after.as_ref().is_none_or(|(new, _)| new != owner)
        {
            state.remove_same(owner, &ChildKey::of(type_, child), child);
        }
        let mut owners = BTreeSet::from_iter(before.map(|(owner, _)| owner));
        if let (Some((owner, child)), Some(compressed)) = (after, seen.stored) {
            let key = ChildKey::of(type_, child);
            let created = (owner.clone(), key.clone());
            let delivered = state.pending_creates.get_mut(&created);
            let delivered = delivered.filter(|_| change.before.is_none());
            let is_being_created = delivered.map(|it| *it = resource_version(child)).is_some();
            if state.put(&owner, key, Arc::clone(compressed)) || is_being_created {
                owners.remove(&owner);
            } else {
                owners.insert(owner);
            }
        }
        owners
    }

    /// Removes the children of a type, in all namespaces or in one, that are missing in the list of a restarted watch: no
    /// change reports those that came and went in between.
    pub(crate) fn initialize(
        &self,
        type_: usize,
        namespace: Option<&str>,
        all: &[Arc<CompressedObject>],
    ) {
        let uids: HashSet<_> = all.iter().map(|child| child.uid()).collect();
        let is_listed = |key: &ChildKey| {
            key.type_index == type_
                && namespace.is_none_or(|namespace| key.namespace() == namespace)
        };
        self.state.lock().by_owner.retain(|_, children| {
            children.retain(|(key, child)| !is_listed(key) || uids.contains(child.uid()));
            !children.is_empty()
        });
    }

    /// Begins the creation of a child. The caller gets its state from the response, or reconciles again.
    pub(crate) fn expect_create(&self, owner: &str, key: &ChildKey) -> PendingCreate<'_> {
        let created = (owner.to_owned(), key.clone());
        self.state
            .lock()
            .pending_creates
            .insert(created.clone(), None);
        PendingCreate {
            observed: self,
            created,
        }
    }

    /// Returns the cached copy of this state of a child, if it exists. It may already be marked as being deleted
    /// although the watch has not delivered that.
    pub(crate) fn get(&self, type_: usize, child: &DynamicObject) -> Option<Arc<CompressedObject>> {
        let owner = label(child, OWNER_LABEL)?;
        self.state
            .lock()
            .get(owner, &ChildKey::of(type_, child), child)
    }

    /// Records a child that was written.
    pub(crate) fn record_write(&self, owner: &str, key: &ChildKey, child: &DynamicObject) {
        let mut state = self.state.lock();
        let scope = (key.type_index, key.namespace().to_owned());
        let is_observed = resource_version(child) <= state.observed_versions.get(&scope).copied();
        if !is_observed && state.get(owner, key, child).is_none() {
            let dictionary = state.dictionaries.entry(key.type_index).or_default();
            let compressed = Arc::new(CompressedObject::compress(child, dictionary));
            state.put(owner, key.clone(), compressed);
        }
    }

    /// Marks a child as being deleted until its watch reports that it is gone.
    pub(crate) fn record_delete(&self, owner: &str, key: &ChildKey, deleted: &DynamicObject) {
        let mut state = self.state.lock();
        let children = state.by_owner.get_mut(owner);
        let mut children = children.into_iter().flatten();
        if let Some((_, child)) = children.find(|(cached_key, _)| cached_key == key)
            && Some(child.uid()) == deleted.metadata.uid.as_deref()
        {
            *child = Arc::new(child.compress_with_same_dictionary(deleted));
        }
    }

    /// Returns the LZ4 dictionary of a type.
    pub(crate) fn dictionary(&self, type_: usize) -> Dictionary {
        let mut state = self.state.lock();
        state.dictionaries.entry(type_).or_default().clone()
    }

    /// Removes the children of the owners that a function rejects, and returns their keys.
    pub(crate) fn retain_owners(&self, is_kept: impl Fn(&str) -> bool) -> Vec<ChildKey> {
        let mut state = self.state.lock();
        let removed = state.by_owner.extract_if(|uid, _| !is_kept(uid));
        let keys = removed.flat_map(|(_, children)| children.into_iter().map(|(key, _)| key));
        let keys = keys.collect();
        state.by_owner.shrink_to_fit();
        keys
    }

    /// Returns the UIDs of the owners that are not known.
    pub(crate) fn unknown_owners(&self, is_known: impl Fn(&str) -> bool) -> Vec<String> {
        let state = self.state.lock();
        let unknown = state.by_owner.keys().filter(|uid| !is_known(uid));
        unknown.cloned().collect()
    }

    /// Passes a change on as the watch of a type does.
    #[cfg(test)]
    pub(crate) fn has_observed(
        &self,
        type_: usize,
        before: Option<DynamicObject>,
        after: Option<DynamicObject>,
    ) -> Vec<String> {
        let (before, after) = (before.map(Arc::new), after.map(Arc::new));
        let compressed = after.as_deref();
        let compressed = compressed
            .map(|after| Arc::new(CompressedObject::compress(after, &self.dictionary(type_))));
        let change = UpdateEvent {
            before: before.as_ref(),
            after: after.as_ref(),
        };
        let seen = ObjectChange {
            change,
            stored: compressed.as_ref(),
            is_new: true,
        };
        self.on_change(type_, &seen).into_iter().collect()
    }

    /// Returns the children of an owner.
    pub(crate) fn children_of(&self, uid: &str) -> ChildMap {
        let compressed = self.state.lock().by_owner.get(uid).cloned();
        let compressed = compressed.unwrap_or_default().into_iter();
        compressed
            .map(|(key, child)| (key, Arc::new(child.decompress())))
            .collect()
    }
}

impl State {
    fn get(
        &self,
        owner: &str,
        key: &ChildKey,
        child: &DynamicObject,
    ) -> Option<Arc<CompressedObject>> {
        let mut children = self.by_owner.get(owner)?.iter();
        let (_, compressed) = children.find(|(cached_key, compressed)| {
            cached_key == key && compressed.is_version_of(child)
        })?;
        Some(Arc::clone(compressed))
    }

    /// Stores a child, unless a later state of it is stored. Returns true if this very state was stored.
    fn put(&mut self, owner: &str, key: ChildKey, child: Arc<CompressedObject>) -> bool {
        let children = self.by_owner.entry(owner.to_owned()).or_default();
        let Some((_, cached_key)) = children
            .iter_mut()
            .find(|(cached_key, _)| *cached_key == key)
        else {
            children.reserve_exact(1);
            children.push((key, child));
            return false;
        };
        let is_known = cached_key.is_same_state_as(&child);
        if !cached_key.is_later_than(&child) {
            *cached_key = child;
        }
        is_known
    }

    /// Removes a child, unless another object has replaced it.
    fn remove_same(&mut self, owner: &str, key: &ChildKey, child: &DynamicObject) {
        let Some(children) = self.by_owner.get_mut(owner) else {
            return;
        };
        let uid = child.metadata.uid.as_deref();
        children
            .retain(|(cached_key, compressed)| cached_key != key || Some(compressed.uid()) != uid);
        if children.is_empty() {
            self.by_owner.remove(owner);
            release_unused(&mut self.by_owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn child(uid: &str, version: &str, owner: &str) -> DynamicObject {
        let metadata = json!({
            "name": "c", "namespace": "n", "uid": uid, "resourceVersion": version,
            "labels": {"lockstep.dev/owner-uid": owner},
        });
        serde_json::from_value(json!({"metadata": metadata})).expect("an object")
    }

    fn observe(
        observed: &ChildCache,
        before: Option<DynamicObject>,
        after: Option<DynamicObject>,
    ) -> Vec<String> {
        observed.has_observed(0, before, after)
    }

    fn version(observed: &ChildCache, owner: &str) -> Option<String> {
        let children = observed.children_of(owner);
        children
            .into_values()
            .next()?
            .metadata
            .resource_version
            .clone()
    }

    #[test]
    fn a_write_is_not_reverted_by_a_watch_that_lags() {
        let observed = ChildCache::default();
        let key = ChildKey::of(0, &child("1", "1", "a"));
        assert_eq!(observe(&observed, None, Some(child("1", "9", "a"))), ["a"]);
        observed.record_write("a", &key, &child("1", "11", "a"));
        let owners = observe(
            &observed,
            Some(child("1", "9", "a")),
            Some(child("1", "10", "a")),
        );
        assert_eq!(owners, ["a"]);
        assert_eq!(version(&observed, "a").as_deref(), Some("11"));
        // A write of our own triggers nothing when the watch delivers it.
        let owners = observe(
            &observed,
            Some(child("1", "10", "a")),
            Some(child("1", "11", "a")),
        );
        assert_eq!(owners, <[&str; 0]>::default());
        observe(
            &observed,
            Some(child("1", "10", "a")),
            Some(child("1", "12", "a")),
        );
        assert_eq!(version(&observed, "a").as_deref(), Some("12"));
        // Deleted, and created again before the watch has reported it.
        observed.record_write("a", &key, &child("2", "15", "a"));
        observe(&observed, Some(child("1", "12", "a")), None);
        assert_eq!(version(&observed, "a").as_deref(), Some("15"));
        observe(&observed, Some(child("2", "15", "a")), None);
        assert_eq!(version(&observed, "a"), None);
        assert!(
            observed.state.lock().by_owner.is_empty(),
            "no entry is left"
        );
        // Created and deleted again: the watch was faster than the response.
        observe(&observed, None, Some(child("3", "17", "a")));
        observe(&observed, Some(child("3", "18", "a")), None);
        observed.record_write("a", &key, &child("3", "17", "a"));
        assert_eq!(version(&observed, "a"), None);
        // Created, and deleted while the watch was interrupted.
        observed.record_write("a", &key, &child("4", "20", "a"));
        observed.initialize(0, None, &[]);
        assert_eq!(version(&observed, "a"), None);
    }

    #[test]
    fn a_child_that_is_being_created_triggers_no_reconciliation() {
        let observed = ChildCache::default();
        let key = ChildKey::of(0, &child("1", "1", "a"));
        let making = observed.expect_create("a", &key);
        assert!(observe(&observed, None, Some(child("1", "1", "a"))).is_empty());
        assert!(!making.has_missed(Some(&child("1", "1", "a"))));
        assert!(
            making.has_missed(Some(&child("1", "0", "a"))),
            "the watch delivered a later state"
        );
        assert!(making.has_missed(None), "there was no response");
        assert_eq!(version(&observed, "a").as_deref(), Some("1"));
        let changed = observe(
            &observed,
            Some(child("1", "1", "a")),
            Some(child("1", "2", "a")),
        );
        assert_eq!(changed, ["a"], "changed by another client");
        drop(making);
        observe(&observed, Some(child("1", "2", "a")), None);
        let owners = observe(&observed, None, Some(child("2", "3", "a")));
        assert_eq!(owners, ["a"]);
    }

    #[test]
    fn a_cached_state_is_not_stored_a_second_time() {
        let observed = ChildCache::default();
        let key = ChildKey::of(0, &child("1", "1", "a"));
        observed.record_write("a", &key, &child("1", "11", "a"));
        let compressed = observed.get(0, &child("1", "11", "a"));
        let compressed = compressed.expect("that very state");
        observed.record_write("a", &key, &child("1", "11", "a"));
        let again = observed.get(0, &child("1", "11", "a"));
        assert!(Arc::ptr_eq(&compressed, &again.expect("that very state")));
        for (type_, other) in [
            (0, child("1", "12", "a")),
            (0, child("2", "11", "a")),
            (0, child("1", "11", "b")),
            (1, child("1", "11", "a")),
        ] {
            assert!(observed.get(type_, &other).is_none(), "{type_} {other:?}");
        }
    }

    #[test]
    fn a_child_that_changes_its_owner_is_reported_to_both() {
        let observed = ChildCache::default();
        observe(&observed, None, Some(child("1", "1", "a")));
        let owners = observe(
            &observed,
            Some(child("1", "1", "a")),
            Some(child("1", "2", "b")),
        );
        assert_eq!(owners, ["a", "b"]);
        assert_eq!(version(&observed, "a"), None);
        assert_eq!(version(&observed, "b").as_deref(), Some("2"));
    }
}

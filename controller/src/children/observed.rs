//! The children that there are, by whose they are.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;
use kube::api::DynamicObject;

use super::OWNER_LABEL;
use super::owner::label;
use crate::kept::{CompressedObject, Dictionary};
use crate::objects::resource_version;
#[cfg(test)]
use crate::predicate::UpdateEvent;
use crate::watches::ObjectChange;

/// Where a child is: the place of its type in the operator's list, its namespace, and its name.
pub(crate) type Place = (usize, String, String);

/// The children of one owner.
pub(crate) type ChildMap = BTreeMap<Place, Arc<DynamicObject>>;

/// The children of every owner: as the watches have brought them, or as we have just written them.
///
/// # Guarantees
///
/// What has been written is seen from then on. A watch that lags behind does not bring back what was before:
/// rounds on such a view would write everything twice. What a watch has told after it stands.
#[derive(Default)]
pub(crate) struct ChildCache {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Most owners have few.
    by_owner: HashMap<String, Vec<(Place, Arc<CompressedObject>)>>,
    /// How far the watch of each type has come.
    told: HashMap<usize, u64>,
    /// What the children of each type have in common.
    patterns: HashMap<usize, Dictionary>,
    /// Children that a round is making, by owner and place. Their watch may bring them before the API server's
    /// answer does: then in this state.
    being_made: HashMap<(String, Place), Option<u64>>,
}

/// A child that is being made, until this is dropped.
pub(crate) struct PendingCreate<'a> {
    observed: &'a ChildCache,
    made: (String, Place),
}

impl PendingCreate<'_> {
    /// Whether the watch has brought it in another state than the answer did, if that did at all.
    pub(crate) fn has_missed(&self, answer: Option<&DynamicObject>) -> bool {
        let state = self.observed.state();
        let brought = state.being_made.get(&self.made).copied().flatten();
        brought.is_some() && brought != answer.and_then(resource_version)
    }
}

impl Drop for PendingCreate<'_> {
    fn drop(&mut self) {
        self.observed.state().being_made.remove(&self.made);
    }
}

impl ChildCache {
    /// Takes what has become of a child, and says whose it is or was; nobody's, where it is what a round writes
    /// or has written, since that goes on with it.
    pub(crate) fn on_change(&self, type_: usize, seen: &ObjectChange<'_>) -> BTreeSet<String> {
        let change = &seen.change;
        let mut state = self.state();
        let told = state.told.entry(type_).or_default();
        let latest = change.after.or(change.before);
        *told = (*told).max(
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
            state.remove_same(owner, &place(type_, child), child);
        }
        let mut owners = BTreeSet::from_iter(before.map(|(owner, _)| owner));
        if let (Some((owner, child)), Some(kept)) = (after, seen.stored) {
            let place = place(type_, child);
            let made = (owner.clone(), place.clone());
            let brought = state.being_made.get_mut(&made);
            let brought = brought.filter(|_| change.before.is_none());
            let is_being_made = brought.map(|it| *it = resource_version(child)).is_some();
            if state.put(&owner, place, Arc::clone(kept)) || is_being_made {
                owners.remove(&owner);
            } else {
                owners.insert(owner);
            }
        }
        owners
    }

    /// Takes all there are of a type after a watch has begun anew: what came and went in between is in none
    /// of its changes.
    pub(crate) fn initialize(&self, type_: usize, all: &[Arc<CompressedObject>]) {
        let uids: HashSet<_> = all.iter().map(|child| child.uid()).collect();
        self.state().by_owner.retain(|_, children| {
            children.retain(|(place, child)| place.0 != type_ || uids.contains(child.uid()));
            !children.is_empty()
        });
    }

    /// Begins to make a child. Whoever does hears of it by the answer, or looks again.
    pub(crate) fn expect_create(&self, owner: &str, place: &Place) -> PendingCreate<'_> {
        let made = (owner.to_owned(), place.clone());
        self.state().being_made.insert(made.clone(), None);
        PendingCreate {
            observed: self,
            made,
        }
    }

    /// A state of a child as it is already kept, if it is: also as one that is being deleted, though its watch has
    /// not told so yet.
    pub(crate) fn get(&self, type_: usize, child: &DynamicObject) -> Option<Arc<CompressedObject>> {
        let owner = label(child, OWNER_LABEL)?;
        self.state().get(owner, &place(type_, child), child)
    }

    /// Takes what has been written to a child.
    pub(crate) fn record_write(&self, owner: &str, place: &Place, child: &DynamicObject) {
        let mut state = self.state();
        let is_told = resource_version(child) <= state.told.get(&place.0).copied();
        if !is_told && state.get(owner, place, child).is_none() {
            let pattern = state.patterns.entry(place.0).or_default();
            let kept = Arc::new(CompressedObject::compress(child, pattern));
            state.put(owner, place.clone(), kept);
        }
    }

    /// Takes that a child has been deleted, until its watch tells that it is gone.
    pub(crate) fn record_delete(&self, owner: &str, place: &Place, leaving: &DynamicObject) {
        let mut state = self.state();
        let children = state.by_owner.get_mut(owner);
        let mut children = children.into_iter().flatten();
        if let Some((_, child)) = children.find(|(there, _)| there == place)
            && Some(child.uid()) == leaving.metadata.uid.as_deref()
        {
            *child = Arc::new(child.compress_with_same_dictionary(leaving));
        }
    }

    /// What the children of a type have in common.
    pub(crate) fn dictionary(&self, type_: usize) -> Dictionary {
        let mut state = self.state();
        state.patterns.entry(type_).or_default().clone()
    }

    /// The UIDs of those owners that are not known.
    pub(crate) fn unknown_owners(&self, is_known: impl Fn(&str) -> bool) -> Vec<String> {
        let state = self.state();
        let unknown = state.by_owner.keys().filter(|uid| !is_known(uid));
        unknown.cloned().collect()
    }

    /// As the watch of a type tells it.
    #[cfg(test)]
    pub(crate) fn has_observed(
        &self,
        type_: usize,
        before: Option<DynamicObject>,
        after: Option<DynamicObject>,
    ) -> Vec<String> {
        let (before, after) = (before.map(Arc::new), after.map(Arc::new));
        let kept = after.as_deref();
        let kept =
            kept.map(|after| Arc::new(CompressedObject::compress(after, &self.dictionary(type_))));
        let change = UpdateEvent {
            before: before.as_ref(),
            after: after.as_ref(),
        };
        let seen = ObjectChange {
            change,
            stored: kept.as_ref(),
            is_new: true,
        };
        self.on_change(type_, &seen).into_iter().collect()
    }

    /// The children of an owner.
    pub(crate) fn children_of(&self, uid: &str) -> ChildMap {
        let kept = self.state().by_owner.get(uid).cloned();
        let kept = kept.unwrap_or_default().into_iter();
        kept.map(|(place, child)| (place, Arc::new(child.decompress())))
            .collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn get(
        &self,
        owner: &str,
        place: &Place,
        child: &DynamicObject,
    ) -> Option<Arc<CompressedObject>> {
        let mut children = self.by_owner.get(owner)?.iter();
        let (_, kept) =
            children.find(|(there, kept)| there == place && kept.is_version_of(child))?;
        Some(Arc::clone(kept))
    }

    /// Puts a child in its place, unless a later state of it is there. Says whether that very state was.
    fn put(&mut self, owner: &str, place: Place, child: Arc<CompressedObject>) -> bool {
        let children = self.by_owner.entry(owner.to_owned()).or_default();
        let Some((_, there)) = children.iter_mut().find(|(there, _)| *there == place) else {
            children.reserve_exact(1);
            children.push((place, child));
            return false;
        };
        let is_known = there.is_same_state_as(&child);
        if !there.is_later_than(&child) {
            *there = child;
        }
        is_known
    }

    /// Takes a child away, unless another one has come into its place.
    fn remove_same(&mut self, owner: &str, place: &Place, child: &DynamicObject) {
        let Some(children) = self.by_owner.get_mut(owner) else {
            return;
        };
        let uid = child.metadata.uid.as_deref();
        children.retain(|(there, kept)| there != place || Some(kept.uid()) != uid);
        if children.is_empty() {
            self.by_owner.remove(owner);
        }
    }
}

fn place(type_: usize, child: &DynamicObject) -> Place {
    let namespace = child.namespace().unwrap_or_default();
    (type_, namespace, child.name_any())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn child(uid: &str, version: &str, owner: &str) -> DynamicObject {
        let metadata = json!({
            "name": "c", "namespace": "n", "uid": uid, "resourceVersion": version,
            "labels": {"lockstep.dev/owner": owner},
        });
        serde_json::from_value(json!({"metadata": metadata})).expect("an object")
    }

    fn saw(
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
    fn what_was_written_is_not_taken_back_by_a_watch_that_lags() {
        let observed = ChildCache::default();
        let place = (0, "n".to_owned(), "c".to_owned());
        assert_eq!(saw(&observed, None, Some(child("1", "9", "a"))), ["a"]);
        observed.record_write("a", &place, &child("1", "11", "a"));
        let told = saw(
            &observed,
            Some(child("1", "9", "a")),
            Some(child("1", "10", "a")),
        );
        assert_eq!(told, ["a"]);
        assert_eq!(version(&observed, "a").as_deref(), Some("11"));
        // What has been written is no news when the watch brings it.
        let told = saw(
            &observed,
            Some(child("1", "10", "a")),
            Some(child("1", "11", "a")),
        );
        assert_eq!(told, <[&str; 0]>::default());
        saw(
            &observed,
            Some(child("1", "10", "a")),
            Some(child("1", "12", "a")),
        );
        assert_eq!(version(&observed, "a").as_deref(), Some("12"));
        // Deleted, and made again before the watch has told of it.
        observed.record_write("a", &place, &child("2", "15", "a"));
        saw(&observed, Some(child("1", "12", "a")), None);
        assert_eq!(version(&observed, "a").as_deref(), Some("15"));
        saw(&observed, Some(child("2", "15", "a")), None);
        assert_eq!(version(&observed, "a"), None);
        assert!(observed.state().by_owner.is_empty(), "nothing is kept");
        // Made and deleted again: the watch was faster than the answer.
        saw(&observed, None, Some(child("3", "17", "a")));
        saw(&observed, Some(child("3", "18", "a")), None);
        observed.record_write("a", &place, &child("3", "17", "a"));
        assert_eq!(version(&observed, "a"), None);
        // Made, and gone while the watch was interrupted.
        observed.record_write("a", &place, &child("4", "20", "a"));
        observed.initialize(0, &[]);
        assert_eq!(version(&observed, "a"), None);
    }

    #[test]
    fn a_child_that_is_being_made_is_no_news() {
        let observed = ChildCache::default();
        let place = (0, "n".to_owned(), "c".to_owned());
        let making = observed.expect_create("a", &place);
        assert!(saw(&observed, None, Some(child("1", "1", "a"))).is_empty());
        assert!(!making.has_missed(Some(&child("1", "1", "a"))));
        assert!(
            making.has_missed(Some(&child("1", "0", "a"))),
            "it came later"
        );
        assert!(making.has_missed(None), "nobody has told");
        assert_eq!(version(&observed, "a").as_deref(), Some("1"));
        let changed = saw(
            &observed,
            Some(child("1", "1", "a")),
            Some(child("1", "2", "a")),
        );
        assert_eq!(changed, ["a"], "by somebody else");
        drop(making);
        saw(&observed, Some(child("1", "2", "a")), None);
        let told = saw(&observed, None, Some(child("2", "3", "a")));
        assert_eq!(told, ["a"]);
    }

    #[test]
    fn what_is_kept_is_not_kept_a_second_time() {
        let observed = ChildCache::default();
        let place = (0, "n".to_owned(), "c".to_owned());
        observed.record_write("a", &place, &child("1", "11", "a"));
        let kept = observed.get(0, &child("1", "11", "a"));
        let kept = kept.expect("that very state");
        observed.record_write("a", &place, &child("1", "11", "a"));
        let again = observed.get(0, &child("1", "11", "a"));
        assert!(Arc::ptr_eq(&kept, &again.expect("that very state")));
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
    fn a_child_that_changes_hands_is_told_of_to_both() {
        let observed = ChildCache::default();
        saw(&observed, None, Some(child("1", "1", "a")));
        let told = saw(
            &observed,
            Some(child("1", "1", "a")),
            Some(child("1", "2", "b")),
        );
        assert_eq!(told, ["a", "b"]);
        assert_eq!(version(&observed, "a"), None);
        assert_eq!(version(&observed, "b").as_deref(), Some("2"));
    }
}

//! Bidirectional index of things and their terms.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use crate::cache::capacity::release_unused;

/// Things, and the terms under which each of them is found.
pub(crate) struct BidirectionalMap<K, T> {
    things: HashMap<T, BTreeSet<K>>,
    terms: HashMap<K, BTreeSet<T>>,
}

impl<K, T> Default for BidirectionalMap<K, T> {
    fn default() -> Self {
        Self {
            things: HashMap::new(),
            terms: HashMap::new(),
        }
    }
}

impl<K: Clone + Ord + Hash, T: Clone + Ord + Hash> BidirectionalMap<K, T> {
    /// Replaces the terms of a thing; an empty set removes it. Returns the terms that were added or removed.
    pub(crate) fn set(&mut self, thing: &K, terms: BTreeSet<T>) -> Vec<T> {
        let before = self.terms.remove(thing).unwrap_or_default();
        let changed: Vec<_> = before.symmetric_difference(&terms).cloned().collect();
        for term in before.difference(&terms) {
            if let Some(things) = self.things.get_mut(term) {
                things.remove(thing);
                if things.is_empty() {
                    self.things.remove(term);
                }
            }
        }
        for term in terms.difference(&before) {
            let things = self.things.entry(term.clone()).or_default();
            things.insert(thing.clone());
        }
        if terms.is_empty() {
            release_unused(&mut self.terms);
            release_unused(&mut self.things);
        } else {
            self.terms.insert(thing.clone(), terms);
        }
        changed
    }

    /// Returns the things under a term.
    pub(crate) fn get(&self, term: &T) -> impl Iterator<Item = &K> {
        self.things.get(term).into_iter().flatten()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.things.is_empty() && self.terms.is_empty()
    }
}

//! Set that counts its items.

use std::collections::HashMap;
use std::hash::Hash;

use crate::cache::capacity::release_unused;

/// Items of several owners: an item is in the set as long as one of them has it. To collect the items of all owners after each
/// change of one of them would take the square of their number.
pub(crate) struct CountedSet<T> {
    counts: HashMap<T, usize>,
}

impl<T> Default for CountedSet<T> {
    fn default() -> Self {
        Self {
            counts: HashMap::new(),
        }
    }
}

impl<T: Clone + Eq + Hash> CountedSet<T> {
    /// Replaces the items of one owner. Returns true if the set has changed.
    pub(crate) fn replace<'a>(
        &mut self,
        before: impl IntoIterator<Item = &'a T>,
        after: impl IntoIterator<Item = &'a T>,
    ) -> bool
    where
        T: 'a,
    {
        let mut is_changed = false;
        // First, so that an item that stays is never removed.
        for item in after {
            let count = self.counts.entry(item.clone()).or_default();
            is_changed |= *count == 0;
            *count += 1;
        }
        for item in before {
            let Some(count) = self.counts.get_mut(item) else {
                continue;
            };
            *count -= 1;
            if *count == 0 {
                self.counts.remove(item);
                is_changed = true;
            }
        }
        release_unused(&mut self.counts);
        is_changed
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = &T> {
        self.counts.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_stays_as_long_as_an_owner_has_it() {
        let mut set = CountedSet::default();
        assert!(set.replace([], [&"a", &"a", &"b"]));
        assert!(!set.replace([], [&"a"]), "of another owner");
        assert!(set.replace([&"a", &"a", &"b"], [&"a"]), "b is gone");
        assert!(!set.replace([&"a"], []));
        assert_eq!(set.items().collect::<Vec<_>>(), [&"a"]);
        assert!(set.replace([&"a"], []));
        assert_eq!(set.items().count(), 0);
    }
}

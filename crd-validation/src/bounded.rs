//! List with a maximum length, for errors: memory stays bounded while they are collected, however many there are.

use std::cell::Cell;
use std::cmp::Ordering;

use crate::identities::Identities;

/// Maximum number of errors that are reported for one object, and of its warnings and audited violations each. It limits the
/// output only: an error that is not shown denies like any other.
pub const MAX_REPORTED: usize = 100;

thread_local! {
    static MAX: Cell<usize> = const { Cell::new(MAX_REPORTED) };
}

/// Returns the maximum number of errors that are reported by validations on this thread: [`MAX_REPORTED`], except within
/// [`report_all`].
#[must_use]
pub fn max_reported() -> usize {
    MAX.get()
}

/// Runs a validation that reports all errors, for a program whose user has asked for them. Memory is not bounded.
pub fn report_all<T>(validate: impl FnOnce() -> T) -> T {
    /// Sets the maximum again, also after a panic.
    struct Restore(usize);

    impl Drop for Restore {
        fn drop(&mut self) {
            MAX.set(self.0);
        }
    }

    let _restore = Restore(MAX.replace(usize::MAX));
    validate()
}

/// Text in place of the errors beyond [`MAX_REPORTED`], and of those for which a message has no room.
pub const AND_MORE: &str = "and more, which are not shown";

/// Order in which items are reported. If there are too many, the first ones remain.
pub trait Reported {
    /// Compares the positions of two items.
    fn order(&self, other: &Self) -> Ordering;

    /// Returns true if the item reports that validation failed, rather than an error of the object.
    fn is_internal(&self) -> bool {
        false
    }

    /// Returns the identity under which the item may be ratcheted, if it is known.
    fn identity(&self) -> Option<u64> {
        None
    }
}

/// The first [`max_reported`] items of any number, in the order in which they are reported. Which ones remain does not
/// depend on the order in which they are added.
#[derive(Clone, Debug)]
pub struct Bounded<T> {
    max: usize,
    /// Up to twice the maximum. If items were left out, those before the maximum are sorted, and no item that was left out
    /// comes before the last of them.
    kept: Vec<T>,
    has_more: bool,
    /// If true, one of the items that were added is internal, even if it was left out.
    has_internal: bool,
    /// Identities of all items that were added, even of those that were left out.
    identities: Identities,
}

impl<T> Default for Bounded<T> {
    fn default() -> Self {
        Self {
            max: max_reported(),
            kept: Vec::new(),
            has_more: false,
            has_internal: false,
            identities: Identities::default(),
        }
    }
}

impl<T: Reported> Bounded<T> {
    /// Returns true if no item was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && !self.has_more
    }

    /// Returns true if more items were added than remain.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.has_more || self.kept.len() > self.max
    }

    /// Returns true if one of the items that were added reports that validation failed, even if it does not remain.
    #[must_use]
    pub fn has_internal(&self) -> bool {
        self.has_internal
    }

    /// Adds an item.
    pub fn push(&mut self, item: T) {
        self.has_internal |= item.is_internal();
        if let Some(identity) = item.identity() {
            self.identities.insert(identity);
        }
        self.keep(item);
    }

    /// Adds an item whose identity only the caller knows.
    pub fn push_identified(&mut self, item: T, identity: Option<u64>) {
        if let Some(identity) = identity {
            self.identities.insert(identity);
        }
        self.push(item);
    }

    fn keep(&mut self, item: T) {
        if self.has_more {
            let last = self.kept.get(self.max - 1);
            if last.is_some_and(|last| item.order(last) != Ordering::Less) {
                return;
            }
        }
        self.kept.push(item);
        if self.kept.len() == self.max.saturating_mul(2) {
            self.shrink();
        }
    }

    /// Records that there are further items, which are not shown.
    pub fn leave_out(&mut self) {
        self.has_more = true;
        self.shrink();
    }

    /// Adds the items of another list.
    pub fn append(&mut self, other: Self) {
        self.has_internal |= other.has_internal;
        self.identities.append(other.identities);
        for item in other.kept {
            self.keep(item);
        }
        if other.has_more {
            self.leave_out();
        }
    }

    /// Converts the items. The order of the new items must be that of the old ones.
    #[must_use]
    pub fn map<U>(self, convert: impl FnMut(T) -> U) -> Bounded<U> {
        Bounded {
            max: self.max,
            kept: self.kept.into_iter().map(convert).collect(),
            has_more: self.has_more,
            has_internal: self.has_internal,
            identities: self.identities,
        }
    }

    /// Returns the identities of all items that were added.
    #[must_use]
    pub fn take_identities(&mut self) -> Identities {
        std::mem::take(&mut self.identities)
    }

    /// Returns the sorted items, and whether there were more.
    #[must_use]
    pub fn into_sorted(mut self) -> (Vec<T>, bool) {
        self.shrink();
        (self.kept, self.has_more)
    }

    fn shrink(&mut self) {
        self.kept.sort_by(T::order);
        self.has_more |= self.kept.len() > self.max;
        self.kept.truncate(self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERNAL: usize = usize::MAX;

    impl Reported for usize {
        fn order(&self, other: &Self) -> Ordering {
            self.cmp(other)
        }

        fn is_internal(&self) -> bool {
            *self == INTERNAL
        }
    }

    #[test]
    fn all_items_remain_only_in_the_validations_that_report_all() {
        let kept = || {
            let mut list = Bounded::default();
            (0..1000).for_each(|item| list.push(item));
            let mut all = Bounded::default();
            all.append(list);
            all.into_sorted()
        };
        assert_eq!(kept().0.len(), MAX_REPORTED);
        assert_eq!(report_all(kept), ((0..1000).collect(), false));
        assert_eq!(kept().0.len(), MAX_REPORTED);
    }

    #[test]
    fn an_internal_item_is_known_even_if_it_is_left_out() {
        let mut list = Bounded::default();
        (0..1000).for_each(|item| list.push(item));
        assert!(!list.has_internal());
        list.push(INTERNAL);
        let mut all = Bounded::default();
        all.append(list.map(|item| item));
        assert!(all.has_internal());
        let (kept, has_more) = all.into_sorted();
        assert!(has_more && !kept.contains(&INTERNAL));
    }

    #[test]
    fn up_to_the_maximum_all_items_remain_and_of_more_the_first_ones_in_any_order_of_arrival() {
        for (count, has_more) in [
            (0, false),
            (MAX_REPORTED, false),
            (MAX_REPORTED + 1, true),
            (1000, true),
        ] {
            let expected: Vec<_> = (0..count.min(MAX_REPORTED)).collect();
            let mut rising = Bounded::default();
            let mut falling = Bounded::default();
            let mut scattered = Bounded::default();
            for item in 0..count {
                rising.push(item);
                falling.push(count - 1 - item);
                // 7 is coprime to all of these counts.
                scattered.push(item * 7 % count);
            }
            for list in [rising, falling, scattered] {
                assert!(list.kept.len() <= 2 * MAX_REPORTED);
                assert_eq!(list.is_empty(), count == 0);
                assert_eq!(list.into_sorted(), (expected.clone(), has_more), "{count}");
            }
        }
    }

    #[test]
    fn a_list_that_gets_the_items_of_another_one_knows_that_some_of_them_are_missing() {
        let mut parts: Vec<Bounded<usize>> = Vec::new();
        for start in [500, 0] {
            let mut part = Bounded::default();
            (start..start + 150).for_each(|item| part.push(item));
            parts.push(part);
        }
        let mut whole = Bounded::default();
        for part in parts {
            whole.append(part);
        }
        assert_eq!(whole.into_sorted(), ((0..MAX_REPORTED).collect(), true));
        let mut few = Bounded::default();
        few.push(1);
        few.leave_out();
        few.push(0);
        assert_eq!(few.into_sorted(), (vec![0, 1], true));
    }
}

//! Journal of one trial: calls, faults, reconciliations and changes by users, in order.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Entry of the journal.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Number of the process that caused it; none for users and faults of the environment.
    process: Option<usize>,
    /// Objects that it concerns, or owned objects with names that begin with theirs. Empty if it concerns all.
    objects: Vec<String>,
    text: String,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "process {process}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Journal of one trial.
#[derive(Default)]
pub(crate) struct Journal {
    entries: Mutex<Vec<Entry>>,
    activity: AtomicU64,
}

impl Journal {
    /// Adds an entry.
    pub(crate) fn add(&self, process: Option<usize>, objects: &[String], text: String) {
        self.activity.fetch_add(1, Ordering::SeqCst);
        let objects = objects.to_vec();
        self.entries().push(Entry {
            process,
            objects,
            text,
        });
    }

    /// Returns a number that grows with each entry.
    pub(crate) fn activity(&self) -> u64 {
        self.activity.load(Ordering::SeqCst)
    }

    /// Returns the last entries that concern an object, oldest first.
    pub(crate) fn last_of(&self, object: &str, count: usize) -> Vec<String> {
        let entries = self.entries();
        let concerned = |entry: &&Entry| {
            object.is_empty()
                || entry.objects.is_empty()
                || entry.objects.iter().any(|it| it.starts_with(object))
        };
        let mut last: Vec<_> = entries.iter().rev().filter(concerned).take(count).collect();
        last.reverse();
        last.into_iter().map(ToString::to_string).collect()
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entries_of_an_object_include_those_that_concern_all() {
        let journal = Journal::default();
        journal.add(None, &["a".to_owned()], "created".to_owned());
        journal.add(Some(0), &["b".to_owned()], "get".to_owned());
        journal.add(None, &[], "outage".to_owned());
        journal.add(Some(1), &["a".to_owned(), "b".to_owned()], "put".to_owned());
        assert_eq!(journal.last_of("a", 2), ["outage", "process 1: put"]);
        assert_eq!(journal.last_of("a", 9).len(), 3);
        assert_eq!(journal.activity(), 4);
    }
}

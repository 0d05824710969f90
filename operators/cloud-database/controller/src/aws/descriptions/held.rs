//! Descriptions that sweeps have returned, with the times at which their pages were requested.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use tokio::time::Instant;

/// Descriptions by the identifiers of their instances.
///
/// # Guarantees
///
/// A description is never older than the last write to its instance: a write removes it, and a page that was
/// requested before the write ended does not bring it back.
#[derive(Debug, Default)]
pub(crate) struct Held {
    found: HashMap<String, (Instant, Arc<DbInstance>)>,
    /// Times at which writes ended during the present sweep. Pages of later sweeps are requested after them.
    written: HashMap<String, Instant>,
}

impl Held {
    /// Returns the description of an instance if its page was not requested before a time.
    pub(crate) fn find(&self, id: &str, not_before: Option<Instant>) -> Option<Arc<DbInstance>> {
        let (requested, instance) = self.found.get(id)?;
        let is_recent = not_before.is_none_or(|not_before| *requested >= not_before);
        is_recent.then(|| instance.clone())
    }

    /// Adds the instances of a page.
    pub(crate) fn add(
        &mut self,
        requested: Instant,
        instances: impl IntoIterator<Item = DbInstance>,
    ) {
        for instance in instances {
            let Some(id) = instance.db_instance_identifier() else {
                continue;
            };
            let is_older = self.written.get(id).is_some_and(|end| requested <= *end);
            if !is_older {
                let id = id.to_owned();
                self.found.insert(id, (requested, Arc::new(instance)));
            }
        }
    }

    /// Removes the description of an instance that was written to.
    pub(crate) fn record_write(&mut self, id: &str, end: Instant, is_sweeping: bool) {
        self.found.remove(id);
        if is_sweeping {
            self.written.insert(id.to_owned(), end);
        }
    }

    /// Returns true if an instance was written to during the present sweep.
    pub(crate) fn is_written(&self, id: &str) -> bool {
        self.written.contains_key(id)
    }

    /// Forgets the writes during a sweep that has ended.
    pub(crate) fn forget_writes(&mut self) {
        self.written = HashMap::new();
    }

    /// Removes descriptions that no question accepts any more.
    pub(crate) fn expire(&mut self, now: Instant, max_age: Duration) {
        self.found
            .retain(|_, (requested, _)| now.saturating_duration_since(*requested) < max_age);
        self.found.shrink_to_fit();
    }

    #[cfg(test)]
    pub(crate) fn copy(&self) -> Vec<DbInstance> {
        let found = self.found.values();
        found.map(|(_, it)| DbInstance::clone(it)).collect()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.found.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn instance(status: &str) -> DbInstance {
        let builder = DbInstance::builder().db_instance_identifier("cdb-1");
        builder.db_instance_status(status).build()
    }

    fn status(held: &Held) -> Option<String> {
        let found = held.find("cdb-1", None)?;
        found.db_instance_status().map(String::from)
    }

    #[test]
    fn a_page_that_was_requested_before_a_write_ended_is_ignored_for_its_instance() {
        let mut held = Held::default();
        let start = Instant::now();
        held.add(start, [instance("old")]);
        held.record_write("cdb-1", start + SECOND, true);
        assert_eq!(status(&held), None);
        held.add(start + SECOND, [instance("old")]);
        assert_eq!(status(&held), None, "requested while it was written");
        held.add(start + SECOND * 2, [instance("new")]);
        assert_eq!(status(&held).as_deref(), Some("new"));
    }

    #[test]
    fn old_descriptions_are_not_found_and_expire() {
        let mut held = Held::default();
        let start = Instant::now();
        held.add(start, [instance("available")]);
        assert!(held.find("cdb-1", Some(start)).is_some());
        assert!(held.find("cdb-1", Some(start + SECOND)).is_none());
        held.expire(start + SECOND, SECOND * 2);
        assert_eq!(held.len(), 1);
        held.expire(start + SECOND * 2, SECOND * 2);
        assert_eq!(held.len(), 0);
    }
}

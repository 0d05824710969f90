//! State of the descriptions of many instances: what sweeps have returned, and whether a question needs another one.
//!
//! Only instances with the tags of this operator and cluster, and those that questions were about, are kept, and only for
//! as long as questions accept their descriptions.

pub(crate) mod demand;
pub(crate) mod held;
pub(crate) mod schedule;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use tokio::time::Instant;

use crate::aws::descriptions::demand::Demand;
use crate::aws::descriptions::held::Held;
use crate::aws::descriptions::schedule::{Progress, Schedule, Sweep};

/// Maximum number of records in a page of `DescribeDBInstances`.
pub(crate) const PAGE_SIZE: u16 = 100;

/// State that all questions of a process share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Descriptions(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    held: Held,
    demand: Demand,
    schedule: Schedule,
    /// Longest age that a question has accepted.
    longest_age: Duration,
    /// Identifiers of the instances that questions were about.
    asked: HashSet<String>,
}

/// Decision about a question.
pub(crate) enum Step {
    Answer(Arc<DbInstance>),
    Wait(tokio::sync::watch::Receiver<Progress>),
    Sweep(Sweep),
    Call,
}

/// Write to an instance. When it ends, in any way, older descriptions of the instance are discarded.
#[must_use]
pub(crate) struct Write<'a> {
    descriptions: &'a Descriptions,
    id: &'a str,
}

impl Drop for Write<'_> {
    fn drop(&mut self) {
        let mut state = self.descriptions.state();
        let is_sweeping = state.schedule.running().is_some();
        state
            .held
            .record_write(self.id, Instant::now(), is_sweeping);
    }
}

impl State {
    /// Number of questions for which a sweep costs less than single calls: those of a page, or twice the number of
    /// pages if the region has more instances than that.
    fn threshold(&self) -> usize {
        usize::from(PAGE_SIZE).max(2 * self.schedule.pages)
    }

    /// Decides how a question is answered.
    fn ask(&mut self, id: &str, max_age: Duration, now: Instant) -> Step {
        self.longest_age = self.longest_age.max(max_age);
        if !self.asked.contains(id) {
            self.asked.insert(id.to_owned());
        }
        let threshold = self.threshold();
        self.demand.record(now, max_age, threshold);
        if let Some(found) = self.held.find(id, now.checked_sub(max_age)) {
            return Step::Answer(found);
        }
        if let Some(running) = self.schedule.running() {
            // The page with the instance may have been requested before the write.
            let is_written = self.held.is_written(id);
            return if is_written {
                Step::Call
            } else {
                Step::Wait(running)
            };
        }
        if let Some(sweep) = self.schedule.resume(now, max_age) {
            return Step::Sweep(sweep);
        }
        if !self.demand.reaches(now, max_age, threshold) {
            return Step::Call;
        }
        let sweep = self.schedule.begin(now, max_age);
        sweep.map_or(Step::Call, Step::Sweep)
    }
}

impl Descriptions {
    /// Decides how a question is answered that accepts descriptions that were requested at most `max_age` ago.
    pub(crate) fn ask(&self, id: &str, max_age: Duration, now: Instant) -> Step {
        self.state().ask(id, max_age, now)
    }

    /// Returns the description of an instance if its page was not requested before a time.
    pub(crate) fn find(&self, id: &str, not_before: Option<Instant>) -> Option<Arc<DbInstance>> {
        self.state().held.find(id, not_before)
    }

    /// Returns true if a question was about an instance: it may have no tags of this operator, if it is only observed.
    pub(crate) fn is_asked(&self, id: &str) -> bool {
        self.state().asked.contains(id)
    }

    /// Records that no more questions are about an instance.
    pub(crate) fn forget(&self, id: &str) {
        self.state().asked.remove(id);
    }

    /// Adds the instances of a page.
    pub(crate) fn add(&self, requested: Instant, instances: impl Iterator<Item = DbInstance>) {
        self.state().held.add(requested, instances);
    }

    /// Records the end of a sweep: the number of its pages, or the marker of the page at which it has failed. Returns the
    /// time after which no question accepts its descriptions.
    pub(crate) fn end(&self, end: Result<Option<usize>, Option<String>>) -> Duration {
        let mut state = self.state();
        match end {
            Ok(pages) => state.schedule.complete(pages),
            Err(marker) => state.schedule.fail(marker, Instant::now()),
        }
        state.held.forget_writes();
        state.longest_age
    }

    /// Removes descriptions of a certain age when they have reached it, unless the process has dropped them before.
    pub(crate) fn expire_later(&self, age: Duration) -> impl Future<Output = ()> + Send + 'static {
        let state = Arc::downgrade(&self.0);
        async move {
            tokio::time::sleep(age).await;
            if let Some(state) = state.upgrade() {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                state.held.expire(Instant::now(), age);
            }
        }
    }

    /// Announces a write to an instance. The result is dropped when the call has ended.
    pub(crate) fn write<'a>(&'a self, id: &'a str) -> Write<'a> {
        Write {
            descriptions: self,
            id,
        }
    }

    /// Returns copies of the descriptions of the latest sweeps.
    #[cfg(test)]
    pub(crate) fn copy_held(&self) -> Vec<DbInstance> {
        self.state().held.copy()
    }

    /// Returns the number of descriptions.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.state().held.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

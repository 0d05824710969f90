//! Descriptions of many instances from few calls: a sweep lists all instances of the region in pages of a hundred, and
//! answers all questions about them.
//!
//! question → description that is recent enough? → running sweep? → enough questions for a sweep? → single call
//!
//! An instance that a sweep does not list is never taken for absent: it may have been created in the meantime, or moved
//! to a page that was already received. A single call confirms it.
//!
//! Only instances with the tags of this operator and cluster are kept, and only for as long as questions accept their
//! descriptions.

pub(crate) mod demand;
pub(crate) mod held;
pub(crate) mod schedule;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use tokio::time::Instant;

use crate::call_error::CallError;
use crate::descriptions::demand::Demand;
use crate::descriptions::held::Held;
use crate::descriptions::schedule::{Progress, Schedule, Sweep};
use crate::rds_client::{PAGE_SIZE, RdsClient};
use crate::tags;

/// Answer to a question about an instance.
#[derive(Clone, Debug)]
pub(crate) enum Description {
    /// From a page of a sweep. It can be as old as the question accepts, and is younger than the last write of this
    /// process to the instance.
    Swept(Arc<DbInstance>),
    /// From a call for this instance after the question. `None` if the instance does not exist.
    Single(Option<DbInstance>),
}

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
}

/// Decision about a question.
enum Step {
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
        usize::try_from(PAGE_SIZE).map_or(usize::MAX, |page| page.max(2 * self.schedule.pages))
    }

    /// Decides how a question is answered.
    fn ask(&mut self, id: &str, max_age: Duration, now: Instant) -> Step {
        self.longest_age = self.longest_age.max(max_age);
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RdsClient {
    /// Returns a description of an instance.
    ///
    /// # Guarantees
    ///
    /// - The description was requested at most `max_age` before this call, and after the last write of this process to
    ///   the instance has ended.
    /// - An instance counts as absent only if a call for this instance alone, after this call, has not found it.
    ///
    /// # Errors
    ///
    /// The error of the call or of the page of the sweep. A sweep that has failed continues at that page with the next
    /// question.
    pub(crate) async fn recent(
        &self,
        id: &str,
        max_age: Duration,
    ) -> Result<Description, CallError> {
        let asked = Instant::now();
        let step = self.descriptions.state().ask(id, max_age, asked);
        let mut progress = match step {
            Step::Answer(instance) => return Ok(Description::Swept(instance)),
            Step::Call => return Ok(Description::Single(self.describe(id).await?)),
            Step::Wait(progress) => progress,
            Step::Sweep(sweep) => {
                let progress = sweep.progress.subscribe();
                // It serves other questions, and does not end with this one.
                tokio::spawn(self.clone().sweep(sweep));
                progress
            }
        };
        loop {
            let state = progress.borrow_and_update().clone();
            let not_before = asked.checked_sub(max_age);
            let found = self.descriptions.state().held.find(id, not_before);
            if let Some(instance) = found {
                return Ok(Description::Swept(instance));
            }
            match state {
                Progress::Failed(error) => return Err(error),
                Progress::Running if progress.changed().await.is_ok() => {}
                Progress::Running | Progress::Complete => break,
            }
        }
        Ok(Description::Single(self.describe(id).await?))
    }

    /// Lists all instances page by page.
    async fn sweep(self, sweep: Sweep) {
        let Sweep {
            mut marker,
            progress,
        } = sweep;
        let mut pages = marker.is_none().then_some(0);
        let mut may_restart = true;
        let end = loop {
            let page = self.page(marker.clone()).await;
            let mut state = self.descriptions.state();
            match page {
                Ok(page) => {
                    let cluster_name = self.cluster_name();
                    let instances = page.instances.into_iter();
                    let ours = instances.filter(|it| tags::may_be_ours(it, cluster_name));
                    state.held.add(page.requested, ours);
                    pages = pages.map(|pages| pages + 1);
                    marker = page.marker;
                    if marker.is_none() {
                        if let Some(pages) = pages {
                            state.schedule.complete(pages);
                        }
                        break Progress::Complete;
                    }
                    progress.send_replace(Progress::Running);
                }
                // A marker is valid for a limited time.
                Err(error) if is_marker_rejected(&error, marker.as_deref()) && may_restart => {
                    may_restart = false;
                    marker = None;
                    pages = Some(0);
                }
                Err(error) => {
                    state.schedule.fail(marker, Instant::now());
                    break Progress::Failed(error);
                }
            }
        };
        let longest_age = {
            let mut state = self.descriptions.state();
            state.held.forget_writes();
            state.longest_age
        };
        progress.send_replace(end);
        drop(progress);
        let descriptions = Arc::downgrade(&self.descriptions.0);
        drop(self);
        tokio::time::sleep(longest_age).await;
        if let Some(state) = descriptions.upgrade() {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.held.expire(Instant::now(), longest_age);
        }
    }
}

/// Returns true if RDS may have rejected a page because of its marker.
fn is_marker_rejected(error: &CallError, marker: Option<&str>) -> bool {
    marker.is_some() && error.is("InvalidParameterValue")
}

#[cfg(test)]
pub(crate) mod tests;

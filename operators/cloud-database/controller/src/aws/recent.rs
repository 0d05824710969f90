//! Descriptions of many instances from few calls: a sweep lists all instances of the region in pages of a hundred, and
//! answers all questions about them.
//!
//! question → description that is recent enough? → running sweep? → enough questions for a sweep? → single call
//!
//! An instance that a sweep does not list is never taken for absent: it may have been created in the meantime, or moved
//! to a page that was already received. A single call confirms it.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use tokio::time::Instant;

use crate::aws::call_error::CallError;
use crate::aws::descriptions::Step;
use crate::aws::descriptions::schedule::{Progress, Sweep};
use crate::aws::rds_client::RdsClient;
use crate::instance::tags;

/// Answer to a question about an instance.
#[derive(Clone, Debug)]
pub(crate) enum Description {
    /// From a page of a sweep. It can be as old as the question accepts, and is younger than the last write of this
    /// process to the instance.
    Swept(Arc<DbInstance>),
    /// From a call for this instance after the question. `None` if the instance does not exist.
    Single(Option<Box<DbInstance>>),
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
        let step = self.descriptions.ask(id, max_age, asked);
        let mut progress = match step {
            Step::Answer(instance) => return Ok(Description::Swept(instance)),
            Step::Call => return Ok(Description::Single(self.describe(id).await?.map(Box::new))),
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
            let found = self.descriptions.find(id, not_before);
            if let Some(instance) = found {
                return Ok(Description::Swept(instance));
            }
            match state {
                Progress::Failed(error) => return Err(error),
                Progress::Running if progress.changed().await.is_ok() => {}
                Progress::Running | Progress::Complete => break,
            }
        }
        Ok(Description::Single(self.describe(id).await?.map(Box::new)))
    }

    /// Lists all instances page by page.
    async fn sweep(self, sweep: Sweep) {
        let Sweep {
            mut marker,
            progress,
        } = sweep;
        // The number of pages is known only if all of them are received here.
        let mut pages = marker.is_none().then_some(0);
        let mut may_restart = true;
        let (end, reported) = loop {
            match self.page(marker.clone()).await {
                Ok(page) => {
                    let cluster_name = self.cluster_name();
                    let instances = page.instances.into_iter();
                    let is_asked = |it: &DbInstance| {
                        let id = it.db_instance_identifier();
                        id.is_some_and(|id| self.descriptions.is_asked(id))
                    };
                    let ours =
                        instances.filter(|it| tags::may_be_ours(it, cluster_name) || is_asked(it));
                    self.descriptions
                        .add(page.requested, ours.collect::<Vec<_>>().into_iter());
                    pages = pages.map(|pages| pages + 1);
                    marker = page.marker;
                    if marker.is_none() {
                        break (Ok(pages), Progress::Complete);
                    }
                    progress.send_replace(Progress::Running);
                }
                // A marker is valid for a limited time.
                Err(error) if is_marker_rejected(&error, marker.as_deref()) && may_restart => {
                    may_restart = false;
                    marker = None;
                    pages = Some(0);
                }
                Err(error) => break (Err(marker), Progress::Failed(error)),
            }
        };
        let age = self.descriptions.end(end);
        progress.send_replace(reported);
        drop(progress);
        let expire = self.descriptions.expire_later(age);
        drop(self);
        expire.await;
    }
}

/// Returns true if RDS may have rejected a page because of its marker.
fn is_marker_rejected(error: &CallError, marker: Option<&str>) -> bool {
    marker.is_some() && error.is("InvalidParameterValue")
}

#[cfg(test)]
pub(crate) mod tests;

//! Schedule of the sweeps: the running one, the time of the last one, and the page at which it failed.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::aws::call_error::CallError;

/// Progress of a sweep, for those that wait for it.
#[derive(Clone, Debug)]
pub(crate) enum Progress {
    /// More pages follow.
    Running,
    /// All pages were received.
    Complete,
    /// A page could not be received.
    Failed(CallError),
}

/// Sweep that is about to begin, or to continue.
#[derive(Debug)]
pub(crate) struct Sweep {
    /// Marker of the next page. The first page has none.
    pub(crate) marker: Option<String>,
    pub(crate) progress: watch::Sender<Progress>,
}

/// Page at which a sweep has failed.
#[derive(Debug)]
struct Failure {
    marker: Option<String>,
    at: Instant,
}

/// Schedule of the sweeps.
///
/// # Guarantees
///
/// At most one sweep runs. Another one begins only when the age that answers can have has passed since the last one
/// began, so that instances which sweeps do not list lead to no further sweep. A sweep that has failed continues at the
/// page that failed.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    running: Option<watch::Receiver<Progress>>,
    last_began: Option<Instant>,
    failure: Option<Failure>,
    /// Number of pages of the last complete sweep.
    pub(crate) pages: usize,
}

impl Schedule {
    /// Returns the progress of the running sweep. A sweep whose task has ended in any way does not run.
    pub(crate) fn running(&self) -> Option<watch::Receiver<Progress>> {
        let running = self.running.as_ref();
        running.filter(|it| it.has_changed().is_ok()).cloned()
    }

    /// Returns the sweep to continue, if one has failed within the last `max_age`.
    pub(crate) fn resume(&mut self, now: Instant, max_age: Duration) -> Option<Sweep> {
        let is_recent = |failure: &mut Failure| now.duration_since(failure.at) < max_age;
        let failure = self.failure.take_if(is_recent)?;
        Some(self.start(failure.marker))
    }

    /// Returns a new sweep, unless one has begun within the last `max_age`.
    pub(crate) fn begin(&mut self, now: Instant, max_age: Duration) -> Option<Sweep> {
        let last = self.last_began;
        if last.is_some_and(|last| now.saturating_duration_since(last) < max_age) {
            return None;
        }
        self.last_began = Some(now);
        self.failure = None;
        Some(self.start(None))
    }

    /// Records that the running sweep has received the last page, and the number of all pages if it is known.
    pub(crate) fn complete(&mut self, pages: Option<usize>) {
        self.pages = pages.unwrap_or(self.pages);
    }

    /// Records the page at which the running sweep has failed.
    pub(crate) fn fail(&mut self, marker: Option<String>, now: Instant) {
        self.failure = Some(Failure { marker, at: now });
    }

    fn start(&mut self, marker: Option<String>) -> Sweep {
        let (progress, running) = watch::channel(Progress::Running);
        self.running = Some(running);
        Sweep { marker, progress }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_sweep_begins_only_after_the_age_and_a_failed_one_continues_until_then() {
        let mut schedule = Schedule::default();
        let start = Instant::now();
        let age = SECOND * 10;
        let sweep = schedule.begin(start, age).expect("the first sweep");
        assert!(schedule.running().is_some());
        schedule.fail(Some("page-7".to_owned()), start + SECOND);
        drop(sweep);
        assert!(schedule.running().is_none());
        assert!(schedule.begin(start + SECOND * 2, age).is_none());
        let sweep = schedule.resume(start + SECOND * 2, age);
        let sweep = sweep.expect("the failed sweep");
        assert_eq!(sweep.marker.as_deref(), Some("page-7"));
        assert!(schedule.resume(start + SECOND * 3, age).is_none(), "once");
        schedule.fail(sweep.marker, start + SECOND * 4);
        assert!(schedule.resume(start + SECOND * 14, age).is_none(), "old");
        let sweep = schedule.begin(start + SECOND * 14, age);
        assert_eq!(sweep.expect("a new sweep").marker, None);
    }
}

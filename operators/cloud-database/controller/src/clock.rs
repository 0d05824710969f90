//! Time, as the reconciliation of instances reads it. In the exploration of all interleavings, it passes only when a step says
//! so.

use std::time::Instant;

use k8s_openapi::jiff::Timestamp;

/// Returns the present time.
pub(crate) fn now() -> Timestamp {
    #[cfg(test)]
    if let Some(time) = virtual_time::get() {
        return time.timestamp;
    }
    Timestamp::now()
}

/// Returns the present time of a clock that never goes back.
pub(crate) fn instant() -> Instant {
    #[cfg(test)]
    if let Some(time) = virtual_time::get() {
        return time.instant;
    }
    Instant::now()
}

/// Returns the present time in the form of the status.
pub(crate) fn text() -> String {
    now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
pub(crate) mod virtual_time {
    use std::cell::Cell;
    use std::time::{Duration, Instant};

    use k8s_openapi::jiff::Timestamp;

    /// Time of a thread.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Time {
        pub(crate) timestamp: Timestamp,
        pub(crate) instant: Instant,
    }

    impl Time {
        /// Returns a later time.
        pub(crate) fn after(self, duration: Duration) -> Self {
            Self {
                timestamp: self.timestamp + duration,
                instant: self.instant + duration,
            }
        }
    }

    thread_local! {
        static TIME: Cell<Option<Time>> = const { Cell::new(None) };
    }

    pub(crate) fn get() -> Option<Time> {
        TIME.get()
    }

    /// Stops the time of this thread.
    pub(crate) fn set(time: Time) {
        TIME.set(Some(time));
    }
}

//! Configuration of a controller.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::queue::backoff;

/// Concurrency, debounce time and back-off of a controller.
///
/// ```
/// use std::time::Duration;
///
/// use lockstep_controller::Config;
///
/// let config = Config {
///     debounce: Duration::from_millis(200),
///     max_retry_delay: Duration::from_mins(10),
///     ..Config::default()
/// };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum number of concurrent reconciliations. One object is never reconciled concurrently with itself.
    pub max_concurrent_reconciles: NonZeroUsize,
    /// Time that a change waits for more changes of the same object, so that one reconciliation handles all of
    /// them.
    pub debounce: Duration,
    /// Delay before the first retry of a reconciliation that has failed. Each further failure doubles the delay.
    pub min_retry_delay: Duration,
    /// Longest delay before a retry. While an object is being deleted, it is never more than ten minutes.
    pub max_retry_delay: Duration,
}

impl Default for Config {
    /// Returns a concurrency of eight, since a reconciliation mostly waits for other systems, and no debounce,
    /// since the user who changes an object waits for the result. The back-off begins with a second and ends with six hours.
    fn default() -> Self {
        Self {
            max_concurrent_reconciles: NonZeroUsize::new(8).expect("8 is not zero"),
            debounce: Duration::ZERO,
            min_retry_delay: backoff::FIRST,
            max_retry_delay: backoff::LONGEST,
        }
    }
}

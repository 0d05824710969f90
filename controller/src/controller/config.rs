//! Configuration of a controller.

use std::num::NonZeroUsize;
use std::time::Duration;

/// Concurrency and debounce time of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum number of concurrent reconciliations. One object is never reconciled concurrently with itself.
    pub max_concurrent_reconciles: NonZeroUsize,
    /// Time that a change waits for more changes of the same object, so that one reconciliation handles all of
    /// them.
    pub debounce: Duration,
}

impl Default for Config {
    /// Returns a concurrency of eight, since a reconciliation mostly waits for other systems, and no debounce,
    /// since the user who changes an object waits for the result.
    fn default() -> Self {
        Self {
            max_concurrent_reconciles: NonZeroUsize::new(8).expect("8 is not zero"),
            debounce: Duration::ZERO,
        }
    }
}

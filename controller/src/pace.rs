//! How fast a loop works.

use std::num::NonZeroUsize;
use std::time::Duration;

/// How many objects a loop looks at at once, and how soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many objects at once. One object is never looked at twice at a time.
    pub max_concurrent_reconciles: NonZeroUsize,
    /// How long a change waits for others of the same object, so that one round answers all of them.
    pub debounce: Duration,
}

impl Default for Config {
    /// Eight at once: a round mostly waits for somebody's answer. At once: who changes an object waits for it.
    fn default() -> Self {
        Self {
            max_concurrent_reconciles: NonZeroUsize::new(8).expect("it is not zero"),
            debounce: Duration::ZERO,
        }
    }
}

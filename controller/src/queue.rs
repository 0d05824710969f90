//! The work queue, back-off and rate limits.

pub(crate) mod backoff;
pub(crate) mod change_limits;
pub(crate) mod current_namespace;
pub(crate) mod priority_queue;
pub(crate) mod rate_limiter;
pub(crate) mod ready_keys;

pub use crate::queue::rate_limiter::{RateLimited, RateLimiter};

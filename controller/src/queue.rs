//! The work queue, back-off and rate limits.

pub(crate) mod backoff;
pub(crate) mod priority_queue;
pub(crate) mod rate_limiter;

pub use crate::queue::rate_limiter::{RateLimited, RateLimiter};

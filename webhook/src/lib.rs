//! The gate: an HTTPS admission server for any registered ruleset.
//!
//! One way through: bytes → review → candidate → verdict → response. [`Gate`] holds the rulesets
//! and answers; [`serve`] speaks TLS around it with the keys that [`ServingKeys`] keeps fresh.

mod gate;
mod keys;
mod metrics;
mod refusal;
mod response;
mod review;
mod server;

pub use gate::{DEFAULT_BODY_LIMIT_BYTES, Gate};
pub use keys::{KeysError, ServingKeys};
pub use metrics::Metrics;
pub use server::{ServeError, serve};

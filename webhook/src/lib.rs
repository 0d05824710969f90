//! Admission webhook for any registered ruleset.
//!
//! Data flow: bytes → `AdmissionReview` → validation request → validation result → response.
//! [`Webhook`] holds the rulesets and answers requests. [`http_server::Server`] serves it over TLS.

mod admission;
mod body;
mod concurrency_limit;
mod conversion;
mod limits;
mod metrics;
mod middleware;
mod webhook;

pub use crate::admission::crd_status::CrdStatusCache;
pub use crate::webhook::Webhook;
pub use limits::Limits;
pub use metrics::Metrics;

//! Admission webhook for any registered ruleset. The concepts, in reading order:
//!
//! # Webhook
//!
//! A [`Webhook`] holds the rulesets, and its [`Router`](axum::Router) answers the requests of API servers.
//! [`lockstep_http_server::Server`] serves it over TLS.
//!
//! # Flow of a request
//!
//! ```text
//! trace span → metrics → deadline → body → concurrency limit → panic isolation → decode → validate → respond
//! ```
//!
//! The middleware comes first. Then a request goes one way: its bytes are decoded as an `AdmissionReview`, its object
//! is validated, and the validation result becomes the response. A `ConversionReview` goes the same way.
//!
//! # Checks by another process
//!
//! [`RemoteChecks`] are asked about an object that the rules accept, if the policy demands it. They take time and may come to
//! no result. Then the result of the rules counts, and a warning says so.
//!
//! # Limits
//!
//! [`Limits`] bound the time, size and number of requests, and the memory that all of them use. A request beyond a
//! limit is rejected with a `Status`, never allowed. API servers retry those that are rejected with 429.
//!
//! # Metrics
//!
//! [`Metrics`] are the Prometheus metrics of requests, under the names of controller-runtime where it has one.

mod admission;
mod body;
mod concurrency_limit;
mod conversion;
mod limits;
mod metrics;
mod middleware;
mod off_the_runtime;
mod webhook;

pub use crate::admission::check::{
    AdmissionCheckRequest, AdmissionCheckResult, Finding, RemoteChecks,
};
pub use crate::webhook::Webhook;
pub use limits::Limits;
pub use metrics::Metrics;
pub use off_the_runtime::off_the_runtime;

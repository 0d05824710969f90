//! HTTPS admission webhook for any registered ruleset.
//!
//! Data flow: bytes → `AdmissionReview` → validation request → validation result → response.
//! [`Webhook`] holds the rulesets and answers requests. [`Server`] serves it over TLS with the
//! certificate that [`CertWatcher`] reloads when it changes.

mod admission;
mod arrival;
mod body;
mod connections;
mod conversion;
mod keys;
mod limits;
mod metrics;
mod server;
mod tls;
mod webhook;

pub use crate::admission::crd_status::CrdStatusCache;
pub use crate::webhook::Webhook;
pub use keys::{CertError, CertWatcher};
pub use limits::Limits;
pub use metrics::Metrics;
pub use server::Server;
pub use tls::ServerTls;

//! HTTPS admission webhook for any registered ruleset.
//!
//! Data flow: bytes → `AdmissionReview` → validation request → validation result → response.
//! [`Webhook`] holds the rulesets and answers requests. [`Server`] serves it over TLS with the
//! certificate that [`CertWatcher`] reloads when it changes.

mod arrival;
mod bench;
mod body;
mod connections;
mod conversion;
mod crds;
mod gate;
mod keys;
mod limits;
mod metrics;
mod refusal;
mod response;
mod review;
mod server;
mod tls;

pub use crds::CrdStatusCache;
pub use gate::Webhook;
pub use keys::{CertError, CertWatcher};
pub use limits::Limits;
pub use metrics::Metrics;
pub use server::Server;
pub use tls::ServerTls;

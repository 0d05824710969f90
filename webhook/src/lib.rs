//! The gate: an HTTPS admission server for any registered ruleset.
//!
//! One way through: bytes → review → candidate → verdict → response. [`Gate`] holds the rulesets
//! and answers; [`Server`] speaks TLS around it with the keys that [`ServingKeys`] keeps fresh.

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

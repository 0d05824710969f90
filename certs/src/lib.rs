//! Certificates of the webhook: a CA, a serving certificate, their rotation, and CA injection into every
//! configuration that refers to the webhook.
//!
//! [`CertificateManager`] runs next to the webhook, in the process that has cluster credentials. It is independent of the
//! kinds that are validated: it gets only names.

mod announce;
mod authority;
mod bundle;
mod cluster;
mod files;
mod keys;
mod manager;
mod metrics;
mod own;
mod plan;
mod provided;
mod replicas;
mod secret;
#[cfg(test)]
mod simulation;

pub use authority::{AuthorityError, CertKeyPair, CertificateAuthority};
pub use bundle::{InjectTarget, InjectTargetKind};
pub use manager::{CertError, CertificateManager, CertificateSource};
pub use metrics::Metrics;
pub use plan::RotationPolicy;
pub use replicas::ReplicaProbe;

//! Certificates of the webhook: a CA, a serving certificate, their rotation, and CA injection into every
//! configuration that refers to the webhook.
//!
//! [`CertificateManager`] runs next to the webhook, in the process that has cluster credentials. It is independent of
//! the kinds that are validated: it gets only names.
//!
//! [`CertKeyPair::self_signed`] is for other servers, whose only client trusts exactly one certificate.

mod api;
mod ca;
mod error;
mod events;
mod inject;
mod manager;
mod metrics;
mod pinned;
mod replica_probe;
#[cfg(test)]
mod simulation;
mod source;
mod store;

pub use crate::ca::authority::{AuthorityError, CertKeyPair, CertificateAuthority};
pub use crate::ca::rotation::RotationPolicy;
pub use crate::inject::target::{InjectTarget, InjectTargetKind};
pub use crate::inject::webhook_service::WebhookService;
pub use crate::replica_probe::ReplicaProbe;
pub use error::CertError;
pub use manager::{CertificateManager, CertificateSource};
pub use metrics::Metrics;

//! The gate's keys: a CA, a serving certificate, and the CA in every configuration that leads to the gate.
//!
//! [`Keeper`] runs beside the gate, in the process that has cluster credentials. It knows nothing of
//! kinds: what it is given are names.

mod announce;
mod authority;
mod bundle;
mod cluster;
mod files;
mod keeper;
mod keys;
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
pub use keeper::{CertError, CertificateManager, CertificateSource};
pub use metrics::Metrics;
pub use plan::RotationPolicy;
pub use replicas::ReplicaProbe;

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

pub use authority::{AuthorityError, Ca, Pair};
pub use bundle::{Target, TargetKind};
pub use keeper::{Keeper, KeeperError, Source};
pub use metrics::Metrics;
pub use plan::Plan;
pub use replicas::Replicas;

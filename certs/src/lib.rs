//! The gate's keys: a CA, a serving certificate, and the CA in every webhook configuration.
//!
//! [`Keeper`] runs beside the gate, in the process that has cluster credentials. It knows nothing of
//! kinds: what it is given are names.

mod authority;
mod bundle;
mod files;
mod keeper;
mod secret;

pub use authority::{AuthorityError, KeyMaterial};
pub use bundle::{Target, TargetKind};
pub use keeper::{Keeper, KeeperError};

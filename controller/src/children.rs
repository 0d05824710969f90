//! Owned objects (children) that an operator creates for an object of its kind.
//!
//! The desired children are compared with the cached ones, and only differences are written. The managed fields of a
//! child show which of its fields are ours.

mod apply;
mod changes;
mod client;
mod desired;
mod health;
pub(crate) mod key;
mod managed_fields;
pub(crate) mod orphans;
mod owned_type;
pub(crate) mod owner;
mod take_over;

pub use crate::api::request::Children;
pub(crate) use crate::cache::write_through::children::{ChildCache, ChildMap};
pub(crate) use crate::children::changes::AppliedChanges;
pub(crate) use crate::children::client::ChildWriter;
pub(crate) use crate::children::health::pending_reason;
pub(crate) use crate::children::owned_type::NamespacesOf;
pub use crate::children::owned_type::{OwnedType, UpdateStrategy};
pub(crate) use owner::{Owner, controller_of};

/// Label by which a controller finds its children.
pub(crate) const CONTROLLER_LABEL: &str = "lockstep.dev/controller";

/// Label of a child with the UID of its owner.
pub const OWNER_LABEL: &str = "lockstep.dev/owner-uid";

/// Annotation with a fingerprint of what was last applied.
const APPLIED_ANNOTATION: &str = "lockstep.dev/last-applied-hash";

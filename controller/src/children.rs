//! Owned objects (children) that an operator creates for an object of its kind.
//!
//! The desired children (`desired`) are compared with the cached ones (`observed`), and only differences are
//! written (`settle`, `write`). The managed fields of a child show which of its fields are ours (`owned_fields`).

mod child_type;
mod desired;
mod journal;
mod observed;
mod owned_fields;
mod owner;
mod settle;
mod standing;
mod write;

pub use child_type::{OwnedType, UpdateStrategy};
pub(crate) use journal::AppliedChanges;
pub(crate) use observed::{ChildCache, ChildMap, Place};
pub(crate) use owned_fields::is_our_entry;
pub(crate) use owner::{Owner, controller_of};
pub(crate) use standing::pending_reason;
pub(crate) use write::ChildWriter;

/// Field manager of the children.
pub(crate) const FIELD_MANAGER: &str = "lockstep";

/// Label by which a controller finds its children.
pub(crate) const CONTROLLER_LABEL: &str = "lockstep.dev/controller";

/// Label with the UID of the owner.
pub(crate) const OWNER_LABEL: &str = "lockstep.dev/owner-uid";

/// Annotation with a fingerprint of what was last applied.
const APPLIED_ANNOTATION: &str = "lockstep.dev/last-applied-hash";

//! The objects that an operator makes for an object of its kind: its children.
//!
//! What they are to be (`desired`) is compared with what they are (`observed`), and only what differs is
//! written (`settle`, `write`). Whose a field is, the API server knows (`owned_fields`).

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

/// Who has written the fields of a child.
pub(crate) const FIELD_MANAGER: &str = "lockstep";

/// The label by which a loop finds its children.
pub(crate) const CONTROLLER_LABEL: &str = "lockstep.dev/controller";

/// The label that tells whose child it is, by UID.
pub(crate) const OWNER_LABEL: &str = "lockstep.dev/owner";

/// The annotation that tells what has been written, by a fingerprint.
const APPLIED_ANNOTATION: &str = "lockstep.dev/applied";

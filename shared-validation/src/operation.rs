//! Operation on an object.

/// Operation on the object, as in an `AdmissionRequest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The object is created.
    Create,
    /// The object replaces an existing object.
    Update,
}

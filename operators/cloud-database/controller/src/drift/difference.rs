//! Difference between a value of the spec and that of an instance.

/// Returns true if a value is to be requested: it is neither in effect nor accepted in the way that the spec demands, or another value has
/// been accepted.
pub(super) fn differs<T: Copy + PartialEq>(
    wanted: Option<T>,
    actual: Option<T>,
    pending: Option<T>,
    waits: bool,
) -> bool {
    match pending {
        Some(_) if pending == wanted => !waits,
        Some(_) => true,
        None => actual != wanted,
    }
}

//! Error or warning about something that RDS does not offer.

use serde_json::Value;

/// Error or warning about something that RDS does not offer.
pub(in crate::validation) struct Finding {
    pub(super) path: &'static str,
    pub(super) value: Value,
    pub(super) detail: String,
    /// If true, it denies the object.
    pub(super) is_binding: bool,
}

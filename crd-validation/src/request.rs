//! Input of a validation by a CRD.

use serde_json::Value;

use crate::field::path::FieldPath;

/// Treatment of unknown fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownFields {
    /// Unknown fields are ignored. Use this if the API server has already pruned the object.
    Ignore,
    /// Unknown fields are errors, as with `fieldValidation=Strict`.
    Deny,
}

/// Object to validate, and the object that it replaces.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The object as received, before defaults are filled.
    pub object: &'a Value,
    /// The stored object that is replaced; `None` for a new object.
    pub old: Option<&'a Value>,
    /// Treatment of unknown fields.
    pub unknown_fields: UnknownFields,
    /// Duplicate fields in the text from which the object was parsed.
    pub duplicate_keys: &'a [FieldPath],
}

impl<'a> Request<'a> {
    /// Creates a request for a new object.
    #[must_use]
    pub fn create(object: &'a Value) -> Self {
        Self {
            object,
            old: None,
            unknown_fields: UnknownFields::Ignore,
            duplicate_keys: &[],
        }
    }

    /// Creates a request for an object that replaces `old`.
    #[must_use]
    pub fn update(object: &'a Value, old: &'a Value) -> Self {
        Self {
            old: Some(old),
            ..Self::create(object)
        }
    }

    /// Makes unknown fields an error.
    #[must_use]
    pub fn deny_unknown_fields(self) -> Self {
        Self {
            unknown_fields: UnknownFields::Deny,
            ..self
        }
    }

    /// Sets the duplicate fields, which are reported as errors.
    #[must_use]
    pub fn with_duplicate_keys(self, duplicates: &'a [FieldPath]) -> Self {
        Self {
            duplicate_keys: duplicates,
            ..self
        }
    }
}

//! Data that no CEL type can represent.

use serde_json::Value;

use crate::cel::opaque::opaque;

/// Data that has no CEL value, with the reason. Every operation on it fails.
#[derive(Clone, Debug)]
pub(crate) struct Unrepresentable(pub(crate) String);

/// Such data is never equal to anything, because it is not a value.
impl PartialEq for Unrepresentable {
    fn eq(&self, _: &Self) -> bool {
        false
    }
}

opaque!(Unrepresentable, "@unrepresentable");

/// Data that the schema does not describe. It can only be compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Preserved(pub(crate) Value);

opaque!(Preserved, "@preserved");

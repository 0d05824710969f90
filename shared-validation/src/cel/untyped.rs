//! Data that no CEL type stands for.

use serde_json::Value;

use crate::cel::opaque::opaque;

/// Data that has no CEL value, and why: every operation on it fails.
#[derive(Clone, Debug)]
pub(super) struct Broken(pub(super) String);

/// It is equal to nothing, as it is no value.
impl PartialEq for Broken {
    fn eq(&self, _: &Self) -> bool {
        false
    }
}

opaque!(Broken, "@broken");

/// Data that the schema does not describe: it can be compared, and nothing else.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Preserved(pub(super) Value);

opaque!(Preserved, "@preserved");

//! What the CRDs share.

use schemars::{Schema, SchemaGenerator, json_schema};

/// The API group: that of kaasops' operator, so that its users keep their objects.
pub(crate) const GROUP: &str = "observability.kaasops.io";
/// The API version.
pub(crate) const VERSION: &str = "v1alpha1";

/// Components by name, as they are written: what they may have depends on the version of Vector, and is judged
/// by the rules.
pub(crate) fn components(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

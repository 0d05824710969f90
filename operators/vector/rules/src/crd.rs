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

/// A part of Kubernetes' own API, as it is written: what it may have depends on the cluster's version, and is judged
/// there when it is used.
pub(crate) fn of_kubernetes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// The same, several times.
pub(crate) fn all_of_kubernetes(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": of_kubernetes(generator),
    })
}

/// An amount, such as `10Gi`.
pub(crate) fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    })
}

/// A number, or a share such as `50%`.
pub(crate) fn number_or_share(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
    })
}

//! API group, version and schemas that the CRDs share.

use schemars::{Schema, SchemaGenerator, json_schema};

/// API group of the kaasops operator, so that its users can keep their objects.
pub(crate) const GROUP: &str = "observability.kaasops.io";
/// API version.
pub(crate) const VERSION: &str = "v1alpha1";

/// Returns the schema of components by name, which accepts any object. The valid options depend on the version of
/// Vector and are validated by the rules.
pub(crate) fn components(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// Returns the place for the schema of an object of a Kubernetes API type.
pub(crate) fn of_kubernetes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// Returns the place for the schema of a list of objects of a Kubernetes API type.
pub(crate) fn all_of_kubernetes(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": of_kubernetes(generator),
    })
}

/// Returns the schema of the tests of a pipeline.
pub(crate) fn tests(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 256,
        "items": of_kubernetes(generator),
    })
}

/// Returns the schema of a quantity, such as `10Gi`.
pub(crate) fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    })
}

/// Returns the schema of a number or a percentage, such as `50%`.
pub(crate) fn number_or_share(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
    })
}

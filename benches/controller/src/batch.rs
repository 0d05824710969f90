//! Kind under test: each object owns three `ConfigMap`s with its text.

use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use lockstep_shared_validation::{ValidatedResource, with_standard_fields};
use serde::Deserialize;
use serde_json::{Value, json};

/// Number of children of each object.
pub(crate) const CHILDREN: usize = 3;

#[derive(Deserialize)]
pub(crate) struct Batch {
    pub(crate) spec: BatchSpec,
}

#[derive(Deserialize)]
pub(crate) struct BatchSpec {
    pub(crate) text: String,
}

impl ValidatedResource for Batch {
    const GROUP: &'static str = "scale.example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Batch";

    fn crd() -> Value {
        let spec = json!({
            "type": "object", "required": ["text"],
            "properties": {"text": {"type": "string", "maxLength": 65_536}},
        });
        with_standard_fields(json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "batches.scale.example.com"},
            "spec": {
                "group": Self::GROUP,
                "scope": "Namespaced",
                "names": {"kind": "Batch", "listKind": "BatchList", "plural": "batches", "singular": "batch"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }],
            },
        }))
    }

    fn example() -> Value {
        json!({"spec": {"text": "hello"}})
    }
}

/// Returns the API resource of the kind.
pub(crate) fn resource() -> ApiResource {
    let gvk = GroupVersionKind::gvk(Batch::GROUP, Batch::VERSION, Batch::KIND);
    ApiResource::from_gvk_with_plural(&gvk, "batches")
}

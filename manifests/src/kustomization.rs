//! The folder as a kustomize base.

use serde_json::{Value, json};

use crate::Manifest;

pub(crate) fn kustomization(files: &[Manifest]) -> Value {
    let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
    json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        // As listed, also where things are deleted.
        "sortOptions": {"order": "fifo"},
        "resources": names,
    })
}

//! Kustomization that makes the directory a kustomize base.

use serde_json::{Value, json};

use crate::manifest::{Manifest, manifest};

pub(crate) fn kustomization(files: &[Manifest]) -> Value {
    let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
    json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        // Keep the order of the list, for deletion, too.
        "sortOptions": {"order": "fifo"},
        "resources": names,
    })
}

/// Returns the files with a kustomization, as the kustomize base `folder`.
pub(crate) fn base(folder: &str, mut files: Vec<Manifest>) -> impl Iterator<Item = Manifest> {
    let kustomization = kustomization(&files);
    files.push(manifest("kustomization.yaml", &[kustomization]));
    files.into_iter().map(move |file| file.within(folder))
}

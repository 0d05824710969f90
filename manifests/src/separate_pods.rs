//! Kustomize component that runs the webhook and the controller in separate Pods, to isolate them from each other.

use serde_json::{Value, json};

use crate::deployment;
use crate::names::Names;
use crate::options::InstallOptions;

/// Returns a kustomize component, because an overlay must not lie within its base. It changes the webhook Pods of the
/// base: they have no controller container, and mount the TLS key pair from the Secret.
pub(crate) fn kustomization(names: &Names) -> Value {
    let patch = json!([
        {"op": "test", "path": "/spec/template/spec/containers/1/name", "value": "controller"},
        {"op": "remove", "path": "/spec/template/spec/containers/1"},
        {"op": "test", "path": "/spec/template/spec/volumes/2/name", "value": "cluster-credentials"},
        {"op": "remove", "path": "/spec/template/spec/volumes/2"},
        {"op": "test", "path": "/spec/template/spec/volumes/0/name", "value": "tls"},
        {"op": "replace", "path": "/spec/template/spec/volumes/0", "value": serving_cert_volume(names)},
    ]);
    json!({
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "resources": ["controller.yaml"],
        "patches": [{
            "target": {"kind": "Deployment", "name": names.deployment},
            "patch": patch.to_string(),
        }],
    })
}

/// Returns a volume with the TLS key pair, but without the CA's private key, which is in the same Secret. The
/// kubelet updates the volume within a minute or two, well within the propagation delay of a new CA.
fn serving_cert_volume(names: &Names) -> Value {
    json!({"name": "tls", "secret": {
        "secretName": names.tls_secret,
        "optional": true,
        "defaultMode": 0o440,
        "items": [
            {"key": "tls.crt", "path": "tls.crt"},
            {"key": "tls.key", "path": "tls.key"},
        ],
    }})
}

pub(crate) fn controller(install: &InstallOptions<'_>) -> Value {
    let container = deployment::controller_container(install);
    let names = &install.names;
    deployment::controllers(install, &names.controller, &names.namespace, &container)
}

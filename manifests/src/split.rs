//! The gate and the controller in Pods of their own, for those who want neither to touch the other's.

use serde_json::{Value, json};

use crate::{InstallOptions, names, workload};

/// The controller's own Deployment, and its label.
const CONTROLLER: &str = "lockstep-controller";

/// A component, since no overlay may lie within its base. What differs from the base: the gate's Pods lose the controller, and find their pair in the Secret.
pub(crate) fn kustomization() -> Value {
    let patch = json!([
        {"op": "test", "path": "/spec/template/spec/containers/1/name", "value": "controller"},
        {"op": "remove", "path": "/spec/template/spec/containers/1"},
        {"op": "test", "path": "/spec/template/spec/volumes/2/name", "value": "cluster-credentials"},
        {"op": "remove", "path": "/spec/template/spec/volumes/2"},
        {"op": "test", "path": "/spec/template/spec/volumes/0/name", "value": "tls"},
        {"op": "replace", "path": "/spec/template/spec/volumes/0", "value": serving_cert_volume()},
    ]);
    json!({
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "resources": ["controller.yaml"],
        "patches": [{
            "target": {"kind": "Deployment", "name": names::APP},
            "patch": patch.to_string(),
        }],
    })
}

/// The pair alone: never the CA's key, which is in the same Secret. The kubelet brings a change within a
/// minute or two, well within the time that a new CA is carried beforehand.
fn serving_cert_volume() -> Value {
    json!({"name": "tls", "secret": {
        "secretName": names::TLS_SECRET,
        "optional": true,
        "defaultMode": 0o440,
        "items": [
            {"key": "tls.crt", "path": "tls.crt"},
            {"key": "tls.key", "path": "tls.key"},
        ],
    }})
}

pub(crate) fn controller(install: &InstallOptions<'_>) -> Value {
    let container = workload::controller_container(install);
    workload::controllers(CONTROLLER, names::NAMESPACE, &container)
}

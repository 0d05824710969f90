//! Kustomize component that runs the webhook and the controller in separate Pods, to isolate them from each other.

use serde_json::{Value, json};

use crate::options::InstallOptions;
use crate::{deployment, names};

/// Name of the controller's own Deployment, and value of its label.
const CONTROLLER: &str = "lockstep-controller";

/// Returns a kustomize component, because an overlay must not lie within its base. It changes the webhook Pods of the
/// base: they have no controller container, and mount the TLS key pair from the Secret.
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

/// Returns a volume with the TLS key pair, but without the CA's private key, which is in the same Secret. The
/// kubelet updates the volume within a minute or two, well within the propagation delay of a new CA.
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
    let container = deployment::controller_container(install);
    deployment::controllers(install, CONTROLLER, names::NAMESPACE, &container)
}

//! The Pods: the gate, and beside it the controller, which alone holds cluster credentials.

use serde_json::{Value, json};

use crate::{InstallOptions, crds, names};

/// Where the controller leaves the serving pair for the gate, and what it has seen of the CRDs.
const KEYS: &str = "/run/lockstep/tls";
/// Where both containers find the policy.
const POLICY: &str = "/etc/lockstep/policy";

/// Where cluster credentials are projected to; the place that clients look at.
const CREDENTIALS: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

const WEBHOOK_PORT: u16 = 9443;
const WEBHOOK_HEALTH_PORT: u16 = 8080;
const CONTROLLER_HEALTH_PORT: u16 = 8081;

pub(crate) fn namespace() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": names::NAMESPACE,
            "labels": {
                "app.kubernetes.io/name": names::APP,
                "pod-security.kubernetes.io/enforce": "restricted",
            },
        },
    })
}

pub(crate) fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": names::SERVICE,
            "namespace": names::NAMESPACE,
            "labels": {"app.kubernetes.io/name": names::APP},
        },
        "spec": {
            "selector": {"app.kubernetes.io/name": names::APP},
            "ports": [{"name": names::SERVICE_PORT, "port": 443, "targetPort": "webhook"}],
        },
    })
}

pub(crate) fn deployment(install: &InstallOptions<'_>) -> Value {
    let labels = json!({"app.kubernetes.io/name": names::APP});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": names::APP, "namespace": names::NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": names::SERVICE_ACCOUNT,
                    "automountServiceAccountToken": false,
                    // The delay before the listener closes, and 30 s for answers under way.
                    "terminationGracePeriodSeconds": 60,
                    "securityContext": pod_security(),
                    "topologySpreadConstraints": [{
                        "maxSkew": 1,
                        "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {"matchLabels": labels},
                    }],
                    "containers": [webhook_container(), controller_container(install)],
                    "volumes": volumes(),
                },
            },
        },
    })
}

fn webhook_container() -> Value {
    json!({
        "name": "webhook",
        "image": "lockstep:0.1.0",
        "args": [
            "webhook",
            format!("--listen=0.0.0.0:{WEBHOOK_PORT}"),
            format!("--health-listen=0.0.0.0:{WEBHOOK_HEALTH_PORT}"),
            format!("--tls-directory={KEYS}"),
            format!("--crds-file={KEYS}/crds.json"),
            format!("--policy={POLICY}/policy.yaml"),
            "--shutdown-delay=10s",
        ],
        "ports": [
            {"name": "webhook", "containerPort": WEBHOOK_PORT},
            {"name": "health", "containerPort": WEBHOOK_HEALTH_PORT},
        ],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}, "periodSeconds": 5},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "health"}, "periodSeconds": 10},
        // Twice what all bodies may take at once (`--bodies-limit-bytes`), and what compiles programs of Vector.
        "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"memory": "768Mi"}},
        "securityContext": container_security(),
        "volumeMounts": [
            {"name": "tls", "mountPath": KEYS, "readOnly": true},
            {"name": "policy", "mountPath": POLICY, "readOnly": true},
        ],
    })
}

/// The loop, where there is no gate.
pub(crate) fn standalone_controller(install: &InstallOptions<'_>, namespace: &str) -> Value {
    let args = [format!("--namespaces={}", install.namespaces.join(","))];
    let mut container = container(install, args.into());
    container["readinessProbe"] =
        json!({"httpGet": {"path": "/readyz", "port": "metrics"}, "periodSeconds": 10});
    controllers(names::APP, namespace, &container)
}

/// Two Pods with a controller and nothing else.
pub(crate) fn controllers(name: &str, namespace: &str, container: &Value) -> Value {
    let labels = json!({"app.kubernetes.io/name": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": names::SERVICE_ACCOUNT,
                    "automountServiceAccountToken": false,
                    "securityContext": pod_security(),
                    "containers": [container],
                    "volumes": volumes(),
                },
            },
        },
    })
}

/// No readiness probe: the sidecar must not take the gate down with it.
pub(crate) fn controller_container(install: &InstallOptions<'_>) -> Value {
    let mut args = vec![
        format!("--tls-directory={KEYS}"),
        format!("--crds-file={KEYS}/crds.json"),
        format!("--tls-secret={}", names::TLS_SECRET),
        format!("--webhook-service={}", names::SERVICE),
        format!("--webhook-configuration={}", names::WEBHOOK_CONFIGURATION),
    ];
    let converted = install
        .rulesets
        .iter()
        .filter(|ruleset| crds::converts(ruleset.as_ref()));
    args.extend(
        converted.map(|ruleset| format!("--conversion-crd={}", crds::name(ruleset.as_ref()))),
    );
    container(install, args)
}

/// A controller with these arguments besides those that every one has.
fn container(install: &InstallOptions<'_>, more: Vec<String>) -> Value {
    let mut args = vec![
        "controller".to_owned(),
        format!("--health-listen=0.0.0.0:{CONTROLLER_HEALTH_PORT}"),
        format!("--policy={POLICY}/policy.yaml"),
        format!("--lease={}", names::LEASE),
    ];
    args.extend(more);
    args.extend(install.controller_args.iter().cloned());
    json!({
        "name": "controller",
        "image": "lockstep:0.1.0",
        "args": args,
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        ],
        // Region, role or endpoint, as AWS tools read them.
        "envFrom": [{"configMapRef": {"name": "lockstep-aws", "optional": true}}],
        "ports": [{"name": "metrics", "containerPort": CONTROLLER_HEALTH_PORT}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "metrics"}, "periodSeconds": 10},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": container_security(),
        "volumeMounts": [
            {"name": "tls", "mountPath": KEYS},
            {"name": "policy", "mountPath": POLICY, "readOnly": true},
            {"name": "cluster-credentials", "mountPath": CREDENTIALS, "readOnly": true},
        ],
    })
}

/// Of two gates one goes on while nodes are drained.
pub(crate) fn disruption_budget() -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": names::APP, "namespace": names::NAMESPACE},
        "spec": {
            "minAvailable": 1,
            "selector": {"matchLabels": {"app.kubernetes.io/name": names::APP}},
        },
    })
}

fn pod_security() -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

fn container_security() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
    })
}

fn volumes() -> Value {
    json!([
        {"name": "tls", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        // Without one, every rule does what it says itself.
        {"name": "policy", "configMap": {"name": names::POLICY, "optional": true}},
        {"name": "cluster-credentials", "projected": {"defaultMode": 0o440, "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
        ]}},
    ])
}

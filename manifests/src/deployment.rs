//! Pods of the webhook and the controller. Only the controller container holds cluster credentials.

use serde_json::{Value, json};

use crate::crds;
use crate::names::{self, Names};
use crate::options::{InstallOptions, POLICY_FOLDER};

/// Directory in which the controller stores the TLS key pair and the CRD status for the webhook.
const KEYS: &str = "/run/lockstep/tls";

/// Directory of the projected cluster credentials, where Kubernetes clients expect them.
const CREDENTIALS: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

const WEBHOOK_PORT: u16 = 9443;
const WEBHOOK_HEALTH_PORT: u16 = 8080;
const CONTROLLER_HEALTH_PORT: u16 = 8081;

pub(crate) fn namespace(names: &Names) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": names.namespace,
            "labels": {
                "app.kubernetes.io/name": names.program,
                "pod-security.kubernetes.io/enforce": "restricted",
            },
        },
    })
}

pub(crate) fn service(names: &Names) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": names.service,
            "namespace": names.namespace,
            "labels": {"app.kubernetes.io/name": names.program},
        },
        "spec": {
            "selector": {"app.kubernetes.io/name": names.program},
            "ports": [{"name": names::SERVICE_PORT, "port": 443, "targetPort": "webhook"}],
        },
    })
}

pub(crate) fn deployment(install: &InstallOptions<'_>) -> Value {
    let names = &install.names;
    let own = json!({"app.kubernetes.io/name": names.program});
    let labels = labels(names, &names.program);
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": names.deployment, "namespace": names.namespace, "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": own},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": names.service_account,
                    "automountServiceAccountToken": false,
                    // At least the shutdown delay, and 30 s for requests in flight.
                    "terminationGracePeriodSeconds": 60,
                    "securityContext": pod_security(),
                    "topologySpreadConstraints": [{
                        "maxSkew": 1,
                        "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {"matchLabels": own},
                    }],
                    "containers": [webhook_container(install), controller_container(install)],
                    "volumes": volumes(install),
                },
            },
        },
    })
}

fn webhook_container(install: &InstallOptions<'_>) -> Value {
    let mut args = vec![
        "webhook".to_owned(),
        format!("--webhook-bind-address=0.0.0.0:{WEBHOOK_PORT}"),
        format!("--health-probe-bind-address=0.0.0.0:{WEBHOOK_HEALTH_PORT}"),
        format!("--cert-dir={KEYS}"),
        format!("--crd-status-file={KEYS}/crds.json"),
        format!("--policy={POLICY_FOLDER}/policy.yaml"),
        "--shutdown-delay=10s".to_owned(),
    ];
    args.extend(admission_checks(install));
    args.extend(install.common_args());
    json!({
        "name": "webhook",
        "image": install.image,
        "args": args,
        "ports": [
            {"name": "webhook", "containerPort": WEBHOOK_PORT},
            {"name": "health", "containerPort": WEBHOOK_HEALTH_PORT},
        ],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}, "periodSeconds": 5},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "health"}, "periodSeconds": 10},
        // Twice the memory limit of all bodies (`--max-inflight-bytes`), and memory for compiling VRL programs.
        "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"memory": "768Mi"}},
        "securityContext": container_security(),
        "volumeMounts": with(json!([
            {"name": "tls", "mountPath": KEYS, "readOnly": true},
            {"name": "policy", "mountPath": POLICY_FOLDER, "readOnly": true},
        ]), install.config_map_mounts()),
    })
}

/// Returns the Deployment of a controller without webhook.
pub(crate) fn standalone_controller(install: &InstallOptions<'_>, namespace: &str) -> Value {
    let watched = install.namespaces.join(",");
    let watched = (!watched.is_empty()).then(|| format!("--watch-namespaces={watched}"));
    let mut container = container(install, watched.into_iter().collect());
    container["readinessProbe"] =
        json!({"httpGet": {"path": "/readyz", "port": "metrics"}, "periodSeconds": 10});
    controllers(install, &install.names.deployment, namespace, &container)
}

/// Returns a Deployment of two Pods with a controller container only.
pub(crate) fn controllers(
    install: &InstallOptions<'_>,
    name: &str,
    namespace: &str,
    container: &Value,
) -> Value {
    let names = &install.names;
    let labels = labels(names, name);
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": names.service_account,
                    "automountServiceAccountToken": false,
                    "securityContext": pod_security(),
                    "containers": [container],
                    "volumes": volumes(install),
                },
            },
        },
    })
}

/// Returns the controller container. It has no readiness probe: as a sidecar, it must not make the webhook's Pod
/// unready.
pub(crate) fn controller_container(install: &InstallOptions<'_>) -> Value {
    let names = &install.names;
    let mut args = vec![
        format!("--cert-dir={KEYS}"),
        format!("--crd-status-file={KEYS}/crds.json"),
        format!("--tls-secret={}", names.tls_secret),
        format!("--webhook-service={}", names.service),
        format!("--webhook-configuration={}", names.webhook_configuration),
        format!("--webhook-deployment={}", names.deployment),
    ];
    args.extend(admission_checks(install));
    let converted = install
        .validators
        .iter()
        .filter(|ruleset| crds::converts(ruleset.as_ref()));
    args.extend(
        converted
            .map(|ruleset| format!("--inject-conversion-crd={}", crds::name(ruleset.as_ref()))),
    );
    container(install, args)
}

/// Returns the argument of both containers with the socket of the admission checks.
pub(crate) fn admission_checks(install: &InstallOptions<'_>) -> Option<String> {
    let socket = format!("--admission-check-socket={KEYS}/checks.sock");
    install.has_admission_checks.then_some(socket)
}

/// Returns a controller container with additional arguments.
fn container(install: &InstallOptions<'_>, more: Vec<String>) -> Value {
    let mut args = vec![
        "controller".to_owned(),
        format!("--health-probe-bind-address=0.0.0.0:{CONTROLLER_HEALTH_PORT}"),
        format!("--policy={POLICY_FOLDER}/policy.yaml"),
        format!("--leader-election-id={}", install.names.lease),
    ];
    args.extend(more);
    args.extend(install.common_args());
    args.extend(install.shards.map(|shards| format!("--shards={shards}")));
    args.extend(install.controller_args.iter().cloned());
    let mut container = json!({
        "name": "controller",
        "image": install.image,
        "args": args,
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "POD_SERVICE_ACCOUNT", "valueFrom": {"fieldRef": {"fieldPath": "spec.serviceAccountName"}}},
        ],
        "ports": [{"name": "metrics", "containerPort": CONTROLLER_HEALTH_PORT}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "metrics"}, "periodSeconds": 10},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": container_security(),
        "volumeMounts": with(json!([
            {"name": "tls", "mountPath": KEYS},
            {"name": "policy", "mountPath": POLICY_FOLDER, "readOnly": true},
            {"name": "cluster-credentials", "mountPath": CREDENTIALS, "readOnly": true},
        ]), install.config_map_mounts()),
    });
    let environment = environment(install);
    if !environment.is_empty() {
        container["envFrom"] = environment.into();
    }
    container
}

/// Returns the sources of the controller's environment variables.
pub(crate) fn environment(install: &InstallOptions<'_>) -> Vec<Value> {
    let config_maps = install.environment_config_maps.iter();
    config_maps
        .map(|name| json!({"configMapRef": {"name": name, "optional": true}}))
        .collect()
}

/// Returns the labels of a Deployment and its Pods.
fn labels(names: &Names, name: &str) -> Value {
    json!({"app.kubernetes.io/name": name, names::PART_OF: names.program})
}

/// Returns the `PodDisruptionBudget`: one of the two webhook replicas remains available while nodes are drained.
pub(crate) fn disruption_budget(names: &Names) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": names.deployment,
            "namespace": names.namespace,
            "labels": {"app.kubernetes.io/name": names.program},
        },
        "spec": {
            "minAvailable": 1,
            "selector": {"matchLabels": {"app.kubernetes.io/name": names.program}},
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

/// Returns a list with more items.
fn with(mut list: Value, more: impl Iterator<Item = Value>) -> Value {
    if let Some(list) = list.as_array_mut() {
        list.extend(more);
    }
    list
}

/// Returns the volumes. The patch for separate Pods refers to the first ones by their positions.
fn volumes(install: &InstallOptions<'_>) -> Value {
    let own = json!([
        {"name": "tls", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        // Without a policy, every rule applies with its own severity.
        {"name": "policy", "configMap": {"name": install.names.policy, "optional": true}},
        {"name": "cluster-credentials", "projected": {"defaultMode": 0o440, "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
        ]}},
    ]);
    with(own, install.config_map_volumes())
}

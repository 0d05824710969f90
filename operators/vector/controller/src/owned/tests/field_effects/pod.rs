//! Fields of the Pods: what runs where.

use serde_json::json;

use crate::owned::tests::field_effects::{Effect, Row, copied, row, workload};

/// Returns the rows of where and as what the Pods run.
pub(super) fn scheduling() -> Vec<Row> {
    vec![
        copied(
            "imagePullSecrets",
            json!([{"name": "pull"}]),
            "/spec/template/spec/imagePullSecrets",
        ),
        copied(
            "affinity",
            json!({"nodeAffinity": {}}),
            "/spec/template/spec/affinity",
        ),
        copied(
            "tolerations",
            json!([{"operator": "Exists"}]),
            "/spec/template/spec/tolerations",
        ),
        copied(
            "nodeSelector",
            json!({"kubernetes.io/os": "linux"}),
            "/spec/template/spec/nodeSelector",
        ),
        copied(
            "terminationGracePeriodSeconds",
            json!(90),
            "/spec/template/spec/terminationGracePeriodSeconds",
        ),
        copied(
            "podSecurityContext",
            json!({"fsGroup": 1}),
            "/spec/template/spec/securityContext",
        ),
        copied(
            "schedulerName",
            json!("other"),
            "/spec/template/spec/schedulerName",
        ),
        copied(
            "runtimeClassName",
            json!("gvisor"),
            "/spec/template/spec/runtimeClassName",
        ),
        copied(
            "host_aliases",
            json!([{"ip": "10.0.0.1", "hostnames": ["a"]}]),
            "/spec/template/spec/hostAliases",
        ),
        row(
            "podSecurityPolicyName",
            json!("restricted"),
            Effect::None("Kubernetes 1.25 removed the API PodSecurityPolicy"),
        ),
        copied(
            "priorityClassName",
            json!("high"),
            "/spec/template/spec/priorityClassName",
        ),
        copied(
            "hostNetwork",
            json!(true),
            "/spec/template/spec/hostNetwork",
        ),
    ]
}

/// Returns the row of the strategy of agents.
pub(super) fn strategy_of_agents() -> Vec<Row> {
    let strategy = json!({"rollingUpdate": {"maxUnavailable": "10%"}});
    vec![copied("updateStrategy", strategy, "/spec/updateStrategy")]
}

/// Returns the rows of the labels and annotations.
pub(super) fn metadata() -> Vec<Row> {
    const LABEL: &str = "/metadata/labels/team";
    const NOTE: &str = "/metadata/annotations/team";
    let everywhere = |pointer: &'static str| {
        Effect::Objects(vec![
            ("workload", "", pointer, json!("a")),
            ("Secret", "", pointer, json!("a")),
            ("ServiceAccount", "", pointer, json!("a")),
            ("Service", "", pointer, json!("a")),
            ("PodMonitor", "", pointer, json!("a")),
            (
                "workload",
                "",
                if pointer == LABEL {
                    "/spec/template/metadata/labels/team"
                } else {
                    "/spec/template/metadata/annotations/team"
                },
                json!("a"),
            ),
        ])
    };
    let all = json!({"api": {"enabled": true}, "internalMetrics": true});
    vec![
        row("annotations", json!({"team": "a"}), everywhere(NOTE)).given(all.clone()),
        row("labels", json!({"team": "a"}), everywhere(LABEL)).given(all),
    ]
}

/// Returns the rows of the volumes.
pub(super) fn storage() -> Vec<Row> {
    vec![
        workload(
            "dataDir",
            json!("/data"),
            "/spec/template/spec/volumes/4",
            json!({"name": "data", "hostPath": {"path": "/data"}}),
        ),
        workload(
            "volumes",
            json!([{"name": "config", "emptyDir": {}}]),
            "/spec/template/spec/volumes/0",
            json!({"name": "config", "emptyDir": {}}),
        ),
        workload(
            "volumeMounts",
            json!([{"name": "data", "mountPath": "/elsewhere"}]),
            "/spec/template/spec/containers/0/volumeMounts",
            json!([
                {"name": "data", "mountPath": "/elsewhere"},
                {"name": "config", "mountPath": "/etc/vector"},
                {"name": "procfs", "mountPath": "/host/proc"},
                {"name": "sysfs", "mountPath": "/host/sys"},
            ]),
        ),
    ]
}

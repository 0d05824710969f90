//! Fields of Vector's options, of its API and of its metrics.

use serde_json::json;

use crate::owned::tests::field_effects::{Effect, Row, row};

/// Returns the rows of the options and the API.
pub(super) fn global() -> Vec<Row> {
    let api_probe = || {
        json!({
            "httpGet": {"path": "/health", "port": 8686},
            "initialDelaySeconds": 15, "periodSeconds": 20, "timeoutSeconds": 3,
        })
    };
    vec![
        row("vectorVersion", json!("0.58"), Effect::Configuration),
        row("reload.observe", json!(true), Effect::Configuration),
        row("reload.evictStuckPods", json!(true), Effect::Configuration),
        row("componentNames", json!("dashes"), Effect::Configuration),
        row("mergeSources", json!(true), Effect::Configuration),
        row("migrateData", json!(false), Effect::Configuration),
        row("expireMetricsSecs", json!(60), Effect::Configuration),
        row(
            "api.enabled",
            json!(true),
            Effect::Objects(vec![(
                "Service",
                "",
                "/spec/ports",
                json!([{"name": "api", "port": 8686, "protocol": "TCP", "targetPort": 8686}]),
            )]),
        ),
        row(
            "api.playground",
            json!(true),
            Effect::None("Vector 0.55 removed the playground"),
        ),
        row(
            "api.healthcheck",
            json!(true),
            Effect::Objects(vec![
                (
                    "workload",
                    "",
                    "/spec/template/spec/containers/0/readinessProbe",
                    api_probe(),
                ),
                (
                    "workload",
                    "",
                    "/spec/template/spec/containers/0/livenessProbe",
                    api_probe(),
                ),
            ]),
        )
        .given(json!({"api": {"enabled": true}})),
    ]
}

/// Returns the rows of the metrics.
pub(super) fn metrics() -> Vec<Row> {
    vec![
        row(
            "internalMetrics",
            json!(true),
            Effect::Objects(vec![(
                "PodMonitor",
                "",
                "/spec/podMetricsEndpoints",
                json!([{"path": "/metrics", "port": "prom-exporter"}]),
            )]),
        ),
        row(
            "scrapeInterval",
            json!("30s"),
            Effect::Objects(vec![(
                "PodMonitor",
                "",
                "/spec/podMetricsEndpoints/0/interval",
                json!("30s"),
            )]),
        )
        .given(json!({"internalMetrics": true})),
        row(
            "scrapeTimeout",
            json!("5s"),
            Effect::Objects(vec![(
                "PodMonitor",
                "",
                "/spec/podMetricsEndpoints/0/scrapeTimeout",
                json!("5s"),
            )]),
        )
        .given(json!({"internalMetrics": true})),
    ]
}

/// Returns the rows of the check of configurations.
pub(super) fn config_check() -> Vec<Row> {
    let resources = || json!({"requests": {"cpu": "2"}, "limits": {"cpu": "3"}});
    let pod = |field, value, pointer, result| {
        let effect = Effect::Objects(vec![("Pod", "configcheck", pointer, result)]);
        row(field, value, effect).given(json!({"configCheck": {"mode": "Pod"}}))
    };
    vec![
        row(
            "configCheck.mode",
            json!("Both"),
            Effect::Objects(vec![
                ("Pod", "configcheck", "/kind", json!("Pod")),
                ("Secret", "configcheck", "/kind", json!("Secret")),
                (
                    "ServiceAccount",
                    "configcheck-account",
                    "/kind",
                    json!("ServiceAccount"),
                ),
            ]),
        ),
        row(
            "configCheck.warm",
            json!(true),
            Effect::Objects(
                ["Deployment", "NetworkPolicy", "Secret"]
                    .map(|kind| (kind, "validator", "/kind", json!(kind)))
                    .to_vec(),
            ),
        )
        .given(json!({"configCheck": {"mode": "Pod"}})),
        pod("configCheck.disabled", json!(true), "/kind", json!(null)),
        pod(
            "configCheck.image",
            json!("vector:1"),
            "/spec/containers/0/image",
            json!("vector:1"),
        ),
        pod(
            "configCheck.resources",
            resources(),
            "/spec/containers/0/resources",
            resources(),
        ),
        pod(
            "configCheck.affinity",
            json!({"nodeAffinity": {}}),
            "/spec/affinity",
            json!({"nodeAffinity": {}}),
        ),
        pod(
            "configCheck.tolerations",
            json!([{"key": "a"}]),
            "/spec/tolerations",
            json!([{"key": "a"}]),
        ),
        pod(
            "configCheck.annotations",
            json!({"a": "b"}),
            "/metadata/annotations/a",
            json!("b"),
        ),
        pod(
            "configCheck.labels",
            json!({"a": "b"}),
            "/metadata/labels/a",
            json!("b"),
        ),
    ]
}

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
    vec![
        row("configCheck.disabled", json!(true), no_check_pods()),
        row("configCheck.image", json!("vector:1"), no_check_pods()),
        row("configCheck.resources", resources(), no_check_pods()),
        row("configCheck.affinity", json!({}), no_check_pods()),
        row(
            "configCheck.tolerations",
            json!([{"key": "a"}]),
            no_check_pods(),
        ),
        row(
            "configCheck.annotations",
            json!({"a": "b"}),
            no_check_pods(),
        ),
        row("configCheck.labels", json!({"a": "b"}), no_check_pods()),
    ]
}

fn no_check_pods() -> Effect {
    Effect::None("pipelines are validated in process, without Pods")
}

//! Fields of aggregators only.

use serde_json::{Value, json};

use crate::owned::tests::field_effects::{Effect, Row, copied, row, workload};

/// Returns the rows of the number and the pipelines of the Pods.
pub(super) fn pods() -> Vec<Row> {
    vec![
        copied("replicas", json!(3), "/spec/replicas"),
        workload(
            "updateStrategy",
            json!({"type": "Recreate"}),
            "/spec/strategy/type",
            json!("Recreate"),
        ),
        row(
            "selector",
            json!({"matchLabels": {"a": "b"}}),
            Effect::Configuration,
        ),
        copied(
            "topologySpreadConstraints",
            json!([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]),
            "/spec/template/spec/topologySpreadConstraints",
        ),
    ]
}

/// Returns the rows of the event collector.
pub(super) fn event_collector() -> Vec<Row> {
    vec![
        row(
            "eventCollector.image",
            json!("mirror/collector"),
            Effect::Objects(vec![(
                "Deployment",
                "event-collector",
                "/spec/template/spec/containers/0/image",
                json!("mirror/collector"),
            )]),
        ),
        row(
            "eventCollector.imagePullPolicy",
            json!("Always"),
            Effect::Objects(vec![(
                "Deployment",
                "event-collector",
                "/spec/template/spec/containers/0/imagePullPolicy",
                json!("Always"),
            )]),
        ),
        row(
            "eventCollector.maxBatchSize",
            json!(10),
            Effect::Objects(vec![(
                "ConfigMap",
                "event-collector",
                "/data/config.json",
                json!(
                    r#"{"MaxBatchSize":10,"Receivers":[{"Port":"42000","ServiceName":"logs-aggregator-events","ServiceNamespace":"NAMESPACE","WatchedNamespace":"team"}]}"#
                ),
            )]),
        ),
    ]
}

/// Returns the rows of the autoscaler.
pub(super) fn autoscaling() -> Vec<Row> {
    let scaled = || json!({"autoscaling": {"enabled": true}});
    let metrics = || {
        let target = json!({"type": "Utilization", "averageUtilization": 70});
        json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}])
    };
    let autoscaler =
        |pointer, value| Effect::Objects(vec![("HorizontalPodAutoscaler", "", pointer, value)]);
    vec![
        row(
            "autoscaling.enabled",
            json!(true),
            Effect::Objects(vec![
                (
                    "HorizontalPodAutoscaler",
                    "",
                    "/spec",
                    json!({
                        "maxReplicas": 3,
                        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "logs-aggregator"},
                    }),
                ),
                ("workload", "", "/spec/replicas", Value::Null),
            ]),
        )
        .given(json!({"replicas": 2})),
        row("autoscaling.minReplicas", json!(2), autoscaler("/spec/minReplicas", json!(2))).given(scaled()),
        row("autoscaling.maxReplicas", json!(9), autoscaler("/spec/maxReplicas", json!(9))).given(scaled()),
        row("autoscaling.metrics", metrics(), autoscaler("/spec/metrics", metrics()))
            .given(scaled()),
        row("autoscaling.behavior", json!({"scaleUp": {}}), autoscaler("/spec/behavior", json!({"scaleUp": {}})))
            .given(scaled()),
    ]
}

/// Returns the rows of the persistent storage.
pub(super) fn persistence() -> Vec<Row> {
    let persistent = || json!({"persistence": {"enabled": true}});
    let stateful = |pointer, value| Effect::Objects(vec![("StatefulSet", "", pointer, value)]);
    let claim = json!([{
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }]);
    vec![
        row(
            "persistence.enabled",
            json!(true),
            Effect::Objects(vec![
                (
                    "StatefulSet",
                    "",
                    "/spec/volumeClaimTemplates",
                    json!([{
                        "metadata": {"name": "data"},
                        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}},
                    }]),
                ),
                (
                    "StatefulSet",
                    "",
                    "/spec/persistentVolumeClaimRetentionPolicy",
                    json!({"whenDeleted": "Retain", "whenScaled": "Retain"}),
                ),
                (
                    "StatefulSet",
                    "",
                    "/spec/podManagementPolicy",
                    json!("Parallel"),
                ),
                (
                    "StatefulSet",
                    "",
                    "/spec/serviceName",
                    json!("logs-aggregator-headless"),
                ),
                // The claim is the data directory.
                (
                    "StatefulSet",
                    "",
                    "/spec/template/spec/volumes/4/name",
                    json!("procfs"),
                ),
                ("Service", "headless", "/spec/clusterIP", json!("None")),
                ("Deployment", "", "/metadata", Value::Null),
            ]),
        ),
        row(
            "persistence.size",
            json!("1Ti"),
            stateful(
                "/spec/volumeClaimTemplates/0/spec/resources/requests/storage",
                json!("1Ti"),
            ),
        )
        .given(persistent()),
        row(
            "persistence.storageClassName",
            json!("fast"),
            stateful(
                "/spec/volumeClaimTemplates/0/spec/storageClassName",
                json!("fast"),
            ),
        )
        .given(persistent()),
        row(
            "persistence.accessModes",
            json!(["ReadWriteOncePod"]),
            stateful(
                "/spec/volumeClaimTemplates/0/spec/accessModes",
                json!(["ReadWriteOncePod"]),
            ),
        )
        .given(persistent()),
        row(
            "persistence.volumeClaimTemplates",
            claim.clone(),
            stateful("/spec/volumeClaimTemplates", claim),
        ),
        row(
            "persistence.retentionPolicy",
            json!({"whenScaled": "Delete"}),
            stateful(
                "/spec/persistentVolumeClaimRetentionPolicy",
                json!({"whenDeleted": "Retain", "whenScaled": "Delete"}),
            ),
        )
        .given(persistent()),
    ]
}

/// Returns the rows of the disruption budget.
pub(super) fn disruption_budget() -> Vec<Row> {
    let budget = || json!({"replicas": 2, "podDisruptionBudget": {"enabled": true}});
    let limit = |pointer, value| Effect::Objects(vec![("PodDisruptionBudget", "", pointer, value)]);
    vec![
        row(
            "podDisruptionBudget.enabled",
            json!(true),
            Effect::Objects(vec![
                ("PodDisruptionBudget", "", "/spec/maxUnavailable", json!(1)),
                (
                    "PodDisruptionBudget",
                    "",
                    "/spec/unhealthyPodEvictionPolicy",
                    json!("AlwaysAllow"),
                ),
            ]),
        )
        .given(json!({"replicas": 2})),
        row(
            "podDisruptionBudget.minAvailable",
            json!("50%"),
            limit("/spec/minAvailable", json!("50%")),
        )
        .given(budget()),
        row(
            "podDisruptionBudget.maxUnavailable",
            json!(2),
            limit("/spec/maxUnavailable", json!(2)),
        )
        .given(budget()),
        row(
            "podDisruptionBudget.unhealthyPodEvictionPolicy",
            json!("IfHealthyBudget"),
            limit("/spec/unhealthyPodEvictionPolicy", json!("IfHealthyBudget")),
        )
        .given(budget()),
    ]
}

//! The effect of every field. A field without a row in this table makes the tests fail.

use std::collections::BTreeSet;

use lockstep_shared_validation::ValidatedResource;
use lockstep_vector_api::{ClusterVectorAggregator, Vector, VectorAggregator};
use serde_json::{Value, json};

use crate::owned::tests::{Input, Kind, event_pipeline, listener};

/// Fields whose own fields have rows.
const STRUCTURES: [&str; 7] = [
    "agent",
    "api",
    "autoscaling",
    "configCheck",
    "eventCollector",
    "persistence",
    "podDisruptionBudget",
];

/// Effect of a field.
enum Effect {
    /// Values in owned objects, each by kind, suffix of the name and JSON pointer. `workload` is the kind that runs
    /// Vector.
    Objects(Vec<(&'static str, &'static str, &'static str, Value)>),
    /// Only Vector's configuration depends on the field.
    Configuration,
    /// Nothing depends on the field any more, for this reason.
    None(#[allow(dead_code, reason = "it is read by people")] &'static str),
}

/// Field with a value and its effect.
struct Row {
    field: &'static str,
    value: Value,
    /// Other fields that the effect needs.
    given: Value,
    effect: Effect,
}

fn row(field: &'static str, value: Value, effect: Effect) -> Row {
    let given = json!({});
    Row {
        field,
        value,
        given,
        effect,
    }
}

/// Returns a row of a field that has one value in the object that runs Vector.
fn workload(field: &'static str, value: Value, pointer: &'static str, result: Value) -> Row {
    let effect = Effect::Objects(vec![("workload", "", pointer, result)]);
    row(field, value, effect)
}

/// Returns a row of a field whose value is copied to the Pod.
fn pod(field: &'static str, value: Value, pointer: &'static str) -> Row {
    workload(field, value.clone(), pointer, value)
}

impl Row {
    fn given(mut self, fields: Value) -> Self {
        self.given = fields;
        self
    }
}

const METADATA: &str = "/metadata";

/// Returns the rows of the fields that all kinds have.
fn of_every_workload() -> Vec<Row> {
    const LABEL: &str = "/metadata/labels/team";
    const NOTE: &str = "/metadata/annotations/team";
    let probe = || json!({"exec": {"command": ["true"]}});
    let api_probe = || {
        json!({
            "httpGet": {"path": "/health", "port": 8686},
            "initialDelaySeconds": 15, "periodSeconds": 20, "timeoutSeconds": 3,
        })
    };
    let resources = || json!({"requests": {"cpu": "2"}, "limits": {"cpu": "3"}});
    let requests_only = json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1", "memory": "1Gi"}});
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
    let compressed = json!({"compressConfigFile": true});
    vec![
        pod(
            "image",
            json!("mirror/vector:0.57.0"),
            "/spec/template/spec/containers/0/image",
        ),
        pod(
            "imagePullSecrets",
            json!([{"name": "pull"}]),
            "/spec/template/spec/imagePullSecrets",
        ),
        row(
            "imagePullPolicy",
            json!("Always"),
            Effect::Objects(
                [
                    "/spec/template/spec/containers/0/imagePullPolicy",
                    "/spec/template/spec/containers/1/imagePullPolicy",
                    "/spec/template/spec/initContainers/0/imagePullPolicy",
                ]
                .map(|pointer| ("workload", "", pointer, json!("Always")))
                .to_vec(),
            ),
        )
        .given(compressed.clone()),
        row("annotations", json!({"team": "a"}), everywhere(NOTE)).given(all.clone()),
        row("labels", json!({"team": "a"}), everywhere(LABEL)).given(all),
        workload(
            "resources",
            json!({"requests": {"cpu": "2"}}),
            "/spec/template/spec/containers/0/resources",
            requests_only,
        ),
        pod(
            "affinity",
            json!({"nodeAffinity": {}}),
            "/spec/template/spec/affinity",
        ),
        pod(
            "tolerations",
            json!([{"operator": "Exists"}]),
            "/spec/template/spec/tolerations",
        ),
        pod(
            "podSecurityContext",
            json!({"fsGroup": 1}),
            "/spec/template/spec/securityContext",
        ),
        row(
            "containerSecurityContext",
            json!({"runAsUser": 1}),
            Effect::Objects(
                [
                    "/spec/template/spec/containers/0/securityContext",
                    "/spec/template/spec/containers/1/securityContext",
                    "/spec/template/spec/initContainers/0/securityContext",
                ]
                .map(|pointer| ("workload", "", pointer, json!({"runAsUser": 1})))
                .to_vec(),
            ),
        )
        .given(compressed.clone()),
        pod(
            "schedulerName",
            json!("other"),
            "/spec/template/spec/schedulerName",
        ),
        pod(
            "runtimeClassName",
            json!("gvisor"),
            "/spec/template/spec/runtimeClassName",
        ),
        pod(
            "host_aliases",
            json!([{"ip": "10.0.0.1", "hostnames": ["a"]}]),
            "/spec/template/spec/hostAliases",
        ),
        row(
            "podSecurityPolicyName",
            json!("restricted"),
            Effect::None("Kubernetes 1.25 removed the API PodSecurityPolicy"),
        ),
        pod(
            "priorityClassName",
            json!("high"),
            "/spec/template/spec/priorityClassName",
        ),
        pod(
            "hostNetwork",
            json!(true),
            "/spec/template/spec/hostNetwork",
        ),
        workload(
            "env",
            json!([{"name": "A", "value": "1"}]),
            "/spec/template/spec/containers/0/env/0",
            json!({"name": "A", "value": "1"}),
        ),
        pod(
            "envFrom",
            json!([{"secretRef": {"name": "s"}}]),
            "/spec/template/spec/containers/0/envFrom",
        ),
        workload(
            "envVarInterpolation",
            json!(true),
            "/spec/template/spec/containers/0/args/3",
            json!("--dangerously-allow-env-var-interpolation"),
        ),
        workload(
            "dataDir",
            json!("/data"),
            "/spec/template/spec/volumes/4",
            json!({"name": "data", "hostPath": {"path": "/data"}}),
        ),
        row("componentNames", json!("dashes"), Effect::Configuration),
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
        pod(
            "readinessProbe",
            probe(),
            "/spec/template/spec/containers/0/readinessProbe",
        )
        .given(json!({"api": {"enabled": true, "healthcheck": true}})),
        pod(
            "livenessProbe",
            probe(),
            "/spec/template/spec/containers/0/livenessProbe",
        )
        .given(json!({"api": {"enabled": true, "healthcheck": true}})),
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
        row(
            "compressConfigFile",
            json!(true),
            Effect::Objects(vec![
                (
                    "workload",
                    "",
                    "/spec/template/spec/initContainers/0",
                    json!({
                        "name": "init-config-reloader",
                        "image": "docker.io/kaasops/config-reloader:v0.1.4",
                        "args": ["--init-mode=true", "--volume-dir-archive=/tmp/archive", "--dir-for-unarchive=/etc/vector"],
                        "resources": {"requests": {"cpu": "100m", "memory": "200Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
                        "volumeMounts": [
                            {"name": "config", "mountPath": "/etc/vector"},
                            {"name": "app-config-compress", "mountPath": "/tmp/archive"},
                        ],
                    }),
                ),
                (
                    "workload",
                    "",
                    "/spec/template/spec/containers/1/name",
                    json!("config-reloader"),
                ),
                (
                    "workload",
                    "",
                    "/spec/template/spec/containers/1/args/0",
                    json!("--init-mode=false"),
                ),
                (
                    "workload",
                    "",
                    "/spec/template/spec/volumes/3",
                    json!({"name": "config", "emptyDir": {}}),
                ),
                (
                    "workload",
                    "",
                    "/spec/template/spec/volumes/7/name",
                    json!("app-config-compress"),
                ),
                (
                    "workload",
                    "",
                    "/spec/template/spec/containers/0/volumeMounts/7",
                    json!({"name": "app-config-compress", "mountPath": "/tmp/archive"}),
                ),
            ]),
        ),
        row(
            "configReloaderImage",
            json!("mirror/reloader"),
            Effect::Objects(
                [
                    "/spec/template/spec/containers/1/image",
                    "/spec/template/spec/initContainers/0/image",
                ]
                .map(|pointer| ("workload", "", pointer, json!("mirror/reloader")))
                .to_vec(),
            ),
        )
        .given(compressed.clone()),
        row(
            "configReloaderResources",
            resources(),
            Effect::Objects(
                [
                    "/spec/template/spec/containers/1/resources",
                    "/spec/template/spec/initContainers/0/resources",
                ]
                .map(|pointer| ("workload", "", pointer, resources()))
                .to_vec(),
            ),
        )
        .given(compressed),
    ]
}

fn no_check_pods() -> Effect {
    Effect::None("pipelines are validated in process, without Pods")
}

/// Returns the rows of the fields that only agents have.
fn of_vector() -> Vec<Row> {
    vec![
        row("useApiServerCache", json!(true), Effect::Configuration),
        row(
            "selector",
            json!({"matchLabels": {"a": "b"}}),
            Effect::Configuration,
        ),
    ]
}

/// Returns the rows of the fields that both kinds of aggregators have.
fn of_aggregators() -> Vec<Row> {
    let persistent = || json!({"persistence": {"enabled": true}});
    let scaled = || json!({"autoscaling": {"enabled": true}});
    let budget = || json!({"replicas": 2, "podDisruptionBudget": {"enabled": true}});
    let stateful = |pointer, value| Effect::Objects(vec![("StatefulSet", "", pointer, value)]);
    let scaler =
        |pointer, value| Effect::Objects(vec![("HorizontalPodAutoscaler", "", pointer, value)]);
    let limit = |pointer, value| Effect::Objects(vec![("PodDisruptionBudget", "", pointer, value)]);
    let claim = json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteMany"]}}]);
    vec![
        pod("replicas", json!(3), "/spec/replicas"),
        row("selector", json!({"matchLabels": {"a": "b"}}), Effect::Configuration),
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
                json!(r#"{"MaxBatchSize":10,"Receivers":[{"Port":"42000","ServiceName":"logs-aggregator-events","ServiceNamespace":"NAMESPACE","WatchedNamespace":"team"}]}"#),
            )]),
        ),
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
        row("autoscaling.minReplicas", json!(2), scaler("/spec/minReplicas", json!(2))).given(scaled()),
        row("autoscaling.maxReplicas", json!(9), scaler("/spec/maxReplicas", json!(9))).given(scaled()),
        row("autoscaling.metrics", json!([{"type": "Resource"}]), scaler("/spec/metrics", json!([{"type": "Resource"}])))
            .given(scaled()),
        row("autoscaling.behavior", json!({"scaleUp": {}}), scaler("/spec/behavior", json!({"scaleUp": {}})))
            .given(scaled()),
        pod(
            "topologySpreadConstraints",
            json!([{"maxSkew": 1}]),
            "/spec/template/spec/topologySpreadConstraints",
        ),
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
                ("StatefulSet", "", "/spec/podManagementPolicy", json!("Parallel")),
                ("StatefulSet", "", "/spec/serviceName", json!("logs-aggregator-headless")),
                // The claim is the data directory.
                ("StatefulSet", "", "/spec/template/spec/volumes/4/name", json!("procfs")),
                ("Service", "headless", "/spec/clusterIP", json!("None")),
                ("Deployment", "", METADATA, Value::Null),
            ]),
        ),
        row(
            "persistence.size",
            json!("1Ti"),
            stateful("/spec/volumeClaimTemplates/0/spec/resources/requests/storage", json!("1Ti")),
        )
        .given(persistent()),
        row(
            "persistence.storageClassName",
            json!("fast"),
            stateful("/spec/volumeClaimTemplates/0/spec/storageClassName", json!("fast")),
        )
        .given(persistent()),
        row(
            "persistence.accessModes",
            json!(["ReadWriteOncePod"]),
            stateful("/spec/volumeClaimTemplates/0/spec/accessModes", json!(["ReadWriteOncePod"])),
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
        row(
            "podDisruptionBudget.enabled",
            json!(true),
            Effect::Objects(vec![
                ("PodDisruptionBudget", "", "/spec/maxUnavailable", json!(1)),
                ("PodDisruptionBudget", "", "/spec/unhealthyPodEvictionPolicy", json!("AlwaysAllow")),
            ]),
        )
        .given(json!({"replicas": 2})),
        row("podDisruptionBudget.minAvailable", json!("50%"), limit("/spec/minAvailable", json!("50%")))
            .given(budget()),
        row("podDisruptionBudget.maxUnavailable", json!(2), limit("/spec/maxUnavailable", json!(2))).given(budget()),
        row(
            "podDisruptionBudget.unhealthyPodEvictionPolicy",
            json!("IfHealthyBudget"),
            limit("/spec/unhealthyPodEvictionPolicy", json!("IfHealthyBudget")),
        )
        .given(budget()),
    ]
}

/// Returns the rows of the fields that only the cluster-scoped kind has.
fn of_cluster_aggregator() -> Vec<Row> {
    let namespace = |kind| (kind, "", "/metadata/namespace", json!("elsewhere"));
    let kinds = ["workload", "Secret", "ServiceAccount"];
    let effect = Effect::Objects(kinds.map(namespace).to_vec());
    vec![row("resourceNamespace", json!("elsewhere"), effect)]
}

/// Returns all rows of a kind, with the paths of the fields in its spec.
fn rows(kind: Kind) -> Vec<(String, Row)> {
    let at = |prefix: &str, rows: Vec<Row>| {
        let rows = rows.into_iter();
        let rows = rows.map(|row| (format!("{prefix}{}", row.field), row));
        rows.collect::<Vec<_>>()
    };
    match kind {
        Kind::Vector => [at("agent.", of_every_workload()), at("", of_vector())].concat_all(),
        Kind::VectorAggregator => {
            [at("", of_every_workload()), at("", of_aggregators())].concat_all()
        }
        Kind::ClusterVectorAggregator => [
            at("", of_every_workload()),
            at("", of_aggregators()),
            at("", of_cluster_aggregator()),
        ]
        .concat_all(),
    }
}

/// Concatenation of lists whose items cannot be cloned.
trait ConcatAll<T> {
    fn concat_all(self) -> Vec<T>;
}

impl<T, const N: usize> ConcatAll<T> for [Vec<T>; N] {
    fn concat_all(self) -> Vec<T> {
        self.into_iter().flatten().collect()
    }
}

/// Returns the input with the fields that the effect of a row needs.
fn input(kind: Kind, path: &str, row: &Row) -> Input<'static> {
    let mut input = Input::of(kind);
    input.publication.services = match kind {
        Kind::Vector => Vec::new(),
        Kind::VectorAggregator | Kind::ClusterVectorAggregator => {
            vec![listener("app", "in", 9000), event_pipeline(Some("team"))]
        }
    };
    let prefix = path.strip_suffix(row.field).expect("the path ends so");
    for (name, value) in row.given.as_object().expect("fields") {
        input = input.with(&format!("{prefix}{name}"), value.clone());
    }
    input
}

/// Returns a value in an owned object.
fn value(input: &Input<'_>, kind: &str, suffix: &str, pointer: &str) -> Value {
    let name = match suffix {
        "" => input.kind.object_name().to_owned(),
        "event-collector" => "logs-event-collector".to_owned(),
        suffix => format!("{}-{suffix}", input.kind.object_name()),
    };
    let kind = if kind == "workload" {
        input.kind.workload()
    } else {
        kind
    };
    let child = input.child(kind, &name).unwrap_or_default();
    child.pointer(pointer).cloned().unwrap_or_default()
}

#[test]
fn every_field_has_its_effect() {
    for kind in Kind::ALL {
        for (path, row) in rows(kind) {
            let before = input(kind, &path, &row);
            let after = before.clone().with(&path, row.value.clone());
            match &row.effect {
                Effect::Objects(effects) => {
                    for (child, suffix, pointer, expected) in effects {
                        let namespace = match kind {
                            Kind::ClusterVectorAggregator => "logging",
                            Kind::Vector | Kind::VectorAggregator => "team",
                        };
                        let expected = match expected {
                            Value::String(text) => json!(text.replace("NAMESPACE", namespace)),
                            expected => expected.clone(),
                        };
                        let found = value(&after, child, suffix, pointer);
                        assert_eq!(found, expected, "{kind:?} {path}: {child} {pointer}");
                        let found = value(&before, child, suffix, pointer);
                        assert_ne!(
                            found, expected,
                            "{kind:?} without {path}: {child} {pointer}"
                        );
                    }
                }
                Effect::Configuration | Effect::None(_) => {
                    assert_eq!(before.objects(), after.objects(), "{kind:?} {path}");
                }
            }
        }
    }
}

#[test]
fn every_field_of_the_schema_is_in_the_table() {
    for (kind, crd) in [
        (Kind::Vector, Vector::crd()),
        (Kind::VectorAggregator, VectorAggregator::crd()),
        (
            Kind::ClusterVectorAggregator,
            ClusterVectorAggregator::crd(),
        ),
    ] {
        let schema = crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec");
        let mut fields = BTreeSet::new();
        collect(schema.expect("a spec"), "", &mut fields);
        let rows: BTreeSet<_> = rows(kind).into_iter().map(|(path, _)| path).collect();
        assert_eq!(fields, rows, "{kind:?}");
    }
}

/// Collects the paths of the fields that need a row.
fn collect(schema: &Value, prefix: &str, fields: &mut BTreeSet<String>) {
    for (name, property) in schema["properties"].as_object().expect("properties") {
        let path = format!("{prefix}{name}");
        if STRUCTURES.contains(&name.as_str()) {
            collect(property, &format!("{path}."), fields);
        } else {
            fields.insert(path);
        }
    }
}

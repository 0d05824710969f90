//! Fields of the containers.

use serde_json::json;

use crate::owned::tests::field_effects::{Effect, Row, copied, row, workload};

/// Returns the rows of the Vector container.
pub(super) fn vector() -> Vec<Row> {
    let compressed = json!({"compressConfigFile": true});
    let requests_only = json!({"requests": {"cpu": "2"}, "limits": {"cpu": "2", "memory": "1Gi"}});
    let probe = || json!({"exec": {"command": ["true"]}});
    vec![
        copied(
            "image",
            json!("mirror/vector:0.57.0"),
            "/spec/template/spec/containers/0/image",
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
        workload(
            "resources",
            json!({"requests": {"cpu": "2"}}),
            "/spec/template/spec/containers/0/resources",
            requests_only,
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
        workload(
            "env",
            json!([{"name": "A", "value": "1"}]),
            "/spec/template/spec/containers/0/env/0",
            json!({"name": "A", "value": "1"}),
        ),
        copied(
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
        copied(
            "readinessProbe",
            probe(),
            "/spec/template/spec/containers/0/readinessProbe",
        )
        .given(json!({"api": {"enabled": true, "healthcheck": true}})),
        copied(
            "livenessProbe",
            probe(),
            "/spec/template/spec/containers/0/livenessProbe",
        )
        .given(json!({"api": {"enabled": true, "healthcheck": true}})),
    ]
}

/// Returns the rows of the configuration reloader.
pub(super) fn config_reloader() -> Vec<Row> {
    let compressed = json!({"compressConfigFile": true});
    let resources = || json!({"requests": {"cpu": "2"}, "limits": {"cpu": "3"}});
    vec![
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

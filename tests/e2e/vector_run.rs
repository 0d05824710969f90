//! Workloads run the valid pipelines that they select.

use k8s_openapi::ByteString;
use lockstep_envtest::{Installation, eventually};
use serde_json::{Value, json};

use crate::env::{TestEnv, allow_workloads, condition};
use crate::running_vector::{AGENT, IMAGE, logs, object, start};

#[tokio::test(flavor = "multi_thread")]
async fn agents_run_the_selected_pipelines_and_an_invalid_change_runs_as_before() {
    let mut env = start().await;
    env.apply(&object(
        "Vector",
        "logs",
        &json!({"agent": {"api": {"enabled": true}}}),
    ));
    let default = env
        .configuration_that("the default source", AGENT, |config| !config.is_null())
        .await;
    assert_eq!(
        default["sources"]["defaultSource"]["type"],
        "kubernetes_logs"
    );

    env.apply(&object("VectorPipeline", "app", &logs("out")));
    let running = env
        .configuration_that("the pipeline", AGENT, |config| {
            config["sinks"]["default__app__out"].is_object()
        })
        .await;
    assert_eq!(
        running["sources"]["default__app__in"]["extra_namespace_label_selector"],
        "kubernetes.io/metadata.name=default"
    );
    assert_eq!(running["sources"]["defaultSource"], Value::Null);
    env.runs("app", Some(1), &[("Vector default/logs", Some(1))])
        .await;
    let daemon_set = env.get("daemonset/logs-agent");
    let container = &daemon_set["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        container["args"],
        json!(["--config-dir", "/etc/vector", "--watch-config"])
    );
    assert!(env.get("service/logs-agent").is_object());
    assert!(env.get("clusterrolebinding/logs-agent").is_object());

    changes_are_reloads_or_rolling_updates(&env, &daemon_set).await;
    drift_is_repaired(&env, &daemon_set, &running).await;

    // An invalid change that no webhook has denied: the pipeline runs as it last ran, also after a restart.
    env.installation
        .remove_webhook_configurations(&env.cluster)
        .expect("the webhook configurations are deleted");
    let mut invalid = logs("out");
    invalid["sinks"]["out"]["encoding"] = json!({"codec": "unknown"});
    env.apply(&object("VectorPipeline", "app", &invalid));
    env.condition_of(
        &env.objects(&object("VectorPipeline", "app", &invalid)),
        "app",
        "Valid",
        "False",
    )
    .await;
    env.installation
        .restart_controller_with(&[])
        .expect("restarted");
    env.apply(&object("VectorPipeline", "other", &logs("second")));
    let both = env
        .configuration_that("the other pipeline", AGENT, |config| {
            config["sinks"]["default__other__second"].is_object()
        })
        .await;
    assert_eq!(
        both["sinks"]["default__app__out"],
        running["sinks"]["default__app__out"]
    );
    env.runs("other", Some(1), &[("Vector default/logs", Some(1))])
        .await;
    // Its second generation is invalid.
    env.runs("app", Some(1), &[("Vector default/logs", Some(1))])
        .await;
    env.kubectl(&["delete", "vectorpipeline/other"])
        .expect("deleted");
    env.configuration_that("the pipeline alone", AGENT, |config| *config == running)
        .await;

    env.kubectl(&["delete", "vectorpipeline/app"])
        .expect("deleted");
    env.configuration_that("the default source", AGENT, |config| *config == default)
        .await;
    a_second_workload_reports_its_own_generation(&env).await;
    components_get_other_names_and_their_data_is_moved(&env).await;
    env.kubectl(&["delete", "vector/logs"]).expect("deleted");
    env.runs("last", None, &[]).await;
    let gone = eventually("the deletion of the objects", async || {
        let objects = "daemonset,service,secret,serviceaccount,clusterrole,clusterrolebinding";
        let selector = "--selector=app.kubernetes.io/managed-by=vector-operator";
        let left = env
            .kubectl(&["get", objects, selector, "--output=name"])
            .ok()?;
        left.trim().is_empty().then_some(())
    });
    gone.await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

/// Changes an option that Vector does not reload, and then nothing, while a pipeline has been reloaded before.
async fn changes_are_reloads_or_rolling_updates(env: &TestEnv, daemon_set: &Value) {
    let last = |env: &TestEnv| env.get("vector/logs")["status"]["lastChange"].clone();
    assert_eq!(last(env)["action"], "Reload", "{}", last(env));
    assert_eq!(last(env)["reasons"], json!(["pipeline default/app added"]));
    let expiring = json!({"agent": {"api": {"enabled": true}, "expireMetricsSecs": 60}});
    env.apply(&object("Vector", "logs", &expiring));
    let rolled = eventually("the rolling update", async || {
        Some(last(env)).filter(|change| change["action"] == "Roll")
    });
    let rolled = rolled
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    let reason = "options that Vector does not reload (api, expireMetricsSecs)";
    assert_eq!(rolled["reasons"], json!([reason]));
    assert_eq!(rolled["pods"], 1);
    let template = &env.get("daemonset/logs-agent")["spec"]["template"];
    assert_ne!(*template, daemon_set["spec"]["template"]);
    env.apply(&object(
        "Vector",
        "logs",
        &json!({"agent": {"api": {"enabled": true}}}),
    ));
    let again = eventually("the rolling update back", async || {
        let template = &env.get("daemonset/logs-agent")["spec"]["template"];
        (*template == daemon_set["spec"]["template"]).then_some(())
    });
    again
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

/// Deletes the `DaemonSet` and changes the configuration as another client.
async fn drift_is_repaired(env: &TestEnv, daemon_set: &Value, running: &Value) {
    env.kubectl(&["delete", "daemonset/logs-agent"])
        .expect("deleted");
    env.kubectl(&[
        "patch",
        "secret/logs-agent",
        "--type=merge",
        "--patch",
        r#"{"data":{"agent.json":"e30="}}"#,
    ])
    .expect("patched");
    env.configuration_that("the repaired configuration", AGENT, |config| {
        config == running
    })
    .await;
    let again = eventually("the DaemonSet", async || {
        let found = env.get("daemonset/logs-agent");
        let is_new = found["metadata"]["uid"] != daemon_set["metadata"]["uid"];
        (found.is_object() && is_new).then_some(())
    });
    again
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

/// Name of a policy that denies a `DaemonSet` with init containers.
const NO_INIT_CONTAINERS: &str = "no-init-containers";

/// Denies a `DaemonSet` with init containers, from then on.
async fn deny_init_containers(env: &TestEnv) {
    let metadata = json!({"name": NO_INIT_CONTAINERS});
    env.apply(&json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["daemonsets"],
                "operations": ["CREATE", "UPDATE"],
            }]},
            "validations": [{"expression": "!has(object.spec.template.spec.initContainers)"}],
        },
    }));
    env.apply(&json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": NO_INIT_CONTAINERS, "validationActions": ["Deny"]},
    }));
    admits_init_containers(env, false).await;
}

/// Waits until the API server admits an init container of the `DaemonSet`, or denies it.
async fn admits_init_containers(env: &TestEnv, is_admitted: bool) {
    let init = json!({"name": "probe", "image": "probe"});
    let patch = json!({"spec": {"template": {"spec": {"initContainers": [init]}}}}).to_string();
    let decided = eventually("the policy", async || {
        let args = [
            "patch",
            "daemonset/logs-agent",
            "--dry-run=server",
            "--patch",
            &patch,
        ];
        (env.kubectl(&args).is_ok() == is_admitted).then_some(())
    });
    decided
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

/// Changes the names of the components of the pipeline `last`.
async fn components_get_other_names_and_their_data_is_moved(env: &TestEnv) {
    let names = |names: &str| {
        let agent = json!({
            "api": {"enabled": true}, "componentNames": names, "mergeSources": true,
        });
        object("Vector", "logs", &json!({"agent": agent}))
    };
    let annotation = "lockstep.dev/data-migration";
    deny_init_containers(env).await;
    env.apply(&names("dashes"));
    // The present Pods keep the old names, however often their workload cannot be written.
    let ready = eventually("the rejected DaemonSet", async || {
        let conditions = &env.get("vector/logs")["status"]["conditions"];
        let mut conditions = conditions.as_array()?.iter();
        conditions.find(|it| it["type"] == "Ready" && it["status"] == "False")?;
        Some(())
    });
    ready
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    env.apply(&object("VectorPipeline", "last", &logs("between")));
    env.configuration_that("the change with the old names", AGENT, |config| {
        config["sinks"]["default__last__between"].is_object()
    })
    .await;
    for kind in [
        "validatingadmissionpolicybinding",
        "validatingadmissionpolicy",
    ] {
        env.kubectl(&["delete", kind, NO_INIT_CONTAINERS])
            .expect("deleted");
    }
    admits_init_containers(env, true).await;
    // A change that is observed ends the wait for the next attempt.
    env.kubectl(&["delete", "service/logs-agent"])
        .expect("deleted");
    let dashes = ("logs-agent-dashes-merged", "agent.json");
    let config = env
        .configuration_that("the new names", dashes, |config| {
            config["sinks"]["default-last-between"].is_object()
        })
        .await;
    let sources = config["sources"].as_object().expect("sources");
    let is_shared = |id: &String| id.starts_with("optimizedSource-");
    assert!(sources.keys().all(is_shared), "{sources:?}");
    let settled = eventually("the end of the migration", async || {
        let daemon_set = env.get("daemonset/logs-agent");
        let is_over = daemon_set["metadata"]["annotations"][annotation].is_null();
        let init = &daemon_set["spec"]["template"]["spec"]["initContainers"][0];
        let is_new = init["image"] == IMAGE;
        let is_alone = env.get("secret/logs-agent").is_null();
        (is_over && is_new && is_alone).then_some(daemon_set)
    });
    let settled = settled
        .await
        .unwrap_or_else(|error| env.fail(&format!("{error}\n{}", env.statuses())));
    let change = &env.get("vector/logs")["status"]["lastChange"];
    assert_eq!(change["action"], "Roll");
    let reasons = change["reasons"].as_array().expect("reasons");
    assert!(reasons.contains(&json!("initContainers")), "{change}");

    // Pipelines are reloaded, and the init container does not cause another rolling update.
    env.apply(&object("VectorPipeline", "last", &logs("other")));
    env.configuration_that("the change", dashes, |config| {
        config["sinks"]["default-last-other"].is_object()
    })
    .await;
    let daemon_set = env.get("daemonset/logs-agent");
    assert_eq!(daemon_set["spec"]["template"], settled["spec"]["template"]);
    assert_eq!(
        daemon_set["metadata"]["annotations"][annotation],
        Value::Null
    );
}

/// Creates a pipeline `last` that two workloads run, and then only one.
async fn a_second_workload_reports_its_own_generation(env: &TestEnv) {
    env.apply(&object("VectorPipeline", "last", &logs("out")));
    env.runs("last", Some(1), &[("Vector default/logs", Some(1))])
        .await;
    env.apply(&object("Vector", "more", &json!({"agent": {}})));
    let both = [
        ("Vector default/logs", Some(1)),
        ("Vector default/more", Some(1)),
    ];
    env.runs("last", Some(1), &both).await;
    let other = json!({"agent": {}, "selector": {"matchLabels": {"team": "b"}}});
    env.apply(&object("Vector", "more", &other));
    env.runs("last", Some(1), &both[..1]).await;
    env.kubectl(&["delete", "vector/more"]).expect("deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aggregator_serves_the_ports_of_its_pipelines() {
    let env = start().await;
    env.apply(&object(
        "VectorAggregator",
        "central",
        &json!({"replicas": 1}),
    ));
    let spec = json!({
        "sources": {"syslog_in": {"type": "syslog", "mode": "udp", "address": "0.0.0.0:5514"}},
        "sinks": {"out": {"type": "blackhole", "inputs": ["syslog_in"]}},
    });
    env.apply(&object("VectorPipeline", "net", &spec));
    let secret = ("central-aggregator", "config.json");
    env.configuration_that("the pipeline", secret, |config| {
        config["sources"]["default__net__syslog_in"].is_object()
    })
    .await;
    let service = eventually("the Service", async || {
        let service = env.get("service/central-aggregator-net");
        service.is_object().then_some(service)
    });
    let service = service
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    let port = &service["spec"]["ports"][0];
    assert_eq!(port["name"], "syslog-in");
    assert_eq!(port["port"], 5514);
    assert_eq!(port["protocol"], "UDP");
    let ready = eventually("the aggregator to be ready", async || {
        let aggregator = env.get("vectoraggregator/central");
        let conditions = aggregator["status"]["conditions"].as_array().cloned();
        let mut conditions = conditions.into_iter().flatten();
        conditions
            .any(|it| it["type"] == "Ready" && it["status"] == "True")
            .then_some(aggregator)
    });
    let aggregator = ready
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert_eq!(aggregator["status"]["runningPipelines"], 1);
    the_update_strategy_changes(&env).await;

    // The StatefulSet replaces the Deployment, which is removed only when its successor is ready.
    let persistent = json!({"replicas": 1, "persistence": {"enabled": true}});
    env.apply(&object("VectorAggregator", "central", &persistent));
    let created = eventually("the StatefulSet", async || {
        let found = env.get("statefulset/central-aggregator");
        found.is_object().then_some(found)
    });
    let stateful_set = created
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert!(env.get("deployment/central-aggregator").is_object());
    // Nothing provides volumes here, so its Pods do not start by themselves.
    env.cluster.freeze_controller_manager().expect("frozen");
    let generation = &stateful_set["metadata"]["generation"];
    let ready = json!({"status": {
        "observedGeneration": generation, "replicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        "updatedReplicas": 1, "currentReplicas": 1, "currentRevision": "a", "updateRevision": "a",
    }});
    let patch = ready.to_string();
    let arguments = [
        "patch",
        "statefulset/central-aggregator",
        "--subresource=status",
        "--type=merge",
        "--patch",
        &patch,
    ];
    env.kubectl(&arguments)
        .unwrap_or_else(|error| env.fail(&error));
    let replaced = eventually("the deletion of the Deployment", async || {
        let deployment = env.get("deployment/central-aggregator");
        let is_gone =
            deployment.is_null() || deployment["metadata"]["deletionTimestamp"].is_string();
        is_gone.then_some(())
    });
    replaced
        .await
        .unwrap_or_else(|error| env.fail(&format!("{error}\n{}", env.statuses())));
}

/// The API server sets the fields of a rolling update, which no other strategy may have.
async fn the_update_strategy_changes(env: &TestEnv) {
    let rolling = json!({"rollingUpdate": {"maxUnavailable": 1}});
    let cases = [
        ("deployment", "strategy", false, "Recreate"),
        ("statefulset", "updateStrategy", true, "OnDelete"),
    ];
    for (kind, field, is_persistent, other) in cases {
        let apply = |strategy: &Value| {
            let persistence = json!({"enabled": is_persistent});
            let spec = json!({
                "replicas": 0, "persistence": persistence, "updateStrategy": strategy,
            });
            env.apply(&object("VectorAggregator", kind, &spec));
        };
        for (strategy, type_) in [
            (json!({}), "RollingUpdate"),
            (json!({"type": other}), other),
            (rolling.clone(), "RollingUpdate"),
            (json!({"type": other}), other),
            (json!({}), "RollingUpdate"),
        ] {
            apply(&strategy);
            let changed = eventually("the strategy", async || {
                let owned = env.get(&format!("{kind}/{kind}-aggregator"));
                (owned["spec"][field]["type"] == type_).then_some(())
            });
            changed
                .await
                .unwrap_or_else(|error| env.fail(&format!("{kind}: {error}\n{}", env.statuses())));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_waits_for_its_secret_and_gets_each_new_value() {
    let mut env = start().await;
    env.apply(&object("Vector", "logs", &json!({"agent": {}})));
    let mut with_secret = logs("out");
    with_secret["secret"] = json!({"api": {"type": "kubernetes_secret", "name": "api-keys"}});
    with_secret["sinks"]["out"] = json!({
        "type": "datadog_logs", "inputs": ["in"], "default_api_key": "SECRET[api.key]",
    });
    env.apply(&object("VectorPipeline", "keyed", &with_secret));
    env.apply(&object("VectorPipeline", "plain", &logs("out")));
    env.configuration_that("the pipeline without a Secret", AGENT, |config| {
        config["sinks"]["default__plain__out"].is_object()
    })
    .await;
    let waits = eventually("the reason", async || {
        let vector = env.get("vector/logs");
        let reasons = vector["status"]["notRunning"]
            .as_array()?
            .first()?
            .as_str()?
            .to_owned();
        reasons.contains("api-keys").then_some(reasons)
    });
    let reason = waits
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert_eq!(
        reason,
        "default/keyed: the Secret `api-keys` does not exist"
    );
    env.runs("keyed", Some(0), &[("Vector default/logs", None)])
        .await;

    for value in ["first", "second"] {
        let data = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "api-keys"},
            "stringData": {"key": value}});
        env.apply(&data);
        let published = eventually("the value", async || {
            let secret = env.get("secret/logs-agent-secret-assets");
            let published = &secret["data"]["default__keyed__api.key"];
            let published: ByteString = serde_json::from_value(published.clone()).ok()?;
            (published.0 == value.as_bytes()).then_some(())
        });
        published
            .await
            .unwrap_or_else(|error| env.fail(&format!("{error}\n{}", env.statuses())));
    }
    let config = env
        .configuration_that("the pipeline with its Secret", AGENT, |config| {
            config["sinks"]["default__keyed__out"].is_object()
        })
        .await;
    let key = &config["sinks"]["default__keyed__out"]["default_api_key"];
    assert_eq!(key, "SECRET[k8s.default__keyed__api.key]");
    let statuses = env.statuses();
    assert!(!statuses.contains("second"), "{statuses}");

    // Without its Secret, it runs on with the last value.
    env.kubectl(&["delete", "secret/api-keys"])
        .expect("deleted");
    let waits = eventually("the reason", async || {
        let vector = env.get("vector/logs");
        vector["status"]["notRunning"].is_array().then_some(())
    });
    waits
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert_eq!(env.configuration(AGENT.0, AGENT.1), config);
    let assets = env.get("secret/logs-agent-secret-assets");
    assert!(assets["data"]["default__keyed__api.key"].is_string());

    // Another pipeline of its name does not run what it ran.
    env.installation.controller().kill();
    env.kubectl(&["delete", "vectorpipeline/keyed"])
        .expect("deleted");
    env.apply(&object("VectorPipeline", "keyed", &with_secret));
    env.installation.start_controller().expect("started");
    env.configuration_that("the other pipeline alone", AGENT, |config| {
        config["sinks"]["default__keyed__out"].is_null()
            && config["sinks"]["default__plain__out"].is_object()
    })
    .await;
    env.runs("keyed", Some(0), &[("Vector default/logs", None)])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_needs_permissions_on_the_secrets_of_its_own_namespace_only() {
    let mut env = start().await;
    env.apply(&object("Vector", "logs", &json!({"agent": {}})));
    env.apply(&object("VectorPipeline", "app", &logs("out")));
    let is_running = |config: &Value| config["sinks"]["default__app__out"].is_object();
    env.configuration_that("the pipeline", AGENT, is_running)
        .await;

    env.kubectl(&["create", "namespace", "team"])
        .expect("a namespace");
    allow_workloads(&env.cluster, "team");
    let mut other = object("Vector", "logs", &json!({"agent": {}}));
    other["metadata"]["namespace"] = json!("team");
    env.apply(&other);
    let workloads = env.objects(&other);
    let ready = eventually("the missing permission in the status", async || {
        let ready = condition(&workloads.get("logs").await.ok()?, "Ready")?;
        (ready.reason == "ChildrenUnknown").then_some(ready.message)
    });
    let message = ready
        .await
        .unwrap_or_else(|error| env.fail(&format!("{error}\n{}", env.statuses())));
    let expected = "the watch on secrets in the namespace `team` is forbidden: grant `list` and `watch` on secrets";
    assert_eq!(message, expected);
    env.condition_of(&workloads, "logs", "Valid", "True").await;

    // The other workload runs on, also after a restart.
    env.installation
        .restart_controller_with(&[])
        .expect("restarted");
    env.apply(&object("VectorPipeline", "app", &logs("other")));
    env.configuration_that("the changed pipeline", AGENT, |config| {
        config["sinks"]["default__app__other"].is_object()
    })
    .await;
    let made = env.kubectl(&["get", "daemonset/logs-agent", "--namespace=team"]);
    made.expect_err("nothing is created in the other namespace");

    let allowed = Installation::allow_secrets(&env.cluster, "team").await;
    allowed.expect("a RoleBinding");
    env.condition_of(&workloads, "logs", "Valid", "True").await;
    let made = eventually("the DaemonSet", async || {
        let found = env.kubectl(&["get", "daemonset/logs-agent", "--namespace=team"]);
        found.ok()
    });
    made.await
        .unwrap_or_else(|error| env.fail(&format!("{error}\n{}", env.statuses())));
}

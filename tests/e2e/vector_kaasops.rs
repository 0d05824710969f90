//! Scenarios of the end-to-end tests of kaasops' operator: what its users rely on.
//!
//! Each scenario has a namespace and a label of its own; all of them share a cluster. `docs/vector/migration.md` lists the
//! differences.

mod scenario;

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::running_vector::start;
use crate::vector_kaasops::scenario::*;

#[tokio::test(flavor = "multi_thread")]
async fn scenarios_of_the_operator_of_kaasops_have_the_same_results() {
    let mut env = start().await;
    // Before the controller starts: it looks for this type only then.
    env.installation.controller().kill();
    env.create_pod_monitor_crd();
    let preset = "settings: {vector: {preset: kaasops}}";
    env.installation.set_policy(preset).expect("a policy");
    env.installation.start_controller().expect("started");
    // Together: some of them wait until Secrets are read again.
    tokio::join!(
        agents_and_aggregators(&env),
        selectors(&env),
        namespaces(&env),
        persistence(&env),
        secrets(&env),
        limits(&env),
        pod_monitors(&env),
        forced_validation(&env),
    );
    nothing_is_left_of_deleted_namespaces(&env);
}

/// Cluster-scoped objects have no owner in a namespace: the finalizer of the workload deletes them.
fn nothing_is_left_of_deleted_namespaces(env: &TestEnv) {
    let left = || {
        let selector = "--selector=app.kubernetes.io/managed-by=vector-operator";
        let types = "clusterroles,clusterrolebindings";
        let left = env.kubectl(&["get", types, selector, "--output=name"]);
        left.unwrap_or_else(|error| env.fail(&error))
    };
    assert!(left().contains("-agent"), "{}", left());
    let cluster_scoped = "clustervectoraggregators,clustervectorpipelines";
    env.kubectl(&["delete", cluster_scoped, "--all", "--timeout=60s"])
        .unwrap_or_else(|error| env.fail(&error));
    // The claims of `persistent` stay: the cluster has no controller that removes their finalizer.
    let namespaces = "first second forced limits limits-other monitors normal secrets selectors";
    let namespaces: Vec<_> = namespaces.split(' ').collect();
    env.kubectl(&[&["delete", "namespace", "--timeout=120s"], &namespaces[..]].concat())
        .unwrap_or_else(|error| env.fail(&error));
    env.kubectl(&[
        "delete",
        "vectoraggregators",
        "--all",
        "--namespace=persistent",
        "--timeout=60s",
    ])
    .unwrap_or_else(|error| env.fail(&error));
    assert_eq!(left(), "");
}

async fn agents_and_aggregators(env: &TestEnv) {
    let scenario = Scenario::start(env, "normal").await;
    agents(&scenario).await;
    aggregator(&scenario).await;
    isolation(&scenario).await;
}

async fn agents(scenario: &Scenario<'_>) {
    scenario.apply_agents("all", &json!({}));
    scenario.exists("daemonset/all-agent").await;
    scenario.apply("VectorPipeline", "basic", &logs("kubernetes_logs", "app=a"));
    let mut complex = logs("pods", "app=a");
    complex["transforms"] = json!({
        "parse": {"type": "remap", "inputs": ["pods"], "source": ".parsed = parse_json!(.message)"},
        "filter": {"type": "filter", "inputs": ["parse"], "condition": ".level == \"info\""},
        "typed": {"type": "filter", "inputs": ["parse"],
            "condition": {"type": "vrl", "source": ".level != \"debug\""}},
    });
    complex["sinks"] = json!({
        "all": {"type": "console", "inputs": ["parse", "typed"], "encoding": {"codec": "json"}},
        "some": {"type": "console", "inputs": ["filter"], "encoding": {"codec": "text"}},
    });
    scenario.apply("VectorPipeline", "complex", &complex);
    for name in ["p-1", "p-2", "p-3", "deleted"] {
        scenario.apply("VectorPipeline", name, &logs("in", "app=a"));
    }
    assert_eq!(scenario.role("VectorPipeline", "basic").await, "agent");
    let components = [
        "normal-basic-kubernetes_logs",
        "normal-basic-console",
        "normal-complex-parse",
        "normal-complex-typed",
        "normal-complex-some",
        "normal-p-1-in",
        "normal-p-2-console",
        "normal-p-3-in",
        "normal-deleted-in",
    ];
    let config = scenario.agents_run("all", &components).await;
    let inputs = &config["sinks"]["normal-complex-all"]["inputs"];
    assert_eq!(
        *inputs,
        json!(["normal-complex-parse", "normal-complex-typed"])
    );
    scenario
        .env
        .kubectl(&["delete", "vectorpipeline/deleted", "--namespace=normal"])
        .expect("deleted");
    scenario
        .until("secret/all-agent", |it| {
            let config = content(it, "agent.json");
            config["sources"]["normal-deleted-in"].is_null() && config["sources"].is_object()
        })
        .await;
}

async fn aggregator(scenario: &Scenario<'_>) {
    scenario.apply_aggregator(
        "VectorAggregator",
        "central",
        &json!({"app": "a"}),
        &json!({}),
    );
    let mut pipeline = scenario.object("VectorPipeline", "received", &received(9000));
    pipeline["metadata"]["labels"]["app"] = json!("a");
    pipeline["metadata"]["annotations"] = json!({"vector.kaasops.io/role": "Aggregator"});
    scenario.env.apply(&pipeline);
    assert_eq!(
        scenario.role("VectorPipeline", "received").await,
        "aggregator"
    );
    let components = ["normal-received-vector_source", "normal-received-process"];
    let secret = "central-aggregator";
    scenario.runs(secret, "config.json", &components).await;
    scenario
        .until("deployment/central-aggregator", |it| {
            it["status"]["readyReplicas"] == 1
        })
        .await;
    let service = scenario.exists("service/central-aggregator-received").await;
    let port = &service["spec"]["ports"][0];
    assert_eq!(
        (&port["name"], &port["port"]),
        (&json!("vector-source"), &json!(9000))
    );
}

/// A tenant's source reads only the Pods of the tenant's namespace; that of a cluster-scoped pipeline, all.
async fn isolation(scenario: &Scenario<'_>) {
    scenario.add_namespace("isolated").await;
    let mut isolated = scenario.object("VectorPipeline", "own", &logs("in", "app=b"));
    isolated["metadata"]["namespace"] = json!("isolated");
    scenario.env.apply(&isolated);
    scenario.apply(
        "ClusterVectorPipeline",
        "wide",
        &logs("in", "monitored=yes"),
    );
    assert_eq!(
        scenario.role("ClusterVectorPipeline", "wide").await,
        "agent"
    );
    let config = scenario
        .agents_run("all", &["isolated-own-in", "wide-in", "wide-console"])
        .await;
    let namespaces = |source: &str| &config["sources"][source]["extra_namespace_label_selector"];
    assert_eq!(
        *namespaces("isolated-own-in"),
        "kubernetes.io/metadata.name=isolated"
    );
    assert_eq!(*namespaces("wide-in"), Value::Null);
    assert_eq!(
        config["sources"]["wide-in"]["extra_label_selector"],
        "monitored=yes"
    );
}

async fn selectors(env: &TestEnv) {
    let scenario = Scenario::start(env, "selectors").await;
    scenario.apply_agents("picked", &json!({}));
    let kind = "ClusterVectorAggregator";
    scenario.apply_aggregator(kind, "matching", &json!({"team": "platform"}), &json!({}));
    scenario.apply_aggregator(kind, "other", &json!({"team": "backend"}), &json!({}));
    scenario.apply_aggregator(kind, "any", &Value::Null, &json!({}));
    let mut labelled = scenario.object("ClusterVectorPipeline", "labelled", &logs("in", "a=b"));
    labelled["metadata"]["labels"]["team"] = json!("platform");
    env.apply(&labelled);
    scenario.apply("ClusterVectorPipeline", "plain", &logs("in", "a=b"));
    let mut port = scenario.object("ClusterVectorPipeline", "port", &received(9100));
    port["metadata"]["labels"]["team"] = json!("platform");
    env.apply(&port);
    for (name, role) in [
        ("labelled", "agent"),
        ("plain", "agent"),
        ("port", "aggregator"),
    ] {
        assert_eq!(scenario.role("ClusterVectorPipeline", name).await, role);
    }
    scenario
        .agents_run("picked", &["labelled-in", "plain-in"])
        .await;
    for aggregator in ["matching-aggregator", "any-aggregator"] {
        scenario
            .runs(aggregator, "config.json", &["port-vector_source"])
            .await;
    }
    // The other aggregator has the default source.
    let config = scenario
        .runs("other-aggregator", "config.json", &["defaultSource"])
        .await;
    assert_eq!(config["sources"]["port-vector_source"], Value::Null);
}

async fn namespaces(env: &TestEnv) {
    let scenario = Scenario::start(env, "first").await;
    let other = Scenario::start(env, "second").await;
    scenario.apply_secret("credentials", &json!({"api-key": "value"}));
    let key = json!({"secretKeyRef": {"name": "credentials", "key": "api-key"}});
    let more = json!({"env": [{"name": "API_KEY", "valueFrom": key}]});
    let labels = json!({"app": "namespaces"});
    scenario.apply_aggregator("VectorAggregator", "with", &labels, &more);
    other.apply_aggregator("VectorAggregator", "without", &labels, &more);
    let mut pipeline = scenario.object("VectorPipeline", "received", &received(9000));
    pipeline["metadata"]["labels"]["app"] = json!("namespaces");
    env.apply(&pipeline);
    assert_eq!(
        scenario.role("VectorPipeline", "received").await,
        "aggregator"
    );
    let secret = "with-aggregator";
    scenario
        .runs(secret, "config.json", &["first-received-process"])
        .await;
    let config = other
        .runs("without-aggregator", "config.json", &["defaultSource"])
        .await;
    assert_eq!(
        config["sources"].as_object().map(serde_json::Map::len),
        Some(1)
    );
}

async fn persistence(env: &TestEnv) {
    let scenario = Scenario::start(env, "persistent").await;
    let more = json!({"persistence": {"enabled": true, "size": "1Gi"}});
    scenario.apply_aggregator("VectorAggregator", "kept", &json!({"app": "a"}), &more);
    let stateful_set = scenario.exists("statefulset/kept-aggregator").await;
    assert_eq!(
        stateful_set["spec"]["serviceName"],
        "kept-aggregator-headless"
    );
    let service = scenario.exists("service/kept-aggregator-headless").await;
    assert_eq!(service["spec"]["clusterIP"], "None");
    // Nothing provides volumes here, so the claim is not bound.
    let claim = scenario.exists("pvc/data-kept-aggregator-0").await;
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "1Gi");
    assert_eq!(claim["spec"]["accessModes"], json!(["ReadWriteOnce"]));
    assert_eq!(scenario.get("deployment/kept-aggregator"), Value::Null);
}

async fn secrets(env: &TestEnv) {
    let scenario = Scenario::start(env, "secrets").await;
    scenario.apply_secret(
        "creds",
        &json!({"username": "first-user", "password": "first-pass"}),
    );
    scenario.apply_agents("keyed", &json!({}));
    scenario.apply("VectorPipeline", "es", &with_secret("creds", None));
    scenario.role("VectorPipeline", "es").await;
    let config = scenario.agents_run("keyed", &["secrets-es-out"]).await;
    let auth = &config["sinks"]["secrets-es-out"]["auth"];
    assert_eq!(auth["user"], "SECRET[k8s.secrets__es__es.username]");
    let backend = json!({"type": "directory", "path": "/etc/vector/secrets"});
    assert_eq!(config["secret"]["k8s"], backend);
    assert!(!config.to_string().contains("first-"), "{config}");
    let has = |file: &'static str, value: &'static str| {
        move |assets: &Value| {
            let expected = json!(ByteString(value.as_bytes().to_vec()));
            assets["data"][file] == expected
        }
    };
    let assets = "secret/keyed-agent-secret-assets";
    scenario
        .until(assets, has("secrets__es__es.username", "first-user"))
        .await;
    scenario
        .until(assets, has("secrets__es__es.password", "first-pass"))
        .await;

    // A new value changes nothing but the Secret with the values.
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    let before = version(&scenario.get("secret/keyed-agent"));
    scenario.apply_secret(
        "creds",
        &json!({"username": "second-user", "password": "first-pass"}),
    );
    scenario
        .until(assets, has("secrets__es__es.username", "second-user"))
        .await;
    assert_eq!(version(&scenario.get("secret/keyed-agent")), before);

    // The webhook denies what that operator reports in the status.
    let mut undeclared = with_secret("creds", None);
    undeclared["sinks"]["out"]["auth"]["user"] = json!("SECRET[undeclared.key]");
    let denied = env.kubectl_apply(&scenario.object("VectorPipeline", "undeclared", &undeclared));
    let message = denied.expect_err("an undeclared alias");
    assert!(message.contains("undeclared"), "{message}");
    // VRL programs of tenants do not get values: a program can send them anywhere.
    let mut stamped = logs("in", "a=b");
    stamped["secret"] = json!({"probe": {"type": "kubernetes_secret", "name": "creds"}});
    stamped["transforms"] = json!({"stamp": {
        "type": "remap", "inputs": ["in"], "source": ".token = \"SECRET[probe.username]\"",
    }});
    stamped["sinks"]["console"]["inputs"] = json!(["stamp"]);
    let denied = env.kubectl_apply(&scenario.object("VectorPipeline", "stamped", &stamped));
    let message = denied.expect_err("a Secret in VRL");
    assert!(
        message.contains("spec.transforms[stamp].source"),
        "{message}"
    );

    scenario.apply_secret(
        "cluster-creds",
        &json!({"username": "wide-user", "password": "wide-pass"}),
    );
    let wide = with_secret("cluster-creds", Some("secrets"));
    scenario.apply("ClusterVectorPipeline", "wide-es", &wide);
    let config = scenario.agents_run("keyed", &["wide-es-out"]).await;
    let auth = &config["sinks"]["wide-es-out"]["auth"];
    assert_eq!(auth["password"], "SECRET[k8s.__wide-es__es.password]");
    scenario
        .until(assets, has("__wide-es__es.password", "wide-pass"))
        .await;
}

/// Values of two tenants that do not fit into one Secret: the second tenant waits, and the first is not affected.
async fn limits(env: &TestEnv) {
    let scenario = Scenario::start(env, "limits").await;
    let other = Scenario::start(env, "limits-other").await;
    let credentials = |bytes: usize| json!({"username": "x".repeat(bytes), "password": "p"});
    scenario.apply_secret("creds", &credentials(600 << 10));
    scenario.apply_agents("limited", &json!({}));
    scenario.apply("VectorPipeline", "first", &with_secret("creds", None));
    scenario.agents_run("limited", &["limits-first-out"]).await;

    other.apply_secret("creds", &credentials(600 << 10));
    let mut second = other.object("VectorPipeline", "second", &with_secret("creds", None));
    second["metadata"]["labels"][LABEL] = json!(scenario.namespace);
    env.apply(&second);
    let vector = scenario
        .until("vector/limited", |it| it["status"]["notRunning"].is_array())
        .await;
    let reason = vector["status"]["notRunning"][0]
        .as_str()
        .unwrap_or_default();
    assert!(reason.starts_with("limits-other/second: "), "{reason}");
    assert!(reason.contains("1048576"), "{reason}");
    let mut changed = with_secret("creds", None);
    changed["sources"]["logs"]["extra_label_selector"] = json!("changed=yes");
    scenario.apply("VectorPipeline", "first", &changed);
    let has_changed = |it: &Value| {
        let source = &content(it, "agent.json")["sources"]["limits-first-logs"];
        source["extra_label_selector"] == "changed=yes"
    };
    let secret = scenario.until("secret/limited-agent", has_changed).await;
    let config = content(&secret, "agent.json");
    assert_eq!(
        config["sources"].as_object().map(serde_json::Map::len),
        Some(1),
        "{config}"
    );
    let assets = scenario.get("secret/limited-agent-secret-assets");
    assert_eq!(
        assets["data"].as_object().map(serde_json::Map::len),
        Some(2)
    );

    other.apply_secret("creds", &credentials(10));
    let components = ["limits-first-out", "limits-other-second-out"];
    scenario.agents_run("limited", &components).await;
    scenario
        .until("vector/limited", |it| it["status"]["notRunning"].is_null())
        .await;
}

async fn pod_monitors(env: &TestEnv) {
    let scenario = Scenario::start(env, "monitors").await;
    let metrics = |interval: &str, timeout: &str| json!({"internalMetrics": true, "scrapeInterval": interval, "scrapeTimeout": timeout});
    let default = json!({"internalMetrics": true});
    scenario.apply_agents("set", &metrics("45s", "15s"));
    scenario.apply_agents("unset", &default);
    scenario.apply_agents("off", &json!({"internalMetrics": false}));
    let labels = json!({"app": "a"});
    for (kind, prefix) in [
        ("VectorAggregator", "own"),
        ("ClusterVectorAggregator", "wide"),
    ] {
        let name = format!("{prefix}-set");
        scenario.apply_aggregator(kind, &name, &labels, &metrics("60s", "20s"));
        let name = format!("{prefix}-unset");
        scenario.apply_aggregator(kind, &name, &labels, &default);
    }
    let endpoint = |monitor: &Value| {
        let endpoint = &monitor["spec"]["podMetricsEndpoints"][0];
        (
            endpoint["interval"].clone(),
            endpoint["scrapeTimeout"].clone(),
        )
    };
    for (name, component, interval, timeout) in [
        ("set-agent", "Agent", json!("45s"), json!("15s")),
        ("unset-agent", "Agent", Value::Null, Value::Null),
        (
            "own-set-aggregator",
            "Aggregator",
            json!("60s"),
            json!("20s"),
        ),
        (
            "own-unset-aggregator",
            "Aggregator",
            Value::Null,
            Value::Null,
        ),
        (
            "wide-set-aggregator",
            "Aggregator",
            json!("60s"),
            json!("20s"),
        ),
        (
            "wide-unset-aggregator",
            "Aggregator",
            Value::Null,
            Value::Null,
        ),
    ] {
        let monitor = scenario.exists(&format!("podmonitor/{name}")).await;
        assert_eq!(endpoint(&monitor), (interval, timeout), "{name}");
        let selector = &monitor["spec"]["selector"]["matchLabels"];
        assert_eq!(selector["app.kubernetes.io/component"], component, "{name}");
        let instance = name.rsplit_once('-').map(|(instance, _)| instance);
        assert_eq!(selector["app.kubernetes.io/instance"].as_str(), instance);
    }
    scenario.exists("daemonset/off-agent").await;
    assert_eq!(scenario.get("podmonitor/off-agent"), Value::Null);
    scenario.apply_agents("set", &metrics("90s", "30s"));
    scenario
        .until("podmonitor/set-agent", |it| {
            endpoint(it) == (json!("90s"), json!("30s"))
        })
        .await;

    // Agents have an exporter of their own unless a pipeline has one.
    scenario.apply("VectorPipeline", "plain", &logs("in", "a=b"));
    scenario
        .agents_run("unset", &["monitors-plain-in", "internalMetricsSink"])
        .await;
    let mut exporting = logs("in", "a=b");
    exporting["transforms"] = json!({"counted": {
        "type": "log_to_metric", "inputs": ["in"],
        "metrics": [{"type": "counter", "field": "message", "name": "lines", "namespace": "own"}],
    }});
    exporting["sinks"] = json!({"exporter": {
        "type": "prometheus_exporter", "inputs": ["counted"], "address": "0.0.0.0:9599",
    }});
    scenario.apply("VectorPipeline", "exporting", &exporting);
    let config = scenario
        .agents_run("unset", &["monitors-exporting-exporter"])
        .await;
    assert_eq!(config["sinks"]["internalMetricsSink"], Value::Null);

    for workload in ["vector/set", "vectoraggregator/own-set"] {
        env.kubectl(&["delete", workload, "--namespace=monitors"])
            .expect("deleted");
    }
    for name in ["set-agent", "own-set-aggregator"] {
        scenario
            .until(&format!("podmonitor/{name}"), Value::is_null)
            .await;
    }
}

/// Pipelines are validated in process after each change, so that the annotation is not needed.
async fn forced_validation(env: &TestEnv) {
    let scenario = Scenario::start(env, "forced").await;
    scenario.apply_agents("checked", &json!({}));
    for (kind, name, source) in [
        ("VectorPipeline", "p", "forced-p-in"),
        ("ClusterVectorPipeline", "forced-wide", "forced-wide-in"),
    ] {
        let mut pipeline = scenario.object(kind, name, &logs("in", "a=b"));
        for value in [None, Some("v1"), Some("v1"), Some("v2")] {
            let annotation = "vector-operator.kaasops.io/force-configcheck";
            pipeline["metadata"]["annotations"] = json!({annotation: value});
            env.apply(&pipeline);
            assert_eq!(scenario.role(kind, name).await, "agent");
        }
        scenario.agents_run("checked", &[source]).await;
    }
}

//! Vector's operator on a real node: agents and aggregators run the pipelines of tenants. A stand-in represents Vector.

mod changes;
mod checks;
mod pipelines;
mod reloads;
mod warm;

use std::process::Command;
use std::time::SystemTime;

use lockstep_envtest::{Installation, eventually_within};
use lockstep_test::service_account_client;
use serde_json::{Value, json};

use crate::installation::install_by;
use crate::site::{PODS, Site, TEAM};
use crate::stand_in::{self, IMAGE, VectorPod};
use pipelines::{Pipelines, id};

const KINDS: &str =
    "*,Vector,VectorAggregator,ClusterVectorAggregator,VectorPipeline,ClusterVectorPipeline";

/// Number of Pods of the aggregator.
const REPLICAS: usize = 2;

pub async fn runs(site: &Site) {
    stand_in::import_image(site);
    install_by(site, install).await;
    site.kubectl(&["create", "namespace", TEAM]);
    let mark = "lockstep.dev/vector-workloads=allowed";
    site.kubectl(&["annotate", "namespace", TEAM, mark]);
    let allowed = Installation::allow_secrets(site.cluster(), TEAM).await;
    allowed.expect("a RoleBinding");
    let tenant = tenant(site).await;

    // The first use of a Secret restarts the agents, so that it comes first.
    site.apply(&secret("first")).expect("a Secret");
    tenant.create("keyed", &pipelines::keyed()).await;
    for workload in workloads(300) {
        site.apply(&workload).expect("the workload is admitted");
    }
    tenant.create("net", &pipelines::network()).await;
    are_ready(site);
    let agent = one_agent(site).await;
    for aggregator in VectorPod::all(site, TEAM, "Aggregator").await {
        let runs = |source: &Value| source["address"] == "0.0.0.0:5140";
        aggregator
            .report_that(site, "the pipeline of the aggregator", |it| {
                runs(it.component("sources", &id("net", "in")))
            })
            .await;
    }

    changes::arrive(site, &tenant, &agent).await;
    a_new_value_of_a_secret_arrives(site, &agent).await;
    let agent = reloads::are_reported(site, &tenant, agent).await;
    checks::decide(site, &tenant).await;
    warm::decide(site, &tenant).await;
    an_invalid_pipeline_never_arrives(site, &tenant, &agent).await;
    options_that_vector_does_not_reload_restart_the_pods(site, &agent).await;
    nothing_is_left_after_the_deletion(site, &tenant).await;
}

/// Applies the manifests with the kinds of Vector.
async fn install(site: &Site) {
    let folder = site.node.directory().join("vector-manifests");
    let written = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["manifests", &format!("--kinds={KINDS}")])
        .arg(&folder)
        .status();
    assert!(written.expect("the program runs").success());
    for base in ["crds", "crd-protection"] {
        site.kubectl(&["apply", "-k", &folder.join(base).to_string_lossy()]);
    }
    site.kubectl(&["wait", "--for=condition=Established", "crd", "--all"]);
    site.kubectl(&["apply", "-k", &folder.to_string_lossy()]);
    reloads::set_timeout(site);
}

/// Creates a service account that may write pipelines, and nothing else.
async fn tenant(site: &Site) -> Pipelines {
    site.kubectl(&["create", "serviceaccount", "tenant"]);
    let verbs = "--verb=get,list,create,patch,delete";
    let resource = "--resource=vectorpipelines.observability.kaasops.io";
    site.kubectl(&["create", "role", "tenant", verbs, resource, "-n", TEAM]);
    let account = "--serviceaccount=default:tenant";
    let binding = ["create", "rolebinding", "tenant", "--role=tenant"];
    site.kubectl(&[&binding[..], &[account, "-n", TEAM]].concat());
    Pipelines::of(service_account_client(site.cluster(), "tenant").await)
}

/// Returns an agent and an aggregator with probes of Vector's API. Their Vector has not all sinks: the pipelines of the aggregator
/// are checked in Pods, and those of the agent are not. `expire_metrics_secs` is an option that Vector does not
/// reload.
fn workloads(expire_metrics_secs: u64) -> [Value; 2] {
    let health = json!({"path": "/health", "port": 8686});
    let settings = json!({
        "image": IMAGE,
        "api": {"enabled": true, "healthcheck": true},
        "readinessProbe": {"httpGet": health, "periodSeconds": 1},
        "expireMetricsSecs": expire_metrics_secs,
        "env": [{"name": vector_stand_in::MISSING_SINK, "value": checks::MISSING_SINK}],
        "reload": {"evictStuckPods": true},
    });
    let mut aggregator = settings.clone();
    aggregator["replicas"] = json!(REPLICAS);
    aggregator["configCheck"] = json!({"mode": "Pod"});
    let object = |kind: &str, spec: &Value| {
        json!({
            "apiVersion": pipelines::API_VERSION,
            "kind": kind,
            "metadata": {"name": "logs", "namespace": TEAM},
            "spec": spec,
        })
    };
    [
        object("Vector", &json!({"agent": settings})),
        object("VectorAggregator", &aggregator),
    ]
}

fn secret(value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "api-keys", "namespace": TEAM},
        "stringData": {"key": value},
    })
}

/// Waits until the kubelet has found all Pods ready.
fn are_ready(site: &Site) {
    let timeout = format!("--timeout={}s", PODS.as_secs());
    for workload in ["vector/logs", "vectoraggregator/logs"] {
        let ready = ["wait", "--for=condition=Ready", workload, "-n", TEAM];
        site.kubectl(&[&ready[..], &[&timeout]].concat());
    }
    for object in ["daemonset/logs-agent", "deployment/logs-aggregator"] {
        site.kubectl(&["rollout", "status", object, "-n", TEAM, &timeout]);
    }
}

async fn one_agent(site: &Site) -> VectorPod {
    let mut agents = VectorPod::all(site, TEAM, "Agent").await;
    assert_eq!(agents.len(), 1, "{agents:?}");
    agents.remove(0)
}

async fn a_new_value_of_a_secret_arrives(site: &Site, agent: &VectorPod) {
    let before = agent.report(site).await.secrets;
    site.apply(&secret("second")).expect("a Secret");
    let written = SystemTime::now();
    let report = agent
        .report_that(site, "the new value of the Secret", |it| {
            it.secrets != before
        })
        .await;
    let took = report.loaded_at().duration_since(written);
    println!(
        "a new value of a Secret runs after {:.2} s",
        took.unwrap_or_default().as_secs_f64()
    );
}

/// The webhook denies it; and the controller does not publish it, if it is stored without the webhook.
async fn an_invalid_pipeline_never_arrives(site: &Site, tenant: &Pipelines, agent: &VectorPod) {
    let running = agent.report(site).await;
    let invalid = json!({"sinks": {"out": {"encoding": {"codec": "unknown"}}}});
    let denied = tenant.change("p0", &invalid).await;
    let denied = denied.expect_err("the webhook denies it").to_string();
    assert!(
        denied.contains("spec.sinks[out].encoding.codec"),
        "{denied}"
    );

    let webhooks = "validatingwebhookconfiguration,mutatingwebhookconfiguration";
    site.kubectl(&["delete", webhooks, "--all"]);
    let stored = eventually_within(PODS, "an API server without the webhook", async || {
        tenant.change("p0", &invalid).await.ok()
    });
    let stored = stored.await;
    stored.unwrap_or_else(|error| site.fail(&error.to_string()));
    let not_valid = ["wait", "--for=condition=Valid=false", "vectorpipeline/p0"];
    site.kubectl(&[&not_valid[..], &["-n", TEAM, "--timeout=60s"]].concat());
    let valid = pipelines::marked("after");
    let changed = tenant.change("p1", &valid).await;
    changed.expect("a valid change");
    let after = agent
        .report_that(site, "a later change of another pipeline", |it| {
            pipelines::has_mark(it, "p1", "after")
        })
        .await;
    let sink = id("p0", "out");
    let before = running.component("sinks", &sink);
    assert!(before.is_object(), "{running:?}");
    assert_eq!(after.component("sinks", &sink), before);
    assert_eq!(after.rejected, None);
}

async fn options_that_vector_does_not_reload_restart_the_pods(site: &Site, agent: &VectorPod) {
    let before = VectorPod::all(site, TEAM, "Aggregator").await;
    assert_eq!(before.len(), REPLICAS);
    let deployment = ["get", "deployment/logs-aggregator", "-n", TEAM];
    let deployment = [&deployment[..], &["--output=json"]].concat();
    for workload in workloads(600) {
        site.apply(&workload).expect("the workload is admitted");
    }
    let replaced = eventually_within(PODS, "new Pods of both workloads", async || {
        let deployment: Value = serde_json::from_str(&site.kubectl(&deployment)).ok()?;
        // Of two Pods, the default of 25% lets none be unavailable.
        let available = deployment["status"]["availableReplicas"].as_u64();
        assert!(available >= Some(REPLICAS as u64), "{deployment}");
        let aggregators = VectorPod::all(site, TEAM, "Aggregator").await;
        let agents = VectorPod::all(site, TEAM, "Agent").await;
        let is_new = |pod: &VectorPod| before.iter().all(|old| old.name != pod.name);
        let are_new = aggregators.len() == REPLICAS
            && aggregators.iter().all(is_new)
            && agents.iter().all(|pod| pod.name != agent.name);
        are_new.then_some(())
    });
    let replaced = replaced.await;
    replaced.unwrap_or_else(|error| site.fail(&error.to_string()));
    are_ready(site);
    for component in ["Agent", "Aggregator"] {
        for pod in VectorPod::all(site, TEAM, component).await {
            let report = pod.report(site).await;
            assert_eq!(report.configuration["expire_metrics_secs"], 600);
        }
    }
    let restarts = "--output=jsonpath={.items[*].status.containerStatuses[*].restartCount}";
    let restarts = site.kubectl(&["get", "pods", "-n", TEAM, restarts]);
    assert!(restarts.split(' ').all(|it| it == "0"), "{restarts}");
}

async fn nothing_is_left_after_the_deletion(site: &Site, tenant: &Pipelines) {
    tenant.delete_all().await;
    let workloads = "vector/logs,vectoraggregator/logs".split(',');
    site.kubectl(&[&["delete", "-n", TEAM][..], &workloads.collect::<Vec<_>>()].concat());
    let gone = eventually_within(PODS, "the deletion of all objects", async || {
        let types =
            "daemonset,deployment,pod,service,secret,serviceaccount,clusterrole,clusterrolebinding";
        let selector = "--selector=app.kubernetes.io/managed-by=vector-operator";
        let owned = ["get", types, selector, "--all-namespaces", "--output=name"];
        let parts = ["get", "secret", "-n", TEAM, "--output=name"];
        let left = [site.kubectl(&owned), site.kubectl(&parts)].concat();
        (left.trim() == "secret/api-keys").then_some(())
    });
    let gone = gone.await;
    gone.unwrap_or_else(|error| site.fail(&error.to_string()));
    site.kubectl(&["delete", "serviceaccount", "tenant"]);
}

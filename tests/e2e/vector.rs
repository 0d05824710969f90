//! Vector pipelines: the webhook denies them with every error, and without the webhook the controller reports the
//! errors in the status.

use std::time::Duration;

use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use lockstep_envtest::{Cluster, eventually, eventually_within};
use rds_simulator::Simulator;
use serde_json::{Value, json};

use crate::env::{EnvOptions, NAMESPACE, TestEnv, check, condition};
use crate::vrl_limits;

/// Time within which a pipeline is validated again.
const AGAIN: Duration = Duration::from_mins(3);

struct Vector {
    env: TestEnv,
}

impl Vector {
    async fn start() -> Self {
        let cluster = Cluster::start_without_workloads().await.expect("a cluster");
        let aws = Simulator::start().await.expect("a simulator");
        let options = EnvOptions {
            kinds: Some("VectorPipeline,ClusterVectorPipeline"),
            ..EnvOptions::default()
        };
        let env = TestEnv::install(cluster, aws, options).await;
        Self { env }
    }

    fn pipelines(&self) -> Api<DynamicObject> {
        self.env.objects(&pipeline("any", &json!({})))
    }

    async fn make(&self, name: &str, spec: &Value) {
        let object = serde_json::from_value(pipeline(name, spec)).expect("an object");
        let made = self
            .pipelines()
            .create(&PostParams::default(), &object)
            .await;
        made.expect("stored");
    }

    /// Waits until a pipeline is ready.
    async fn is_ready(&self, name: &str) {
        let api = self.pipelines();
        let ready = eventually("the readiness", async || {
            let object = api.get(name).await.ok()?;
            let ready = condition(&object, "Ready")?;
            (ready.status == "True").then_some(())
        });
        ready
            .await
            .unwrap_or_else(|error| self.env.fail(&error.to_string()));
    }

    /// Status of a pipeline, once it reports the current generation.
    async fn status(&self, name: &str) -> Value {
        let api = self.pipelines();
        let status = eventually("a status", async || {
            let object = api.get(name).await.ok()?;
            let status = &object.data["status"];
            let is_of_now = status["observedGeneration"].as_i64() == object.metadata.generation;
            // The status is written in two steps, and the condition `Ready` only in the second.
            let conditions = status["conditions"].as_array();
            let is_complete =
                conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Ready"));
            (is_of_now && is_complete && !status["configCheckResult"].is_null())
                .then(|| status.clone())
        });
        status
            .await
            .unwrap_or_else(|error| self.env.fail(&error.to_string()))
    }
}

pub fn pipeline(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "observability.kaasops.io/v1alpha1",
        "kind": "VectorPipeline",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    })
}

pub fn remapping(program: &str) -> Value {
    json!({
        "sources": {"in": {"type": "kubernetes_logs"}},
        "transforms": {"parse": {"type": "remap", "inputs": ["in"], "source": program}},
        "sinks": {"out": {"type": "blackhole", "inputs": ["parse"]}},
    })
}

/// Example of the operator's authors for what Kubernetes admits without a webhook.
pub fn invalid_spec() -> Value {
    json!({
        "sources": {"source-test": {"lol": "kek"}},
        "transforms": {"transform-test": {"kek": "lol"}},
        "sinks": {"sink-test": {"cheburek": "wow"}},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_pipeline_is_denied_with_an_error_for_each_component_and_a_program_with_its_line()
 {
    let vector = Vector::start().await;
    let denied = |spec: &Value| {
        let response = vector.env.kubectl_apply(&pipeline("example", spec));
        response.expect_err("the object is denied")
    };
    let message = denied(&invalid_spec());
    for path in [
        "spec.sources[source-test].type: Required value",
        "spec.transforms[transform-test].type: Required value",
        "spec.sinks[sink-test].type: Required value",
    ] {
        assert!(message.contains(path), "{message}");
    }
    let message = denied(&remapping(".a = 1\n.b = to_int(.message)\n"));
    for part in [
        "spec.transforms[parse].source",
        "line 2, column 6: unhandled fallible assignment",
        "2 │ .b = to_int(.message)",
        "│ ---- ^^^^^^^^^^^^^^^^ ",
        "[vrl-compile]",
    ] {
        assert!(message.contains(part), "no `{part}`: {message}");
    }
    let applied = vector
        .env
        .kubectl_apply(&pipeline("example", &remapping(".a = 1")));
    applied.expect("the object is admitted");
    let status = vector.status("example").await;
    assert_eq!(status["configCheckResult"], true, "{status}");
    assert_eq!(status["role"], "agent", "{status}");
    assert_eq!(status["reason"], Value::Null, "{status}");
    vector.is_ready("example").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_webhook_the_status_reports_the_same_and_nothing_is_validated_twice() {
    let mut vector = Vector::start().await;
    let removed = vector
        .env
        .installation
        .remove_webhook_configurations(&vector.env.cluster);
    removed.expect("the webhook configurations are deleted");
    vector.make("rubbish", &invalid_spec()).await;
    vector
        .make("program", &remapping(".b = to_int(.message)"))
        .await;
    vector.make("good", &remapping(".a = 1")).await;
    let mut before = Vec::new();
    for (name, reasons) in [
        (
            "rubbish",
            &[
                "spec.sources[source-test].type",
                "spec.sinks[sink-test].type",
            ][..],
        ),
        ("program", &["line 1, column 6", "^^^"]),
        ("good", &[]),
    ] {
        let status = vector.status(name).await;
        assert_eq!(status["configCheckResult"], reasons.is_empty(), "{status}");
        let reason = status["reason"].as_str().unwrap_or_default();
        assert!(reasons.iter().all(|part| reason.contains(part)), "{reason}");
        assert!(status["LastAppliedPipelineHash"].is_i64(), "{status}");
        let object = vector
            .pipelines()
            .get(name)
            .await
            .expect("the object exists");
        before.push((name, object.metadata.resource_version));
    }
    vector
        .env
        .installation
        .restart_controller_with(&[])
        .expect("the process starts");
    // After the later pipeline is validated, the controller has seen all others.
    vector.make("later", &remapping(".a = 2")).await;
    vector.status("later").await;
    for (name, version) in before {
        let object = vector
            .pipelines()
            .get(name)
            .await
            .expect("the object exists");
        assert_eq!(object.metadata.resource_version, version, "{name}");
    }
    let url = vector.env.installation.controller_health_url();
    let metrics = vector.env.metrics(&url).await;
    let validated = "lockstep_controller_validations_total{controller=\"vectorpipeline\"} 1\n";
    assert!(metrics.contains(validated), "{metrics}");
    // The status is written in two steps. A controller that exits between them leaves this status.
    let is_valid = |condition: &Value| condition["type"] == "Valid";
    let object = vector
        .pipelines()
        .get("good")
        .await
        .expect("the object exists");
    let conditions = object.data["status"]["conditions"].as_array();
    let mut conditions = conditions.expect("conditions").clone();
    conditions.retain(is_valid);
    let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
    let params = PatchParams::default();
    let patched = vector
        .pipelines()
        .patch_status("good", &params, &patch)
        .await;
    patched.expect("the object is stored");
    vector
        .env
        .installation
        .restart_controller_with(&[])
        .expect("the process starts");
    vector.is_ready("good").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_that_could_not_be_validated_is_reported_and_validated_again() {
    let vector = Vector::start().await;
    let removed = vector
        .env
        .installation
        .remove_webhook_configurations(&vector.env.cluster);
    removed.expect("the webhook configurations are deleted");
    vector.make("slow", &remapping(&vrl_limits::slow(0))).await;
    let status = vector.status("slow").await;
    assert_eq!(status["configCheckResult"], false, "{status}");
    let reason = status["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("Internal error: "), "{reason}");
    assert_eq!(status["LastAppliedPipelineHash"], Value::Null, "{status}");
    let url = vector.env.installation.controller_health_url();
    // It begins after 30 seconds, and its two attempts take much CPU time, which other tests need as well.
    eventually_within(AGAIN, "another validation", async || {
        let metrics = vector.env.metrics(&url).await;
        let count = "lockstep_controller_validations_total{controller=\"vectorpipeline\"} ";
        let mut counts = metrics.lines().filter_map(|line| line.strip_prefix(count));
        let count: u64 = counts.next()?.parse().ok()?;
        (count > 1).then_some(())
    })
    .await
    .unwrap_or_else(|error| vector.env.fail(&error.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_restricts_tenants_and_is_reloaded_while_the_webhook_runs() {
    let vector = Vector::start().await;
    let apply = || {
        let mut object = pipeline("example", &remapping(".host = get_hostname!()"));
        let of_pods = json!({"type": "kubernetes_logs"});
        object["spec"]["sources"]["of-pods"] = of_pods;
        vector.env.kubectl_apply(&object)
    };
    apply().expect("the object is admitted");
    let becomes = async |policy: &str, refusals: &[&str]| {
        vector
            .env
            .installation
            .set_policy(policy)
            .expect("a policy");
        eventually("the reload of the policy", async || {
            // Created again each time: an object that was stored with an error may keep it.
            vector
                .env
                .kubectl(&["delete", "vp", "example", "--ignore-not-found"])
                .ok()?;
            let message = apply().err().unwrap_or_default();
            let is_in_force = refusals.iter().all(|refusal| message.contains(refusal));
            (is_in_force && message.is_empty() == refusals.is_empty()).then_some(())
        })
        .await
        .unwrap_or_else(|error| vector.env.fail(&error.to_string()));
    };
    becomes(
        "settings: {vector: {tenants: {deniedSinks: [blackhole], deniedFunctions: [get_hostname]}}}",
        &[
            "spec.sinks[out].type: Invalid value: \"blackhole\": sinks of this type are denied for tenants",
            "`get_hostname` is denied for tenants",
        ],
    )
    .await;
    becomes("settings: {vector: {tenants: {deniedSinks: []}}}", &[]).await;
    becomes(
        "settings: {vector: {forbidDashesInNames: true}}",
        &["spec.sources[of-pods]: Invalid value: \"of-pods\": with `settings.vector.forbidDashesInNames`"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_policy_is_applied_to_stored_objects() {
    let vector = Vector::start().await;
    let removed = vector
        .env
        .installation
        .remove_webhook_configurations(&vector.env.cluster);
    removed.expect("the webhook configurations are deleted");
    vector
        .make("example", &remapping(".host = get_env_var!(\"HOST\")"))
        .await;
    let status = vector.status("example").await;
    assert_eq!(status["configCheckResult"], false, "{status}");
    let allowed = "settings: {vector: {tenants: {deniedFunctions: []}}}";
    let set = vector.env.installation.set_policy(allowed);
    set.expect("a policy");
    eventually("the valid status", async || {
        let object = vector.pipelines().get("example").await.ok()?;
        (object.data["status"]["configCheckResult"] == true).then_some(())
    })
    .await
    .unwrap_or_else(|error| vector.env.fail(&error.to_string()));
}

#[test]
fn check_points_to_the_exact_characters_of_a_program() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("pipeline.yaml");
    let text = "\
apiVersion: observability.kaasops.io/v1alpha1
kind: VectorPipeline
metadata: {name: example, namespace: default}
spec:
  sources: {in: {type: kubernetes_logs}}
  transforms:
    parse:
      type: remap
      inputs: [in]
      source: |
        .a = 1
        .b = to_int(.message)
  sinks: {out: {type: blackhole, inputs: [parse]}}
";
    std::fs::write(&file, text).expect("a file");
    let result = check(&[], &file);
    let error = &result["errors"][0];
    assert_eq!(
        (&error["line"], &error["column"]),
        (&json!(12), &json!(14)),
        "{error}"
    );
    let printed = std::process::Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .arg("check")
        .arg(&file)
        .output()
        .expect("`lockstep check` runs");
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    let shown = "12 |         .b = to_int(.message)\n   |              ^^^^^^^^^^^^^^^^\n";
    assert!(printed.contains(shown), "{printed}");
}

//! The webhook for an installation of another operator: it validates, and modifies nothing that the operator owns.

use std::process::Command;

use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use lockstep_envtest::Cluster;
use rds_simulator::Simulator;
use serde_json::{Value, json};

use crate::env::{EnvOptions, TestEnv, root};
use crate::vector::{invalid_spec, pipeline, remapping};

/// Arguments that print the generation and the field managers of one of the CRDs.
const CRD: [&str; 5] = [
    "get",
    "crd",
    "vectorpipelines.observability.kaasops.io",
    "-o",
    "jsonpath={.metadata.generation} {.metadata.managedFields[*].manager}",
];

/// Stores a pipeline with the status that the other operator writes.
async fn store(api: &Api<DynamicObject>, name: &str, spec: &Value) {
    let mut object: DynamicObject =
        serde_json::from_value(pipeline(name, spec)).expect("an object");
    object.metadata.namespace = None;
    let made = api.create(&PostParams::default(), &object).await;
    made.expect("stored");
    let status = json!({"status": {
        "role": "agent", "configCheckResult": true, "LastAppliedPipelineHash": 5_000_000_000_i64,
    }});
    let params = PatchParams::default();
    let patched = api.patch_status(name, &params, &Patch::Merge(status)).await;
    patched.expect("the status is written");
}

/// Report of `lockstep audit` on a cluster.
pub fn audit(cluster: &Cluster) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["audit", "--output=json"])
        .env("KUBECONFIG", cluster.kubeconfig())
        .output()
        .expect("the program runs");
    let report = serde_json::from_slice(&output.stdout);
    report.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[tokio::test(flavor = "multi_thread")]
async fn with_webhook_only_the_webhook_validates_and_modifies_nothing() {
    let cluster = Cluster::start_without_workloads().await.expect("a cluster");
    let aws = Simulator::start().await.expect("a simulator");
    let crds = root().join("tests/e2e/kaasops/crds.yaml");
    let apply = ["apply", "-f", &crds.to_string_lossy()];
    cluster.run_kubectl(&apply).expect("the CRDs are applied");
    let established = ["wait", "--for=condition=Established", "crd", "--all"];
    cluster
        .run_kubectl(&established)
        .expect("the CRDs are established");
    let crd_before = cluster.run_kubectl(&CRD).expect("a CRD");
    let pipelines: Api<DynamicObject> = Api::namespaced_with(
        cluster.client(),
        crate::env::NAMESPACE,
        &crate::env::resource_of(&pipeline("any", &json!({}))),
    );
    store(&pipelines, "good", &remapping(".a = 1")).await;
    store(&pipelines, "bad", &invalid_spec()).await;
    // The components of these two get the same names in Vector.
    for (namespace, name) in [("a", "b-c"), ("a-b", "c")] {
        let made = cluster.run_kubectl(&["create", "namespace", namespace]);
        made.expect("a namespace");
        let resource = crate::env::resource_of(&pipeline("any", &json!({})));
        let api = Api::namespaced_with(cluster.client(), namespace, &resource);
        store(&api, name, &remapping(".a = 1")).await;
    }
    let stored = async |name: &str| pipelines.get(name).await.expect("the object exists");
    let before = (stored("good").await, stored("bad").await);

    let report = audit(&cluster);
    let text = report.to_string();
    assert!(
        text.contains("default/bad") && !text.contains("default/good"),
        "{text}"
    );
    let rules = report["rules"].as_array().into_iter().flatten();
    let mut together = rules.filter_map(|rule| {
        let is_it = rule["rule"] == "component-name-conflict";
        is_it.then(|| rule["conflicts"].clone())
    });
    let together = together.next().unwrap_or_default();
    let one = |name: &str| together == json!([name]);
    assert!(one("a/b-c") || one("a-b/c"), "{text}");

    let options = EnvOptions {
        kinds: Some("VectorPipeline,ClusterVectorPipeline"),
        manifest_args: &["--webhook-only"],
        ..EnvOptions::default()
    };
    // `install` returns after an admission probe was denied and `failurePolicy` is `Fail`.
    let env = TestEnv::install(cluster, aws, options).await;
    let apply = |name: &str, spec: &Value| env.kubectl_apply(&pipeline(name, spec));
    let message = apply("new", &invalid_spec()).expect_err("the object is denied");
    assert!(
        message.contains("spec.sources[source-test].type: Required value"),
        "{message}"
    );
    apply("new", &remapping(".a = 2")).expect("the object is admitted");
    // An error that existed before is tolerated; a new one is denied.
    let label = ["label", "vp", "bad", "team=shop"];
    env.kubectl(&label).expect("the labels can be changed");
    let message = apply("good", &remapping(".a = to_int(.b)")).expect_err("the object is denied");
    assert!(message.contains("[vrl-compile]"), "{message}");

    let stored = async |name: &str| pipelines.get(name).await.expect("the object exists");
    let after = (stored("good").await, stored("bad").await);
    assert_eq!(after.0, before.0);
    assert_eq!(after.1.data, before.1.data);
    assert_eq!(stored("new").await.data.get("status"), None);
    assert_eq!(stored("new").await.metadata.finalizers, None);
    assert_eq!(env.kubectl(&CRD).expect("a CRD"), crd_before);
    // The only permission on pipelines is to create one, which the admission probe needs.
    let may = |verb: &str| {
        let account = "--as=system:serviceaccount:lockstep-system:lockstep";
        let arguments = ["auth", "can-i", verb, "vectorpipelines", account, "-n"];
        let arguments = [&arguments[..], &["lockstep-system"]].concat();
        env.kubectl(&arguments).is_ok()
    };
    assert!(may("create"));
    for verb in ["patch", "update", "delete", "get"] {
        assert!(!may(verb), "{verb}");
    }
}

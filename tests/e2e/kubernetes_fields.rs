//! Fields of workloads with types of the Kubernetes API: they are explained, validated, and ratcheted when an object was
//! stored before its CRD had their schemas.

use kube::CustomResourceExt;
use lockstep_envtest::{Cluster, eventually};
use lockstep_shared_validation::ValidatedResource;
use lockstep_vector_api::Vector;
use rds_simulator::Simulator;
use serde_json::{Value, json};

use crate::env::{EnvOptions, TestEnv, check};

/// Schema of a field that accepts any list.
fn open_list() -> Value {
    json!({
        "type": "array",
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    })
}

fn agent(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "observability.kaasops.io/v1alpha1",
        "kind": "Vector",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"agent": spec},
    })
}

/// Applies a CRD and waits until the kind is served.
async fn serve(cluster: &Cluster, crd: &Value) {
    let file = cluster.directory().join("open-crd.json");
    std::fs::write(&file, crd.to_string()).expect("a file");
    let run = |arguments: &[&str]| {
        let output = cluster.kubectl().args(arguments).output();
        output.expect("kubectl runs")
    };
    let path = file.to_string_lossy();
    let applied = run(&["apply", "--server-side", "-f", &path]);
    assert!(applied.status.success(), "{applied:?}");
    let name = <Vector as CustomResourceExt>::crd_name();
    eventually("the kind", async || {
        run(&["get", name]).status.success().then_some(())
    })
    .await
    .expect("the kind is served");
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_kubernetes_are_explained_validated_and_ratcheted() {
    let cluster = Cluster::start_without_workloads().await.expect("a cluster");
    let mut crd = <Vector as ValidatedResource>::crd();
    let env =
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/agent/properties/env";
    *crd.pointer_mut(env).expect("the field") = open_list();
    serve(&cluster, &crd).await;
    let stored = agent("stored", &json!({"env": [{"nam": "A"}]}));
    let file = cluster.directory().join("stored.json");
    std::fs::write(&file, stored.to_string()).expect("a file");
    let created = cluster
        .kubectl()
        .arg("create")
        .arg("-f")
        .arg(&file)
        .status();
    assert!(created.expect("kubectl runs").success());

    let aws = Simulator::start().await.expect("a simulator");
    let options = EnvOptions {
        kinds: Some("Vector"),
        ..EnvOptions::default()
    };
    let env = TestEnv::install(cluster, aws, options).await;

    let explained = eventually("the explanation", async || {
        let field = "vector.spec.agent.affinity.nodeAffinity";
        env.kubectl(&["explain", field]).ok()
    })
    .await
    .expect("the field is explained");
    assert!(
        explained.contains("preferredDuringScheduling"),
        "{explained}"
    );

    // A misspelled name is denied by the API server for `kubectl`, and by `lockstep check`.
    let misspelled = agent("misspelled", &json!({"env": [{"nam": "A", "value": "b"}]}));
    let denial = env.kubectl_apply(&misspelled).expect_err("it is denied");
    assert!(
        denial.contains(r#"unknown field "spec.agent.env[0].nam""#),
        "{denial}"
    );
    let file = env.cluster.directory().join("misspelled.json");
    std::fs::write(&file, misspelled.to_string()).expect("a file");
    let checked = check(&[], &file).to_string();
    for message in [
        "spec.agent.env[0].nam: Forbidden: unknown field; did you mean `name`?",
        "spec.agent.env[0].name: Required value",
    ] {
        assert!(checked.contains(message), "{checked}");
    }

    // The stored object can be updated while its wrong field stays as it is.
    let patch = |patch: Value| {
        let patch = patch.to_string();
        env.kubectl(&["patch", "vector", "stored", "--type=merge", "-p", &patch])
    };
    patch(json!({"metadata": {"labels": {"team": "logs"}}})).expect("a label is set");
    patch(json!({"spec": {"agent": {"dataDir": "/var/lib/vector-agent"}}}))
        .expect("another field is changed");
    let denial = patch(json!({"spec": {"agent": {"env": [{"value": "b"}]}}}));
    let denial = denial.expect_err("the field itself is validated");
    assert!(
        denial.contains("spec.agent.env[0].name: Required"),
        "{denial}"
    );
}

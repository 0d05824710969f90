//! Users who do not trust each other: an object of any kind lets the user who creates it read nothing of another namespace,
//! neither directly nor with the service accounts that the controller makes for it.

mod attempts;
mod readable;
mod tenant;

use std::process::Command;

use futures::future::join_all;
use lockstep_envtest::{Installation, eventually};
use rds_simulator::Simulator;
use serde_json::{Value, json};

use crate::env::{EnvOptions, TestEnv};
use crate::isolation::attempts::{MIXED, VECTOR, attempts};
use crate::isolation::readable::{Access, everything_in};
use crate::isolation::tenant::Tenant;

/// Namespace that no tenant has any right in.
const FOREIGN: &str = "bank";

/// Namespace in which an administrator runs agents that collect from all namespaces.
const MARKED: &str = "logging";

/// Annotation by which an administrator allows workloads of Vector in a namespace.
const MARK: &str = "lockstep.dev/vector-workloads=allowed";

/// Text that occurs in each object of the foreign namespace, and in cluster-scoped pipelines.
const SECRET_TEXT: &str = "correct-horse-of-the-bank";

/// Kinds that every user with the built-in role `edit` may create. All others are for administrators.
const FOR_TENANTS: [&str; 4] = [
    "CloudDatabase",
    "Echo",
    "VectorAggregator",
    "VectorPipeline",
];

/// Tenants, each in a namespace of its own.
const TENANTS: [Tenant; 3] = [
    Tenant {
        name: "editor",
        role: "edit",
        additional_kind: None,
    },
    Tenant {
        name: "admin",
        role: "admin",
        additional_kind: None,
    },
    Tenant {
        name: "agent-owner",
        role: "edit",
        additional_kind: Some("Vector"),
    },
];

/// Returns all kinds that the program registers.
fn registered_kinds() -> Vec<String> {
    let listed = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .arg("rules")
        .output()
        .expect("the program runs");
    let listed = String::from_utf8(listed.stdout).expect("UTF-8");
    // A rule is indented.
    let kinds = listed
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_once(" (").map(|(kind, _)| kind.to_owned()));
    kinds.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_kind_lets_its_creator_read_another_namespace() {
    let kinds = registered_kinds();
    let all_of_the_issue = FOR_TENANTS
        .iter()
        .all(|kind| kinds.iter().any(|it| it == kind));
    assert!(
        all_of_the_issue && kinds.len() > FOR_TENANTS.len(),
        "{kinds:?}"
    );
    let env = start(&kinds).await;
    foreign_objects(&env).await;
    for tenant in &TENANTS {
        tenant.is_admitted(&env).await;
    }
    let access = Access::discover(&env.cluster.client(), FOREIGN).await;
    let users: Vec<_> = TENANTS.iter().map(Tenant::subject).collect();
    let before = join_all(users.iter().map(|user| access.of_subject(user))).await;

    TENANTS[1].cannot_become_administrator(&env);
    let mut created = Vec::new();
    for tenant in &TENANTS {
        for kind in &kinds {
            created.extend(tenant.attempts(&env, kind));
        }
    }
    for object in &created {
        is_reconciled(&env, object).await;
    }
    agents_of_an_administrator_collect_everything(&env).await;

    let mut found = Vec::new();
    for (tenant, before) in TENANTS.iter().zip(&before) {
        let gained = access.of_subject(&tenant.subject()).await;
        found.extend(
            gained
                .difference(before)
                .map(|right| format!("{}: {right}", tenant.name)),
        );
        found.extend(tenant.service_account_rights(&env, &access).await);
        let readable = everything_in(&env, tenant.name).await;
        found.extend(readable.containing(SECRET_TEXT));
    }
    assert!(
        found.is_empty(),
        "readable after the attempts:\n{}",
        found.join("\n")
    );
}

/// Policy for those who come from the operator of kaasops: a pipeline of tenants may have sources of both roles, so that its
/// aggregator reads the Kubernetes API.
const POLICY: &str = "settings: {vector: {preset: kaasops}}";

/// Starts a cluster with all kinds. `kube-controller-manager` aggregates the roles.
async fn start(kinds: &[String]) -> TestEnv {
    let aws = Simulator::start().await.expect("a simulator");
    let options = EnvOptions {
        kinds: Some(kinds.join(",").leak()),
        ..EnvOptions::default()
    };
    let cluster = lockstep_envtest::Cluster::start().await.expect("a cluster");
    let env = TestEnv::install(cluster, aws, options).await;
    env.installation.set_policy(POLICY).expect("a policy");
    let mixed = attempts("VectorPipeline", "default");
    let mixed = mixed
        .iter()
        .find(|object| object["metadata"]["name"] == MIXED);
    let file = env.cluster.directory().join("mixed.json");
    std::fs::write(&file, mixed.expect("an object").to_string()).expect("a file");
    let loaded = eventually("the reload of the policy", async || {
        let file = file.to_string_lossy();
        env.kubectl(&["create", "--dry-run=server", "-f", &file])
            .ok()
    });
    loaded
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    env
}

/// Creates the namespaces that belong to others, and objects with content of their users.
async fn foreign_objects(env: &TestEnv) {
    for namespace in [FOREIGN, MARKED] {
        env.kubectl(&["create", "namespace", namespace])
            .expect("a namespace");
    }
    env.kubectl(&["annotate", "namespace", MARKED, MARK])
        .expect("annotated");
    let environment = json!([{"name": "PASSWORD", "value": SECRET_TEXT}]);
    let container =
        json!({"name": "app", "image": "registry.example.com/app:1", "env": environment});
    let metadata = json!({"name": "bank", "namespace": FOREIGN});
    let secret = json!({"type": "kubernetes_secret", "name": "bank"});
    let secret_of_bank = json!({"type": "kubernetes_secret", "name": "bank", "namespace": FOREIGN});
    for object in [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"token": SECRET_TEXT}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": SECRET_TEXT}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}),
        json!({
            "apiVersion": VECTOR, "kind": "VectorPipeline", "metadata": metadata,
            "spec": to_the_bank(&secret),
        }),
        json!({
            "apiVersion": VECTOR, "kind": "ClusterVectorPipeline", "metadata": {"name": "bank"},
            "spec": to_the_bank(&secret_of_bank),
        }),
    ] {
        // The service account of a new namespace, which Pods need, is created asynchronously.
        let what = object.to_string();
        let created = eventually(&what, async || env.kubectl_apply(&object).ok()).await;
        created.expect("created");
    }
}

/// Returns the spec of a pipeline with a Secret and an address of the bank.
fn to_the_bank(secret: &Value) -> Value {
    json!({
        "secret": {"bank": secret},
        "sources": {"in": {"type": "kubernetes_logs"}},
        "sinks": {"out": {
            "type": "http", "inputs": ["in"], "uri": format!("http://{SECRET_TEXT}.bank/"),
            "encoding": {"codec": "json"}, "auth": {"strategy": "bearer", "token": "SECRET[bank.token]"},
        }},
    })
}

/// Waits until the controller has reconciled an object as it is stored now.
async fn is_reconciled(env: &TestEnv, object: &Value) {
    let objects = env.objects(object);
    let name = object["metadata"]["name"].as_str().expect("a name");
    let what = format!("the reconciliation of {} {name}", object["kind"]);
    let reconciled = eventually(&what, async || {
        let stored = objects.get(name).await.ok()?;
        let observed = stored.data["status"]["observedGeneration"].as_i64();
        (observed.is_some() && observed == stored.metadata.generation).then_some(())
    });
    reconciled
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

/// Creates agents where an administrator has allowed them, and waits until they have what the tenants' workloads of the same
/// kind must not get: those were created earlier, and are reconciled by the same controller.
async fn agents_of_an_administrator_collect_everything(env: &TestEnv) {
    for namespace in [FOREIGN, MARKED] {
        let allowed = Installation::allow_secrets(&env.cluster, namespace).await;
        allowed.expect("a RoleBinding");
    }
    let agents = json!({
        "apiVersion": VECTOR, "kind": "Vector",
        "metadata": {"name": "all", "namespace": MARKED}, "spec": attempts::agent(),
    });
    env.kubectl_apply(&agents).expect("created");
    let collected = eventually(
        "the Secret of the bank in the marked namespace",
        async || {
            let readable = everything_in(env, MARKED).await;
            let secrets = readable.containing(SECRET_TEXT);
            (secrets.len() >= 2).then_some(())
        },
    );
    collected
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

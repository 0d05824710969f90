//! The smallest operator: its children match the desired state, and nothing else is changed.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, DynamicObject};
use lockstep_envtest::{Cluster, eventually};
use rds_simulator::Simulator;
use serde_json::{Value, json};

use crate::env::{EnvOptions, NAMESPACE, TestEnv, condition};
use crate::standalone_webhook::plain;

struct Echoes {
    env: TestEnv,
}

impl Echoes {
    async fn start() -> Self {
        let cluster = Cluster::start().await.expect("a cluster");
        cluster.add_node("node").await.expect("a node");
        let aws = Simulator::start().await.expect("a simulator");
        let options = EnvOptions {
            kinds: Some("*,Echo"),
            ..EnvOptions::default()
        };
        let env = TestEnv::install(cluster, aws, options).await;
        Self { env }
    }

    fn api(&self) -> Api<DynamicObject> {
        self.env.objects(&echo("any", &json!({})))
    }

    fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.env.cluster.client(), NAMESPACE)
    }

    fn services(&self) -> Api<Service> {
        Api::namespaced(self.env.cluster.client(), NAMESPACE)
    }

    fn apply(&self, name: &str, spec: &Value) -> Result<String, String> {
        self.env.kubectl_apply(&echo(name, spec))
    }

    async fn ready(&self, name: &str) {
        let api = self.api();
        self.env.condition_of(&api, name, "Ready", "True").await;
    }

    async fn deployment_that(&self, what: &str, is_so: impl Fn(&Deployment) -> bool) -> Deployment {
        let seen = eventually(what, async || {
            let found = self.deployments().get_opt("hello").await.ok()??;
            is_so(&found).then_some(found)
        });
        seen.await
            .unwrap_or_else(|error| self.env.fail(&error.to_string()))
    }

    /// Number of writes to children by the running controller.
    async fn child_writes(&self) -> u64 {
        let metrics = self.env.installation.controller_health_url();
        let metrics = self.env.metrics(&metrics).await;
        let counts = metrics
            .lines()
            .filter(|line| line.starts_with("lockstep_child_writes_total{"))
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
        counts.sum()
    }
}

fn echo(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "demo.example.com/v1alpha1",
        "kind": "Echo",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    })
}

fn argument(deployment: &Deployment) -> Option<String> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    pod.containers.first()?.args.as_ref()?.last().cloned()
}

fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.replicas
}

#[tokio::test(flavor = "multi_thread")]
async fn children_follow_their_object_and_are_written_only_if_they_differ() {
    let mut echoes = Echoes::start().await;
    echoes
        .apply("hello", &json!({"text": "hello"}))
        .expect("stored");
    echoes.ready("hello").await;
    let object = echoes.api().get("hello").await.expect("an object");
    assert_eq!(object.data["status"]["address"], "http://hello");
    assert_eq!(object.data["status"]["observedGeneration"], 1);
    assert_eq!(object.metadata.finalizers, None, "no finalizer is needed");
    let made = echoes.deployments().get("hello").await.expect("a child");
    assert_eq!(argument(&made).as_deref(), Some("hello"));
    let owners = made.metadata.owner_references.iter().flatten();
    let owners: Vec<_> = owners
        .map(|owner| (&owner.name, owner.controller))
        .collect();
    assert_eq!(owners, [(&"hello".to_owned(), Some(true))]);
    assert_eq!(echoes.child_writes().await, 2);

    // A new process, which has written nothing yet, finds nothing to write.
    echoes
        .env
        .installation
        .restart_controller_with(&[])
        .expect("the process restarts");
    echoes
        .apply("other", &json!({"text": "other"}))
        .expect("stored");
    echoes.ready("other").await;
    assert_eq!(
        echoes.child_writes().await,
        2,
        "only the two children of `other` are written"
    );

    // A change is applied, and values that are no longer desired are removed.
    echoes
        .apply("hello", &json!({"text": "changed", "replicas": 2}))
        .expect("stored");
    echoes.ready("hello").await;
    let changed = echoes.deployments().get("hello").await.expect("a child");
    assert_eq!(
        (argument(&changed).as_deref(), replicas(&changed)),
        (Some("changed"), Some(2))
    );

    // Fields that another client changes are reset; fields that it adds stay.
    let kubectl = |args: &[&str]| {
        let done = echoes.env.kubectl(args);
        done.unwrap_or_else(|error| echoes.env.fail(&error));
    };
    kubectl(&["label", "deployment/hello", "team=blue"]);
    kubectl(&["scale", "deployment/hello", "--replicas=5"]);
    let back = echoes
        .deployment_that("the reset of the replicas", |found| {
            replicas(found) == Some(2)
        })
        .await;
    let labels = back.metadata.labels.unwrap_or_default();
    assert_eq!(labels.get("team").map(String::as_str), Some("blue"));
    let before = echoes.services().get("hello").await.expect("a child");
    kubectl(&["delete", "service/hello"]);
    let again = eventually("the creation of a new Service", async || {
        let found = echoes.services().get_opt("hello").await.ok()??;
        (found.metadata.uid != before.metadata.uid).then_some(())
    });
    again
        .await
        .unwrap_or_else(|error| echoes.env.fail(&error.to_string()));

    kubectl(&["delete", "echo/hello"]);
    let gone = eventually("the deletion of the children", async || {
        let deployment = echoes.deployments().get_opt("hello").await.ok()?;
        let service = echoes.services().get_opt("hello").await.ok()?;
        (deployment.is_none() && service.is_none()).then_some(())
    });
    gone.await
        .unwrap_or_else(|error| echoes.env.fail(&error.to_string()));
    assert!(
        echoes
            .services()
            .get_opt("other")
            .await
            .expect("a response")
            .is_some()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_another_owner_is_not_modified_and_is_reported() {
    let echoes = Echoes::start().await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "taken"},
        "spec": {"selector": {"app": "theirs"}, "ports": [{"port": 5432}]},
    });
    echoes.env.kubectl_apply(&service).expect("stored");
    let before = echoes.services().get("taken").await.expect("a Service");
    echoes
        .apply("taken", &json!({"text": "hello"}))
        .expect("stored");
    let api = echoes.api();
    let stalled = echoes
        .env
        .condition_of(&api, "taken", "Stalled", "True")
        .await;
    assert_eq!(stalled.reason, "ChildNotOwned");
    let expected = "the child Service 'taken' (v1) exists and was not created by this controller; choose another name for it, or delete the existing object";
    assert_eq!(stalled.message, expected);
    let metrics = echoes.env.installation.controller_health_url();
    let metrics = echoes.env.metrics(&metrics).await;
    let failing = "lockstep_failing_objects{controller=\"echo\",threshold=\"1\"} 1";
    assert!(metrics.contains(failing), "{metrics}");
    let output = echoes.env.installation.output();
    let mut lines = output.lines();
    let line =
        lines.find(|line| line.contains("reconciliation failed") && line.contains("ChildNotOwned"));
    let line: Value = serde_json::from_str(line.expect("a line of the log")).expect("JSON");
    let span = &line["spans"][0];
    for (name, expected) in [
        ("controller", json!("echo")),
        ("object", json!("default/taken")),
        ("generation", json!(1)),
    ] {
        assert_eq!(span[name], expected, "{line}");
    }
    assert_eq!(
        span["reconcile_id"].as_str().map(str::len),
        Some(16),
        "{line}"
    );
    let object = api.get("taken").await.expect("an object");
    let ready = condition(&object, "Ready").expect("a condition");
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", "ChildNotOwned")
    );
    let after = echoes.services().get("taken").await.expect("a Service");
    assert_eq!(
        after.metadata.resource_version,
        before.metadata.resource_version
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admin_token_permits_reading_the_queues_and_triggering_reconciliations() {
    let mut echoes = Echoes::start().await;
    echoes
        .apply("hello", &json!({"text": "hello"}))
        .expect("stored");
    echoes.ready("hello").await;
    let url = echoes.env.installation.controller_health_url();
    let address = url.trim_start_matches("http://");
    let debug = plain(address, "GET /debug", "").await.expect("a response");
    assert!(
        debug.contains(" 404 "),
        "`/debug` without the option: {debug}"
    );

    let token = echoes.env.cluster.directory().join("token");
    std::fs::write(
        &token,
        "let-me-in
",
    )
    .expect("a file");
    let option = format!("--admin-token-file={}", token.display());
    let installation = &mut echoes.env.installation;
    installation
        .restart_controller_with(&[&option])
        .expect("the process restarts");
    let shown = "authorization: Bearer let-me-in
";
    let listed = eventually("the listing of the queue", async || {
        let debug = plain(address, "GET /debug", shown).await?;
        debug.contains("default/hello").then_some(debug)
    });
    let listed = listed
        .await
        .unwrap_or_else(|error| echoes.env.fail(&error.to_string()));
    assert!(listed.contains("application/json"), "{listed}");
    for headers in [
        "",
        "authorization: Bearer let-me-out
",
        "authorization: let-me-in
",
    ] {
        for what in ["GET /debug", "POST /enqueue/echo/default/hello"] {
            let response = plain(address, what, headers).await.expect("a response");
            assert!(response.contains(" 401 "), "{what} {headers}: {response}");
        }
    }
    let reconciliations = async || {
        let metrics = echoes.env.metrics(&url).await;
        let of_echo = metrics.lines().filter(|line| {
            line.starts_with("controller_runtime_reconcile_total{controller=\"echo\"")
        });
        let counts = of_echo.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
        counts.sum::<u64>()
    };
    let before = reconciliations().await;
    let enqueue = async |path: &str| {
        let what = format!("POST /enqueue/{path}");
        plain(address, &what, shown).await.expect("a response")
    };
    let response = enqueue("echo/default/hello").await;
    assert!(response.contains(" 202 "), "{response}");
    let reconciled = eventually("trigger", async || {
        (reconciliations().await > before).then_some(())
    });
    reconciled
        .await
        .unwrap_or_else(|error| echoes.env.fail(&error.to_string()));
    let unknown = enqueue("ekho/default/hello").await;
    assert!(
        unknown.contains(" 404 ") && unknown.contains("(running: clouddatabase, echo"),
        "{unknown}"
    );
}

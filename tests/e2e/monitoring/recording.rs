//! Metrics of a real run: webhook, controller and API server, scraped while objects are created, denied, changed and
//! deleted.

use http::Request;
use lockstep_envtest::{Cluster, Moto, Recording, eventually};
use rds_simulator::Simulator;
use serde_json::json;

use crate::env::{EnvOptions, NAMESPACE, TestEnv, database, sqs};
use crate::running_vector::object;
use crate::vector::{invalid_spec, pipeline, remapping};

/// Labels that the Prometheus Operator adds to the series of a `PodMonitor`.
const WEBHOOK: [(&str, &str); 6] = [
    ("job", "lockstep-webhook"),
    ("namespace", "lockstep-system"),
    ("pod", "lockstep-0"),
    ("container", "webhook"),
    ("endpoint", "health"),
    ("instance", "10.0.0.2:8080"),
];
const CONTROLLER: [(&str, &str); 6] = [
    ("job", "lockstep-controller"),
    ("namespace", "lockstep-system"),
    ("pod", "lockstep-0"),
    ("container", "controller"),
    ("endpoint", "metrics"),
    ("instance", "10.0.0.2:8081"),
];
const APISERVER: [(&str, &str); 2] = [("job", "apiserver"), ("instance", "10.0.0.1:6443")];

/// Runs an installation with databases and pipelines, and scrapes its processes three times.
pub async fn record() -> Recording {
    let cluster = Cluster::start().await.expect("a cluster");
    cluster.add_node("node").await.expect("a node");
    let moto = Moto::start().await.expect("moto");
    let queues = sqs(&moto.endpoint(), "eu-central-1").await;
    let queue = queues.create_queue().queue_name("rds-events").send().await;
    let url = queue.expect("a queue").queue_url.expect("a URL");
    // Otherwise, the first response would take twenty seconds.
    let message = queues.send_message().queue_url(url).message_body("{}");
    message.send().await.expect("a message");
    let rds = Simulator::start().await.expect("a simulator");
    let options = EnvOptions {
        controller_env: vec![("AWS_ENDPOINT_URL_SQS".to_owned(), moto.endpoint())],
        kinds: Some("CloudDatabase,Echo,VectorAggregator,VectorPipeline,ClusterVectorPipeline"),
        controller_args: vec![
            "--rds-events-queue=arn:aws:sqs:eu-central-1:123456789012:rds-events".to_owned(),
        ],
        ..EnvOptions::default()
    };
    let mut env = TestEnv::install(cluster, rds, options).await;
    env.installation.set_policy("rules: {}").expect("a policy");
    outage(&mut env).await;
    apply(&env, "first").await;
    stall(&env).await;
    suspend(&env).await;
    own(&env).await;
    run_vector(&env).await;

    let mut recording = Recording::default();
    for round in ["a", "b", "c"] {
        apply(&env, round).await;
        scrape(&env, &mut recording).await;
    }
    recording
}

/// Creates a database and a pipeline, changes both, and has an invalid one of each denied.
async fn apply(env: &TestEnv, name: &str) {
    let stored = |object| {
        env.kubectl_apply(&object)
            .unwrap_or_else(|error| env.fail(&error))
    };
    let mut invalid = database("denied");
    invalid["spec"]["credentials"]["username"] = json!("user");
    let denied = [invalid, pipeline("denied", &invalid_spec())];
    for object in denied {
        env.kubectl_apply(&object)
            .expect_err("the object is denied");
    }
    stored(database(name));
    stored(pipeline(name, &remapping(".a = 1")));
    env.condition(name, "Ready", "True").await;
    let mut changed = database(name);
    changed["spec"]["storage"]["sizeGib"] = json!(120);
    stored(changed);
    env.instance_that("the storage is larger", |instance| {
        instance.allocated_storage() == Some(120)
    })
    .await;
    stored(pipeline(name, &remapping(".a = 2")));
}

/// Denies a write because the webhook is down: the API server counts it.
async fn outage(env: &mut TestEnv) {
    env.installation.webhook().kill();
    let denied = env.kubectl_apply(&database("early"));
    denied.expect_err("the webhook is down");
    env.installation
        .start_webhook()
        .expect("the process starts");
    eventually("a denial by the webhook", async || {
        let mut invalid = database("early");
        invalid["spec"]["credentials"]["username"] = json!("user");
        let denied = env
            .kubectl_apply(&invalid)
            .expect_err("the object is denied");
        denied.contains("username-reserved").then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
}

/// Makes an object whose deletion waits for its user, and one that a rule warns about.
async fn stall(env: &TestEnv) {
    let mut public = database("public");
    public["spec"]["network"] = json!({"publiclyAccessible": true});
    env.kubectl_apply(&public).expect("stored");
    env.condition("public", "Ready", "True").await;
    let mut protected = database("protected");
    protected["spec"]["deletionProtection"] = json!(true);
    env.kubectl_apply(&protected).expect("stored");
    env.condition("protected", "Ready", "True").await;
    env.kubectl(&["delete", "cdb", "protected", "--wait=false"])
        .unwrap_or_else(|error| env.fail(&error));
    env.condition_because("protected", "Stalled", "DeletionProtected")
        .await;
}

/// Stores an invalid object, in a namespace that the webhook is not called for.
async fn suspend(env: &TestEnv) {
    let kubectl = |args: &[&str]| env.kubectl(args).unwrap_or_else(|error| env.fail(&error));
    kubectl(&["create", "namespace", "unvalidated"]);
    let selector = json!({"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["unvalidated"]},
    ]});
    let patch = json!([{"op": "add", "path": "/webhooks/0/namespaceSelector", "value": selector}]);
    let kind = "validatingwebhookconfiguration";
    kubectl(&[
        "patch",
        kind,
        "lockstep",
        "--type=json",
        "--patch",
        &patch.to_string(),
    ]);
    let mut invalid = database("invalid");
    invalid["metadata"]["namespace"] = json!("unvalidated");
    invalid["spec"]["credentials"]["username"] = json!("user");
    eventually("the exclusion of the namespace", async || {
        env.kubectl_apply(&invalid).ok()
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
    env.condition_of(&env.objects(&invalid), "invalid", "Valid", "False")
        .await;
}

/// Creates an object that owns others.
async fn own(env: &TestEnv) {
    let echo = json!({
        "apiVersion": "demo.example.com/v1alpha1",
        "kind": "Echo",
        "metadata": {"name": "hello", "namespace": NAMESPACE},
        "spec": {"text": "hello"},
    });
    env.kubectl_apply(&echo)
        .unwrap_or_else(|error| env.fail(&error));
    env.condition_of(&env.objects(&echo), "hello", "Ready", "True")
        .await;
}

/// Publishes a configuration for an aggregator, whose Pods are then observed.
async fn run_vector(env: &TestEnv) {
    env.kubectl_apply(&object("VectorAggregator", "logs", &json!({})))
        .unwrap_or_else(|error| env.fail(&error));
    let observed = eventually("the number of Pods by what they have loaded", async || {
        let metrics = env.metrics(&env.installation.controller_health_url()).await;
        metrics.contains("\nlockstep_vector_pods{").then_some(())
    });
    observed
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

async fn scrape(env: &TestEnv, recording: &mut Recording) {
    let webhook = env.metrics(&env.installation.webhook_health_url()).await;
    recording.add(&WEBHOOK, webhook);
    let controller = env.metrics(&env.installation.controller_health_url()).await;
    recording.add(&CONTROLLER, controller);
    let request = Request::get("/metrics")
        .body(Vec::new())
        .expect("a request");
    let client = env.cluster.client();
    let all = client
        .request_text(request)
        .await
        .expect("metrics of the API server");
    // The API server has thousands of series; the queries read those of admission webhooks.
    let admission = all
        .split_inclusive('\n')
        .filter(|line| line.contains("apiserver_admission_webhook_"));
    recording.add(&APISERVER, admission.collect());
}

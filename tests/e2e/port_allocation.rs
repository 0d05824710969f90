//! Pipelines that run in the same Vector: the controller reports listen-address conflicts, whichever pipeline
//! is created later.

use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use lockstep_envtest::eventually;
use serde_json::{Value, json};

use crate::env::{NAMESPACE, TestEnv, condition};
use crate::running_vector::{KINDS, start_without_pods};
use crate::webhook_only::audit;

async fn start() -> TestEnv {
    start_without_pods(KINDS).await
}

fn object(kind: &str, namespace: Option<&str>, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "observability.kaasops.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    })
}

fn aggregated(name: &str, address: &str) -> Value {
    let spec = json!({
        "sources": {"in": {"type": "socket", "mode": "tcp", "address": address}},
        "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
    });
    object("VectorPipeline", Some(NAMESPACE), name, &spec)
}

fn on_nodes(kind: &str, namespace: Option<&str>, name: &str) -> Value {
    let sink = json!({
        "type": "websocket_server", "address": "0.0.0.0:9100",
        "encoding": {"codec": "json"}, "inputs": ["in"],
    });
    let spec = json!({"sources": {"in": {"type": "kubernetes_logs"}}, "sinks": {"out": sink}});
    object(kind, namespace, name, &spec)
}

async fn make(env: &TestEnv, object: Value) {
    let api = env.objects(&object);
    let object = serde_json::from_value(object).expect("an object");
    let made = api.create(&PostParams::default(), &object).await;
    made.expect("stored");
}

async fn edit(env: &TestEnv, object: &Value, change: &Value) {
    let name = object["metadata"]["name"].as_str().expect("a name");
    let api = env.objects(object);
    let (params, change) = (PatchParams::default(), Patch::Merge(change));
    let edited = api.patch(name, &params, &change).await;
    edited.expect("the object is stored");
}

async fn delete(env: &TestEnv, object: &Value) {
    let name = object["metadata"]["name"].as_str().expect("a name");
    let (api, params) = (env.objects(object), DeleteParams::default());
    api.delete(name, &params)
        .await
        .expect("the object is deleted");
}

/// Address at which a pipeline listens.
fn listens(pipeline: &Value) -> String {
    let address = pipeline["spec"]["sources"]["in"]["address"].as_str();
    format!("tcp {}", address.expect("an address"))
}

/// Both pipelines, the older one first. The UID decides between pipelines created within the same second.
async fn by_age(env: &TestEnv, pipelines: [Value; 2]) -> [Value; 2] {
    let mut ages = Vec::new();
    for pipeline in &pipelines {
        let name = pipeline["metadata"]["name"].as_str().expect("a name");
        let stored = env
            .objects(pipeline)
            .get(name)
            .await
            .expect("the object exists");
        ages.push((stored.creation_timestamp(), stored.uid()));
    }
    let [one, another] = pipelines;
    if ages[0] < ages[1] {
        [one, another]
    } else {
        [another, one]
    }
}

/// Waits until a pipeline satisfies the predicate.
async fn becomes(env: &TestEnv, object: &Value, what: &str, is: impl Fn(&DynamicObject) -> bool) {
    let api: Api<DynamicObject> = env.objects(object);
    let name = object["metadata"]["name"].as_str().expect("a name");
    let what = format!("the state ({what}) of '{name}'");
    let found = eventually(&what, async || api.get(name).await.ok().filter(&is)).await;
    found.unwrap_or_else(|error| env.fail(&error.to_string()));
}

/// Waits until the pipeline is valid and listens at these addresses.
async fn runs(env: &TestEnv, object: &Value, addresses: &[&str]) {
    becomes(env, object, "valid", |object| {
        let status = &object.data["status"];
        let is_ready = condition(object, "Ready").is_some_and(|ready| ready.status == "True");
        let reported = status["addresses"].as_array().cloned().unwrap_or_default();
        is_ready && status["configCheckResult"] == true && reported == addresses
    })
    .await;
}

/// Waits until the status reports that another pipeline has the address.
async fn waits(env: &TestEnv, object: &Value, whose: &str) {
    let conflict = format!("is already used by {whose}");
    becomes(
        env,
        object,
        &format!("reported: its address {conflict}"),
        |object| {
            let status = &object.data["status"];
            let valid = condition(object, "Valid");
            let reason = status["reason"].as_str().unwrap_or_default();
            let is_reported = reason.contains(&conflict)
                && status["addresses"].is_array()
                && status["runBy"].is_null()
                && valid.is_some_and(|valid| valid.status == "False" && valid.message == reason);
            is_reported && status["configCheckResult"] == false
        },
    )
    .await;
}

/// Number of validations of pipelines, once no reconciliation is pending.
async fn validations(env: &TestEnv) -> u64 {
    let url = env.installation.controller_health_url();
    let validated = eventually("the end of all reconciliations", async || {
        let metrics = env.metrics(&url).await;
        let count = |name: &str, label: &str, kind: &str| {
            let name = format!("{name}{{{label}=\"{kind}\"}}");
            let mut counts = metrics.lines().filter_map(|line| line.strip_prefix(&name));
            counts.next()?.trim().parse::<u64>().ok()
        };
        let mut validated = 0;
        for kind in ["vectorpipeline", "clustervectorpipeline"] {
            let waiting = count("workqueue_depth", "name", kind)?;
            // These metrics do not exist for a kind without objects.
            let [active, of_these] = [
                "controller_runtime_active_workers",
                "lockstep_controller_validations_total",
            ]
            .map(|name| count(name, "controller", kind).unwrap_or_default());
            if waiting + active > 0 {
                return None;
            }
            validated += of_these;
        }
        Some(validated)
    });
    let validated = validated.await;
    validated.unwrap_or_else(|error| env.fail(&error.to_string()))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_controller_reports_a_listen_address_conflict_in_the_same_aggregator() {
    let mut env = start().await;
    let tcp = &["tcp 0.0.0.0:9000"];
    let pipelines = ["one", "two"].map(|name| aggregated(name, "0.0.0.0:9000"));
    for pipeline in &pipelines {
        make(&env, pipeline.clone()).await;
        // No aggregator runs these pipelines: they are not in conflict and listen nowhere.
        runs(&env, pipeline, &[]).await;
    }
    let [old, new] = by_age(&env, pipelines).await;
    let source = |pipeline: &Value| {
        let name = pipeline["metadata"]["name"].as_str().unwrap_or_default();
        format!(
            "the source `in` of VectorPipeline {NAMESPACE}/{name} in the Pods of VectorAggregator {NAMESPACE}/all"
        )
    };
    let aggregator = object("VectorAggregator", Some(NAMESPACE), "all", &json!({}));
    make(&env, aggregator.clone()).await;
    waits(&env, &new, &source(&old)).await;
    runs(&env, &old, tcp).await;
    // The audit reports the same, and that the webhook would deny nothing.
    let named = new["metadata"]["name"].as_str().unwrap_or_default();
    assert_eq!(
        audit(&env.cluster)["rules"],
        json!([{
            "kind": "VectorPipeline", "rule": "listen-address-conflict", "denied": [], "warned": [], "audited": [],
            "conflicts": [format!("{NAMESPACE}/{named}")],
        }])
    );
    // A new pipeline with the same address waits; one with a port of its own does not.
    let third = aggregated("three", "127.0.0.1:9000");
    make(&env, third.clone()).await;
    waits(&env, &third, &source(&old)).await;
    let [second, third] = by_age(&env, [new, third]).await;
    // A second aggregator runs both pipelines too, as long as it exists.
    let another = object("VectorAggregator", Some(NAMESPACE), "another", &json!({}));
    make(&env, another.clone()).await;
    becomes(&env, &old, "run by both", |object| {
        let run_by = object.data["status"]["runBy"].as_array();
        run_by.is_some_and(|run_by| run_by.len() == 2)
    })
    .await;
    let free = aggregated("free", "0.0.0.0:9001");
    make(&env, free.clone()).await;
    runs(&env, &free, &["tcp 0.0.0.0:9001"]).await;

    // All results are in the statuses: the restarted controller validates nothing again.
    validations(&env).await;
    env.installation
        .restart_controller_with(&[])
        .expect("the process starts");
    let later = aggregated("later", "0.0.0.0:9002");
    make(&env, later.clone()).await;
    runs(&env, &later, &["tcp 0.0.0.0:9002"]).await;
    assert_eq!(
        validations(&env).await,
        1,
        "only the new pipeline is validated"
    );

    // The oldest of the waiting pipelines gets the address of the deleted one.
    delete(&env, &old).await;
    runs(&env, &second, &[&listens(&second)]).await;
    waits(&env, &third, &source(&second)).await;
    delete(&env, &another).await;

    // With another selector the aggregator no longer runs them together.
    let selector = json!({"spec": {"selector": {"matchLabels": {"run": "it"}}}});
    edit(&env, &aggregator, &selector).await;
    for pipeline in [&third, &second] {
        runs(&env, pipeline, &[]).await;
    }
    // With the label each runs again: the first one to get it keeps the address, although the other is older.
    let label = json!({"metadata": {"labels": {"run": "it"}}});
    edit(&env, &third, &label).await;
    runs(&env, &third, &[&listens(&third)]).await;
    edit(&env, &second, &label).await;
    waits(&env, &second, &source(&third)).await;
    runs(&env, &third, &[&listens(&third)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_run_the_pipelines_of_all_namespaces_and_the_cluster_scoped_ones_together() {
    let env = start().await;
    let made = env.kubectl(&["create", "namespace", "team"]);
    made.expect("a namespace");
    let agents = object("Vector", Some(NAMESPACE), "agents", &json!({"agent": {}}));
    make(&env, agents).await;
    let first = on_nodes("VectorPipeline", Some("team"), "first");
    make(&env, first.clone()).await;
    runs(&env, &first, &["tcp 0.0.0.0:9100"]).await;
    let tenants = on_nodes("VectorPipeline", Some(NAMESPACE), "second");
    make(&env, tenants.clone()).await;
    // A tenant does not learn which pipelines of other namespaces have the address.
    let of_another = "a pipeline outside this namespace in the Pods of Vector default/agents";
    waits(&env, &tenants, of_another).await;
    let administrators = on_nodes("ClusterVectorPipeline", None, "third");
    make(&env, administrators.clone()).await;
    let of = |pipeline: &str| {
        format!("the sink `out` of VectorPipeline {pipeline} in the Pods of Vector default/agents")
    };
    waits(&env, &administrators, &of("team/first")).await;
    // A pipeline that holds an address keeps it, even if an older pipeline changes to that address.
    let listening = |address: &str| json!({"spec": {"sinks": {"out": {"address": address}}}});
    edit(&env, &first, &listening("0.0.0.0:9200")).await;
    runs(&env, &first, &["tcp 0.0.0.0:9200"]).await;
    let (holder, other) = holder(&env, &tenants, &administrators).await;
    edit(&env, &first, &listening("0.0.0.0:9100")).await;
    waits(&env, &first, of_another).await;
    validations(&env).await;
    assert!(
        is_valid(&env, holder).await,
        "the listening pipeline stays valid"
    );
    assert!(
        !is_valid(&env, other).await,
        "the waiting pipeline stays invalid"
    );
    // The holder releases the address only when its change to another address has been validated.
    edit(&env, holder, &listening("0.0.0.0:9300")).await;
    runs(&env, holder, &["tcp 0.0.0.0:9300"]).await;
    let next = by_age(&env, [first, other.clone()]).await;
    runs(&env, &next[0], &["tcp 0.0.0.0:9100"]).await;
    let namespace = |pipeline: &Value| {
        pipeline["metadata"]["namespace"]
            .as_str()
            .map(str::to_owned)
    };
    let by = match (namespace(&next[1]), namespace(&next[0])) {
        (None, Some(other)) => of(&format!(
            "{other}/{}",
            next[0]["metadata"]["name"].as_str().unwrap_or_default()
        )),
        _ => of_another.to_owned(),
    };
    waits(&env, &next[1], &by).await;
}

async fn is_valid(env: &TestEnv, object: &Value) -> bool {
    let name = object["metadata"]["name"].as_str().expect("a name");
    let found = env.objects(object).get(name).await;
    let is_valid = found.expect("the object exists").data["status"]["configCheckResult"].as_bool();
    is_valid.unwrap_or_else(|| env.fail("`status.configCheckResult` is not set"))
}

/// The pipeline of the two that gets the address for which both wait, then the other one.
async fn holder<'a>(env: &TestEnv, one: &'a Value, another: &'a Value) -> (&'a Value, &'a Value) {
    let found = eventually("the assignment of the address", async || {
        match (is_valid(env, one).await, is_valid(env, another).await) {
            (true, false) => Some((one, another)),
            (false, true) => Some((another, one)),
            _ => None,
        }
    });
    found
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()))
}

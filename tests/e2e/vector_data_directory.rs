//! Directories of the nodes in which workloads keep their data.

use lockstep_envtest::eventually;
use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::running_vector::{KINDS, logs, object, start_without_pods};

/// Returns the directory in the Pods of a `DaemonSet`.
fn directory(daemon_set: &Value) -> Value {
    let volumes = &daemon_set["spec"]["template"]["spec"]["volumes"];
    let mut volumes = volumes.as_array().into_iter().flatten();
    let data = volumes.find(|volume| volume["name"] == "data");
    data.map_or(Value::Null, |data| data["hostPath"]["path"].clone())
}

/// Waits until the `DaemonSet` and the status of agents have a directory.
async fn has_directory(env: &TestEnv, agents: &str, expected: &str) {
    let found = eventually(expected, async || {
        let status = env.get(&format!("vector/{agents}"))["status"].clone();
        let daemon_set = env.get(&format!("daemonset/{agents}-agent"));
        let is_there = directory(&daemon_set) == expected && status["dataDirectory"] == expected;
        is_there.then_some(())
    });
    found
        .await
        .unwrap_or_else(|error| env.fail(&format!("{error}\n{}", env.statuses())));
}

/// Waits until agents have the condition about other ones, with this status.
async fn reports_others(env: &TestEnv, agents: &str, expected: &str) {
    let reported = eventually("the condition", async || {
        let status = env.get(&format!("vector/{agents}"))["status"].clone();
        let mut conditions = status["conditions"].as_array()?.iter();
        let condition = conditions.find(|condition| condition["type"] == "DataDirectoryShared")?;
        (condition["status"] == expected).then_some(())
    });
    reported
        .await
        .unwrap_or_else(|error| env.fail(&format!("{error}\n{}", env.statuses())));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_workload_has_its_own_and_stays_in_it() {
    let env = start_without_pods(KINDS).await;
    env.apply(&object("VectorPipeline", "p", &logs("out")));
    let agents = |name: &str, agent: Value| object("Vector", name, &json!({"agent": agent}));
    env.apply(&agents("first", json!({})));
    has_directory(
        &env,
        "first",
        "/var/lib/vector-workloads/default/first-agent",
    )
    .await;
    env.apply(&agents("first", json!({"dataDir": "/data"})));
    has_directory(&env, "first", "/data").await;
    env.apply(&agents(
        "first",
        json!({"tolerations": [{"operator": "Exists"}]}),
    ));
    has_directory(&env, "first", "/data").await;
    env.kubectl(&["delete", "daemonset", "first-agent"])
        .expect("it is deleted");
    has_directory(&env, "first", "/data").await;

    env.apply(&agents("second", json!({"dataDir": "/data"})));
    reports_others(&env, "second", "True").await;
    env.apply(&agents("second", json!({"dataDir": "/other"})));
    reports_others(&env, "second", "False").await;
    let first = env.get("vector/first")["status"]["conditions"].to_string();
    assert!(!first.contains("DataDirectoryShared"), "{first}");
}

//! Measurement: changes of one tenant beside a thousand objects of another one that change all the time. It takes minutes, and
//! prints figures:
//!
//! ```text
//! cargo test --workspace --test e2e -- --ignored --nocapture noisy_tenant
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use lockstep_envtest::eventually_within;
use rds_simulator::Simulator;
use serde_json::json;

use crate::env::{EnvOptions, TestEnv, condition, database};

/// Objects of the noisy tenant, and the clients that change them.
const OBJECTS: usize = 1000;
const CLIENTS: usize = 4;

/// Measured changes.
const CHANGES: usize = 100;

const DEADLINE: Duration = Duration::from_mins(10);

/// Name of the database of the other tenant, and of its namespace.
const QUIET: &str = "quiet";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement that takes minutes"]
async fn changes_of_another_tenant() {
    let (env, _rds) = start().await;
    env.kubectl(&["create", "namespace", QUIET])
        .expect("a namespace");
    let mut object = database(QUIET);
    object["metadata"]["namespace"] = json!(QUIET);
    object["spec"]["credentials"] = json!({"username": "app", "managed": {}});
    env.apply(&object);
    let quiet = env.objects(&object);
    runs_generation(&env, &quiet, 1).await;
    let alone = changes(&env, &quiet, "alone").await;

    tokio::join!(
        env.create_databases(OBJECTS),
        env.databases_are_synced(OBJECTS, DEADLINE)
    );
    let written = Arc::new(AtomicUsize::new(0));
    let clients = (0..CLIENTS).map(|client| {
        let (databases, written) = (env.databases(), Arc::clone(&written));
        tokio::spawn(async move {
            for number in (client..).step_by(CLIENTS) {
                let name = format!("orders-{}", number % OBJECTS);
                let patch = json!({"spec": {"tags": {"number": number.to_string()}}});
                let params = PatchParams::default();
                let changed = databases.patch(&name, &params, &Patch::Merge(&patch)).await;
                written.fetch_add(usize::from(changed.is_ok()), Ordering::Relaxed);
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    let is_busy = async || (written.load(Ordering::Relaxed) > OBJECTS).then_some(());
    let busy = eventually_within(DEADLINE, "changes of all objects", is_busy).await;
    busy.expect("the noisy tenant writes");
    let (before, started) = (written.load(Ordering::Relaxed), Instant::now());
    let beside = changes(&env, &quiet, "beside").await;
    let changed = (written.load(Ordering::Relaxed) - before) as u128;
    let rate = changed * 1000 / started.elapsed().as_millis();
    for client in clients {
        client.abort();
    }
    println!(
        "{CHANGES} changes alone: {alone:?}; beside {OBJECTS} objects with {rate} changes a second: {beside:?}; \
         p95: {:.2} times",
        beside.p95.as_secs_f64() / alone.p95.as_secs_f64()
    );
}

async fn start() -> (TestEnv, Simulator) {
    // The rate at which this account would be throttled is not measured here.
    let rate = ["--rds-qps=200", "--rds-burst=200"].map(str::to_owned);
    let options = EnvOptions {
        controller_args: rate.to_vec(),
        ..EnvOptions::default()
    };
    let (env, rds) = TestEnv::start_on_simulator_with(options).await;
    env.raise_quota();
    rds.set_quotas(|quotas| {
        quotas.instances = 2 * OBJECTS;
        quotas.storage = 100_000_000;
    });
    (env, rds)
}

/// Times until changes are made.
#[derive(Debug)]
struct Times {
    #[expect(dead_code, reason = "it is printed")]
    p50: Duration,
    p95: Duration,
}

/// Changes the object again and again, and returns the times until RDS has each change.
async fn changes(env: &TestEnv, quiet: &Api<DynamicObject>, name: &str) -> Times {
    let mut times = Vec::new();
    for number in 0..CHANGES {
        let patch = json!({"spec": {"tags": {name: number.to_string()}}});
        let started = Instant::now();
        let changed = quiet
            .patch(QUIET, &PatchParams::default(), &Patch::Merge(&patch))
            .await;
        let generation = changed.expect("it is stored").metadata.generation;
        runs_generation(env, quiet, generation.unwrap_or_default()).await;
        times.push(started.elapsed());
    }
    times.sort();
    Times {
        p50: times[CHANGES / 2],
        p95: times[CHANGES * 95 / 100],
    }
}

/// Waits until a generation is in the desired state.
async fn runs_generation(env: &TestEnv, quiet: &Api<DynamicObject>, generation: i64) {
    let is_synced = |object: Option<&DynamicObject>| {
        let synced = object.and_then(|object| condition(object, "Synced"));
        synced.is_some_and(|synced| {
            synced.status == "True" && synced.observed_generation == Some(generation)
        })
    };
    let synced = await_condition(quiet.clone(), QUIET, is_synced);
    match tokio::time::timeout(DEADLINE, synced).await {
        Ok(Ok(_)) => {}
        problem => env.fail(&format!("generation {generation}: {problem:?}")),
    }
}

//! Chaos test: whatever fails meanwhile, in the end cluster and AWS match the objects, and Vector would start with each
//! configuration that was published. Two hundred objects are created, changed and deleted while controllers are killed and
//! frozen, the lease is taken from them, the API server restarts, watches break, calls fail or get no response, RDS shows
//! nothing of what exists for a moment, and instances have all kinds of statuses.
//!
//! Two seeds run by default, twenty with `-- --include-ignored`, and any other seed with `CHAOS_SEED=N`.

mod convergence;
mod database_origins;
#[path = "../e2e/env.rs"]
#[allow(dead_code, reason = "this test uses only a part")]
mod env;
mod fault_proxy;
#[path = "../e2e/instance_status_names.rs"]
mod instance_status_names;
mod instance_statuses;
mod process_faults;
#[path = "../e2e/proxy.rs"]
#[allow(dead_code, reason = "other tests use the traps")]
mod proxy;
mod publications;
mod refusals;
mod vector_objects;
mod vector_state;
mod workload;

use std::process::Command;
use std::time::{Duration, Instant};

use kube::Config;
use libtest_mimic::{Arguments, Trial};
use lockstep_envtest::{Cluster, Moto};
use rds_simulator::Simulator;
use serde_json::Value;

use crate::env::{EnvOptions, TestEnv};
use crate::fault_proxy::FaultSchedule;
use crate::instance_statuses::InstanceStatuses;
use crate::process_faults::ProcessFaults;
use crate::publications::Publications;
use crate::workload::Author;

/// Number of seeds that run by default, and with `--include-ignored`.
const FEW: u64 = 2;
const ALL: u64 = 20;

/// Percentage of calls that get a fault.
const API_FAULTS: u32 = 10;
const AWS_FAULTS: u32 = 20;

/// Percentage of the descriptions of instances, snapshots and backups that show nothing, as if nothing existed.
const LAPSES: u32 = 5;

/// Number of times that the AWS SDK retries a call before it gives up.
const AWS_REPEATS: u32 = 2;

fn main() {
    let mut arguments = Arguments::from_args();
    // Each trial has a cluster of its own, with two hundred objects, and waits for a half of its time.
    arguments.test_threads.get_or_insert(2);
    let seed_variable = std::env::var("CHAOS_SEED").ok();
    let seed_variable = seed_variable.map(|seed| seed.parse().expect("CHAOS_SEED is a number"));
    let seeds = seed_variable.map_or(1..=ALL, |seed| seed..=seed);
    let trials = seeds.map(|seed| {
        let run = move || {
            block_on(survives(seed));
            Ok(())
        };
        let is_ignored = seed > FEW && seed_variable.is_none();
        Trial::test(format!("seed_{seed}"), run).with_ignored_flag(is_ignored)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

fn block_on(trial: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(trial);
}

async fn survives(seed: u64) {
    let started = Instant::now();
    println!("chaos test with seed {seed}");
    let cluster = Cluster::start().await.expect("a cluster");
    cluster.add_node("node").await.expect("a node");
    let moto = Moto::start().await.expect("moto");
    let before_apiserver = FaultSchedule::before(
        proxy::towards_apiserver(&cluster).await,
        seed,
        API_FAULTS,
        0,
    )
    .await;
    let rds = simulator().await;
    let towards_aws = Config::new(rds.endpoint().parse().expect("a URL"));
    let before_aws =
        FaultSchedule::before(towards_aws, seed + 1_000, AWS_FAULTS, AWS_REPEATS).await;
    let options = EnvOptions {
        aws_endpoint: Some(before_aws.url()),
        controller_server: Some(before_apiserver.url()),
        controller_env: Vec::new(),
        controller_args: [
            "--rds-poll-interval=500ms",
            "--rds-qps=50",
            "--rds-resync-period=10s",
            "--rds-not-found-grace-period=5s",
        ]
        .map(String::from)
        .into(),
        kinds: Some("*,Echo,Vector,VectorAggregator,VectorPipeline"),
        manifest_args: &[],
        manifests: None,
        workloads: true,
    };
    let mut env = TestEnv::install(cluster, moto, options).await;
    // The policy is that of the controller.
    let key = Simulator::CONSOLE_ACCESS_KEY;
    env.rds = env::rds_as(key, &rds.endpoint(), Simulator::REGION).await;
    allow_sources(&env);
    env.raise_quota();
    database_origins::prepare(&rds, &env.rds, workload::DATABASES).await;
    refusals::start(&rds);
    let statuses = InstanceStatuses::start(rds.clone(), seed);
    before_apiserver.start_faults();
    before_aws.start_faults();
    rds.set_lapses(Simulator::ACCESS_KEY, LAPSES, seed + 4_000);

    let publications = Publications::watch(env.cluster.client());
    let mut author = Author::new(&env, seed);
    author.makes_all().await;
    let mut process_faults = ProcessFaults::new(seed, before_apiserver.clone());
    let counts = {
        let (running, mut over) = tokio::sync::oneshot::channel::<()>();
        let injecting = async {
            let counts = process_faults.run_all(&mut env).await;
            drop(running);
            counts
        };
        let writing = async {
            while matches!(
                over.try_recv(),
                Err(tokio::sync::oneshot::error::TryRecvError::Empty)
            ) {
                author.does_something().await;
            }
        };
        tokio::join!(injecting, writing).0
    };
    before_apiserver.stop_faults();
    before_aws.stop_faults();
    rds.set_lapses(Simulator::ACCESS_KEY, 0, 0);
    statuses.stop();
    println!(
        "{} s; operations on objects: {:?}; process faults: {counts:?}; calls to the API server: {:?}, to AWS: {:?}",
        started.elapsed().as_secs(),
        author.has_done(),
        before_apiserver.counts(),
        before_aws.counts(),
    );
    let ended = Instant::now();
    let refused = convergence::reaches_desired_state(&env, &rds, &author).await;
    println!(
        "cluster and AWS match the objects {} s after the faults, but for {refused} changes that RDS refuses, each of which is visible",
        ended.elapsed().as_secs()
    );
    instance_statuses::are_reported(&env, &rds, &author).await;
    author.changes_windows().await;
    let refused = convergence::reaches_desired_state(&env, &rds, &author).await;
    assert!(refused > 0, "nothing was refused");
    refusals::end(&rds, &env.databases()).await;
    let refused = convergence::reaches_desired_state(&env, &rds, &author).await;
    assert_eq!(refused, 0);
    convergence::nothing_was_unsafe(&rds);
    publications.all_start(&env);
    // A deletion orphans no instance that one answer does not show.
    rds.set_lapses(Simulator::ACCESS_KEY, LAPSES, seed + 5_000);
    author.deletes_all().await;
    convergence::all_gone(&env).await;
    println!(
        "everything is deleted after {} s",
        started.elapsed().as_secs()
    );
}

/// Lets the objects use the instances that exist before them.
fn allow_sources(env: &TestEnv) {
    let annotate = ["annotate", "namespace", env::NAMESPACE];
    env.kubectl(&[&annotate[..], &[database_origins::CONSENT]].concat())
        .unwrap_or_else(|error| env.fail(&error));
}

/// Returns the permissions that users are to give to the controller.
fn iam_policy() -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
    command
        .arg("iam-policy")
        .args(database_origins::PERMISSIONS);
    let output = command.output().expect("lockstep runs");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Starts RDS with room for all instances and all final snapshots. It takes a while to create, change and delete an
/// instance, and to list a new one.
async fn simulator() -> Simulator {
    let rds = Simulator::start().await.expect("a simulator");
    rds.set_policy(Simulator::ACCESS_KEY, &iam_policy());
    rds.set_quotas(|quotas| {
        quotas.instances = 10_000;
        quotas.storage = 10_000_000;
        quotas.snapshots = 10_000;
    });
    rds.set_timing(|timing| {
        timing.state = Duration::from_millis(200);
        timing.listing_delay = Duration::from_millis(500);
    });
    rds
}

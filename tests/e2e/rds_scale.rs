//! Measurement: ten thousand databases. It takes minutes, and prints figures:
//!
//! ```text
//! cargo test --workspace --test e2e -- --ignored --nocapture rds_scale
//! ```

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::iter;
use kube::api::{Api, DynamicObject, ListParams};
use lockstep_envtest::eventually_within;
use rds_simulator::{End, Simulator};
use serde_json::json;

use crate::env::{EnvOptions, TestEnv};
use crate::usage::Usage;

const OBJECTS: usize = 10_000;

/// Interval at which an instance is described.
const PERIOD: Duration = Duration::from_mins(2);

/// Intervals without changes.
const QUIET_PERIODS: u32 = 3;

/// Instances whose status changes, one after another.
const CHANGED: u32 = 40;

const DEADLINE: Duration = Duration::from_mins(40);

/// Installation under measurement.
struct Scale {
    env: TestEnv,
    rds: Simulator,
    databases: Api<DynamicObject>,
}

impl Scale {
    async fn start() -> Self {
        let period = format!("--rds-resync-period={}s", PERIOD.as_secs());
        // The rate at which this account would be throttled is not measured here.
        let rate = [
            "--rds-poll-interval=10s",
            "--rds-qps=200",
            "--rds-burst=200",
        ]
        .map(str::to_owned);
        let options = EnvOptions {
            controller_args: [vec![period], rate.to_vec()].concat(),
            ..EnvOptions::default()
        };
        let (env, rds) = TestEnv::start_on_simulator_with(options).await;
        rds.set_quotas(|quotas| {
            quotas.instances = OBJECTS;
            quotas.storage = 100_000_000;
        });
        let databases = env.databases();
        Self {
            env,
            rds,
            databases,
        }
    }

    /// Returns the number of calls to RDS by their operation.
    fn calls(&self) -> BTreeMap<String, usize> {
        let mut calls = BTreeMap::new();
        for entry in self.rds.journal() {
            *calls.entry(entry.operation).or_default() += 1;
        }
        calls
    }

    /// Returns the present resource version, which each write of any client increases.
    async fn resource_version(&self) -> u64 {
        let none = ListParams::default().limit(1);
        let list = self.databases.list(&none).await.expect("objects");
        let version = list.metadata.resource_version.unwrap_or_default();
        version.parse().expect("a number")
    }

    fn usage(&mut self) -> Usage {
        Usage::of(self.env.installation.controller().id())
    }

    /// Changes the status of an instance, and returns the time until the object reports it.
    async fn time_to_notice(&self, name: &str) -> Duration {
        let object = self.databases.get(name).await.expect("the object");
        let instance = object.data["status"]["instanceId"].as_str();
        let instance = instance.expect("an identifier").to_owned();
        let started = Instant::now();
        self.rds
            .force_status(&instance, "storage-full", End::Released);
        let noticed = eventually_within(DEADLINE, "the status", async || {
            let object = self.databases.get(name).await.ok()?;
            (object.data["status"]["phase"] == json!("storage-full")).then_some(())
        });
        noticed
            .await
            .unwrap_or_else(|error| self.env.fail(&error.to_string()));
        started.elapsed()
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement that takes minutes"]
async fn databases_by_the_thousands() {
    let mut scale = Scale::start().await;
    let started = Instant::now();
    let env = &scale.env;
    tokio::join!(
        env.create_databases(OBJECTS),
        env.databases_are_synced(OBJECTS, DEADLINE)
    );
    let Usage { cpu, memory } = scale.usage();
    println!(
        "{OBJECTS} databases are ready after {:.0} s; controller: {cpu:.0} s of CPU, {memory} MiB; calls: {:?}",
        started.elapsed().as_secs_f64(),
        scale.calls()
    );

    // What is measured is a time, not a condition. The last answers belong to the creation.
    tokio::time::sleep(PERIOD).await;
    scale.rds.clear_journal();
    let (before, version) = (scale.usage(), scale.resource_version().await);
    tokio::time::sleep(PERIOD * QUIET_PERIODS).await;
    let (after, calls) = (scale.usage(), scale.calls());
    let writes = scale.resource_version().await - version;
    let count: usize = calls.values().sum();
    println!(
        "{QUIET_PERIODS} periods of {} s without changes: {calls:?}, one call an object would be {}; controller: {:.1} s \
         of CPU, {} MiB; {writes} writes to etcd, with those of Leases",
        PERIOD.as_secs(),
        OBJECTS * QUIET_PERIODS as usize,
        after.cpu - before.cpu,
        after.memory
    );

    let changes = iter(0..CHANGED).map(|number| {
        let scale = &scale;
        async move {
            tokio::time::sleep(PERIOD * number / CHANGED).await;
            scale
                .time_to_notice(&format!("orders-{}", number * 200))
                .await
        }
    });
    let times: Vec<_> = changes.buffer_unordered(CHANGED as usize).collect().await;
    let mut times: Vec<_> = times.iter().map(Duration::as_secs_f64).collect();
    times.sort_by(f64::total_cmp);
    println!(
        "a changed status is reported after {:.0} s (median; {:.0} to {:.0} s)",
        times[times.len() / 2],
        times[0],
        times[times.len() - 1]
    );
    // A call for each object would make the listing pointless.
    assert!(count < OBJECTS, "{count} calls");
}

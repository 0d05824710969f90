//! Measurement: ten thousand databases. It takes minutes, and prints figures:
//!
//! ```text
//! cargo test --workspace --test e2e -- --ignored --nocapture rds_scale
//! ```

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::iter;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use lockstep_envtest::eventually_within;
use rds_simulator::{End, Simulator};
use serde_json::json;

use crate::env::{EnvOptions, TestEnv, condition, database};
use crate::usage::Usage;

const OBJECTS: usize = 10_000;

/// Requests to the API server at the same time, for the creation.
const CLIENTS: usize = 16;

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

    async fn create_all(&self) {
        let created = iter(0..OBJECTS).map(|number| async move {
            let object = serde_json::from_value(database(&format!("orders-{number}")));
            let object: DynamicObject = object.expect("an object");
            let created = self.databases.create(&PostParams::default(), &object).await;
            created.expect("stored");
        });
        created.buffer_unordered(CLIENTS).count().await;
    }

    /// Waits until all objects are as they should be.
    async fn all_are_applied(&self) {
        let all = eventually_within(DEADLINE, "all objects in their desired state", async || {
            // Without it, the listing of all objects would be most of the work of the API server.
            tokio::time::sleep(Duration::from_secs(5)).await;
            let objects = self.databases.list(&ListParams::default()).await.ok()?;
            let is = |object, type_| condition(object, type_).is_some_and(|it| it.status == "True");
            let mut objects = objects.items.iter();
            objects
                .all(|it| is(it, "Ready") && is(it, "Synced"))
                .then_some(())
        });
        all.await
            .unwrap_or_else(|error| self.env.fail(&error.to_string()));
    }

    /// Returns the number of calls to RDS by their operation.
    fn calls(&self) -> BTreeMap<String, usize> {
        let mut calls = BTreeMap::new();
        for entry in self.rds.journal() {
            *calls.entry(entry.operation).or_default() += 1;
        }
        calls
    }

    /// Returns the sum of the resource versions' progress: the writes of all clients.
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
    tokio::join!(scale.create_all(), scale.all_are_applied());
    let Usage { cpu, memory } = scale.usage();
    println!(
        "{OBJECTS} databases are ready after {:.0} s; controller: {cpu:.0} s of CPU, {memory} MiB; calls: {:?}",
        started.elapsed().as_secs_f64(),
        scale.calls()
    );

    // The last answers belong to the creation.
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

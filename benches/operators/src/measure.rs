//! Measurement of one operator, from the creation of the objects to their deletion.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bench_harness::audit::Audit;
use bench_harness::usage;
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use lockstep_envtest::{Cluster, eventually_within};
use serde_json::{Value, json};

use crate::behaviour;
use crate::operators::{Operator, Running, audit_rules};
use crate::phase::Phase;
use crate::provider::Provider;
use crate::records::{TTLS, is_ready, object, records};

/// Time limit of each wait.
const DEADLINE: Duration = Duration::from_mins(10);

/// Interval of the checks of a running operator.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Time without requests after which an operator counts as idle.
const IDLE_PERIOD: Duration = Duration::from_secs(3);

/// Concurrent requests that create, edit and delete objects.
const WRITERS: usize = 16;

/// Running operator with everything that is read of it.
struct Measurement<'a> {
    audit: &'a Audit,
    provider: &'a Provider,
    running: Running,
    objects: usize,
}

/// Start of a phase.
struct Begin {
    position: u64,
    cpu: f64,
    at: Instant,
}

pub(crate) async fn measure(
    operator: &Operator,
    objects: usize,
    resync: u64,
) -> anyhow::Result<Vec<Phase>> {
    let folder = tempfile::tempdir()?;
    let audit = Audit::within(folder.path(), &audit_rules())?;
    let arguments = audit.arguments();
    let cluster = Cluster::start_with(&[&arguments[0], &arguments[1]]).await?;
    let provider = Provider::default();
    let url = provider.serve().await?;
    let running = operator.start(&cluster, &url, resync).await?;
    let mut measurement = Measurement {
        audit: &audit,
        provider: &provider,
        running,
        objects,
    };
    let phases = measurement.phases(&cluster, resync).await;
    phases.with_context(|| measurement.running.output())
}

impl Measurement<'_> {
    async fn phases(&mut self, cluster: &Cluster, resync: u64) -> anyhow::Result<Vec<Phase>> {
        let records = records(cluster);
        let names: Vec<_> = (0..self.objects).map(|at| format!("record-{at}")).collect();
        self.wait_for_start().await?;
        behaviour::check(cluster, &records, self.provider).await?;
        self.idle().await?;

        let begin = self.begin()?;
        let created = begin.at;
        each(&names, async |name| {
            records
                .create(&PostParams::default(), &object(name))
                .await
                .map(drop)
        })
        .await?;
        self.all_ready(&records, TTLS[0]).await?;
        let create = self.end("create", begin).await?;

        let begin = self.begin()?;
        let edit = Patch::Merge(json!({"spec": {"ttl": TTLS[1]}}));
        each(&names, async |name| {
            records
                .patch(name, &PatchParams::default(), &edit)
                .await
                .map(drop)
        })
        .await?;
        self.all_ready(&records, TTLS[1]).await?;
        let edit = self.end("edit", begin).await?;
        self.check_provider()?;
        ensure!(
            created.elapsed() < Duration::from_secs(resync),
            "the objects were resynchronized before they were edited; choose a longer `--resync-seconds`"
        );

        self.provider.forget_reads();
        let begin = self.begin()?;
        eventually_within(DEADLINE, "all records to be read again", async || {
            (self.provider.read_count() == self.objects).then_some(())
        })
        .await?;
        let mut unchanged = self.end("resync", begin).await?;
        // The time is that of the timers.
        unchanged.seconds = None;

        let begin = self.begin()?;
        each(&names, async |name| {
            records
                .delete(name, &DeleteParams::default())
                .await
                .map(drop)
        })
        .await?;
        let one = ListParams::default().limit(1);
        eventually_within(DEADLINE, "all objects to be deleted", async || {
            let left = records.list_metadata(&one).await.ok()?;
            left.items.is_empty().then_some(())
        })
        .await?;
        let delete = self.end("delete", begin).await?;
        ensure!(
            self.provider.records().is_empty(),
            "records are left at the provider"
        );
        Ok(vec![create, edit, unchanged, delete])
    }

    /// Waits until the operator watches the objects and has nothing else to do.
    async fn wait_for_start(&self) -> anyhow::Result<()> {
        eventually_within(DEADLINE, "the operator to watch the objects", async || {
            let calls = self.audit.calls(0).ok()?;
            let mut watches = calls.iter().filter(|call| call.verb == "watch");
            let on_records = |call: &bench_harness::audit::Call| {
                call.object_ref
                    .as_ref()
                    .is_some_and(|it| it.resource == "dnsrecords")
            };
            watches.any(on_records).then_some(())
        })
        .await?;
        self.idle().await
    }

    fn begin(&mut self) -> anyhow::Result<Begin> {
        self.provider.take_requests();
        Ok(Begin {
            position: self.audit.position()?,
            cpu: usage::cpu(self.running.pid())?,
            at: Instant::now(),
        })
    }

    /// Ends a phase whose condition is met. Requests that follow belong to it.
    async fn end(&mut self, name: &'static str, begin: Begin) -> anyhow::Result<Phase> {
        let seconds = begin.at.elapsed().as_secs_f64();
        self.idle().await?;
        let pid = self.running.pid();
        let mut api = BTreeMap::new();
        for call in self.audit.calls(begin.position)? {
            let object = call.object_ref.map_or_else(String::new, |it| {
                let subresource = it.subresource.map(|name| format!("/{name}"));
                format!(" {}{}", it.resource, subresource.unwrap_or_default())
            });
            *api.entry(format!("{}{object}", call.verb)).or_default() += 1;
        }
        Ok(Phase {
            name,
            seconds: Some(seconds),
            cpu: usage::cpu(pid)? - begin.cpu,
            peak: usage::memory(pid)?.peak,
            api,
            provider: self.provider.take_requests(),
            load: usage::load()?,
        })
    }

    /// Waits until the operator sends no requests.
    async fn idle(&self) -> anyhow::Result<()> {
        let started = Instant::now();
        let observe = || anyhow::Ok((self.audit.position()?, self.provider.request_count()));
        let mut last = (Instant::now(), observe()?);
        while last.0.elapsed() < IDLE_PERIOD {
            ensure!(
                started.elapsed() < DEADLINE,
                "the operator does not become idle"
            );
            tokio::time::sleep(POLL_INTERVAL).await;
            let now = observe()?;
            if now != last.1 {
                last = (Instant::now(), now);
            }
        }
        Ok(())
    }

    /// Waits until every object is ready with this time to live.
    async fn all_ready(&self, records: &Api<DynamicObject>, ttl: u32) -> anyhow::Result<()> {
        let events = watcher(records.clone(), watcher::Config::default());
        let mut events = std::pin::pin!(events.default_backoff().applied_objects());
        let mut ready = HashMap::new();
        let all = async {
            while let Some(object) = events.next().await {
                let Ok(object) = object else { continue };
                let is_ready = is_ready(&object, ttl);
                ready.insert(object.metadata.name, is_ready);
                if ready.values().filter(|is_ready| **is_ready).count() == self.objects {
                    break;
                }
            }
        };
        tokio::time::timeout(DEADLINE, all)
            .await
            .context("not all objects became ready")
    }

    /// Fails unless the provider has exactly the edited records.
    fn check_provider(&self) -> anyhow::Result<()> {
        let records = self.provider.records();
        let is_edited = |record: &Value| record["ttl"] == TTLS[1];
        ensure!(
            records.len() == self.objects && records.iter().all(is_edited),
            "the provider has other records than the objects want"
        );
        Ok(())
    }
}

/// Sends a request for each object.
async fn each(
    names: &[String],
    request: impl AsyncFn(&str) -> kube::Result<()>,
) -> anyhow::Result<()> {
    stream::iter(names)
        .map(Ok::<_, kube::Error>)
        .try_for_each_concurrent(WRITERS, async |name| request(name).await)
        .await?;
    Ok(())
}

//! Throughput and memory of one replica, and of several that share the objects by shards, with a slow external system.

use std::env;
use std::fs::File;
use std::iter;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bench_harness::usage::{self, Memory};
use kube::{Client, Config};
use lockstep_envtest::{Cluster, free_port};

use crate::implementations::Running;
use crate::measure::make;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of objects.
    #[arg(long, default_value_t = 30_000)]
    objects: usize,
    /// Length of the random text in each object, in bytes, which cannot be compressed.
    #[arg(long, default_value_t = 200)]
    text_bytes: usize,
    /// Number of replicas.
    #[arg(long, default_value_t = 3)]
    replicas: usize,
    /// Number of shards.
    #[arg(long, default_value_t = 9)]
    shards: usize,
    /// Maximum number of concurrent reconciliations of a replica.
    #[arg(long, default_value_t = 64)]
    concurrency: usize,
    /// Time that the external system takes for a reconciliation, in milliseconds.
    #[arg(long, default_value_t = 400)]
    latency_ms: u64,
    /// Number of periods in which the reconciliations are counted.
    #[arg(long, default_value_t = 4)]
    periods: usize,
    /// Length of each period in seconds.
    #[arg(long, default_value_t = 15)]
    period: u64,
}

/// Time limit of each step.
const DEADLINE: Duration = Duration::from_mins(10);

const POLL_INTERVAL: Duration = Duration::from_millis(200);

struct Fleet {
    replicas: Vec<Running>,
}

impl Args {
    fn text(&self, object: usize) -> String {
        let mut random = fastrand::Rng::with_seed(object as u64);
        iter::repeat_with(|| random.alphanumeric())
            .take(self.text_bytes)
            .collect()
    }

    /// Starts replicas; without shards only one.
    fn start(
        &self,
        cluster: &Cluster,
        folder: &Path,
        shards: bool,
        latency_ms: u64,
    ) -> anyhow::Result<Fleet> {
        let count = if shards { self.replicas } else { 1 };
        let replicas = (0..count).map(|at| {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
            let log = File::create(folder.join(format!("replica-{at}.log")))?;
            let mut command = Command::new(env::current_exe()?);
            command
                .arg("operate-slowly")
                .arg(format!("--listen={address}"))
                .arg(format!("--concurrency={}", self.concurrency))
                .arg(format!("--latency-ms={latency_ms}"))
                .arg(format!("--identity=replica-{at}"))
                .env("KUBECONFIG", cluster.kubeconfig())
                .stdout(log.try_clone()?)
                .stderr(log);
            if shards {
                command.arg(format!("--shards={}", self.shards));
            }
            let metrics = Client::try_from(Config::new(format!("http://{address}").parse()?))?;
            Ok(Running::new(command.spawn()?, metrics))
        });
        let replicas = replicas.collect::<anyhow::Result<_>>()?;
        Ok(Fleet { replicas })
    }

    /// Measures replicas that are running. Returns the reconciliations per second of each period.
    async fn measure(&self, name: &str, fleet: &mut Fleet) -> anyhow::Result<Vec<f64>> {
        fleet.reconciled(self.objects / 4).await?;
        let (mut rates, mut cpu) = (Vec::new(), fleet.cpu()?);
        let started = Instant::now();
        for _ in 0..self.periods {
            let (before, since) = (fleet.reconciliations().await?, Instant::now());
            tokio::time::sleep(Duration::from_secs(self.period)).await;
            let done: u64 = fleet.reconciliations().await?.iter().sum();
            // A count of this size is exact.
            #[allow(clippy::cast_precision_loss)]
            let done = (done - before.iter().sum::<u64>()) as f64;
            rates.push(done / since.elapsed().as_secs_f64());
        }
        rates.sort_by(f64::total_cmp);
        cpu = fleet.cpu()? - cpu;
        println!("{name}:");
        let [least, most] = [rates[0], rates[rates.len() - 1]];
        let median = rates[rates.len() / 2];
        println!("  reconciliations per second: {median:.1} ({least:.1} to {most:.1})");
        println!(
            "  CPU of all replicas: {:.2} cores",
            cpu / started.elapsed().as_secs_f64()
        );
        for (at, replica) in fleet.replicas.iter().enumerate() {
            let Memory { now, peak, .. } = usage::memory(replica.pid())?;
            println!("  replica {at}: {now:.1} MiB, {peak:.1} MiB at peak");
        }
        Ok(rates)
    }
}

impl Fleet {
    async fn reconciliations(&mut self) -> anyhow::Result<Vec<u64>> {
        let mut all = Vec::new();
        for replica in &mut self.replicas {
            let counts = replica.reconciliations().await?;
            all.push(
                counts
                    .map(|(reconciliations, _)| reconciliations)
                    .unwrap_or_default(),
            );
        }
        Ok(all)
    }

    /// Waits until so many reconciliations were made, and each replica has taken part.
    async fn reconciled(&mut self, count: usize) -> anyhow::Result<()> {
        let started = Instant::now();
        loop {
            let all = self.reconciliations().await?;
            if all.iter().sum::<u64>() >= count as u64 && all.iter().all(|one| *one > 0) {
                return Ok(());
            }
            ensure!(started.elapsed() < DEADLINE, "only {all:?} reconciliations");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    fn cpu(&self) -> anyhow::Result<f64> {
        self.replicas
            .iter()
            .map(|replica| usage::cpu(replica.pid()))
            .sum()
    }
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let cluster = Cluster::start().await?;
    let started = Instant::now();
    make(&cluster, args.objects, |at| args.text(at)).await?;
    eprintln!(
        "created {} objects in {:.0} s",
        args.objects,
        started.elapsed().as_secs_f64()
    );
    // The first reconciliation of each object writes its status. Later ones write nothing, so that the API server is not
    // the limit.
    let started = Instant::now();
    let mut fleet = args.start(&cluster, folder.path(), true, 0)?;
    fleet.reconciled(args.objects * 2).await?;
    drop(fleet);
    eprintln!(
        "wrote all statuses in {:.0} s",
        started.elapsed().as_secs_f64()
    );
    let mut one = args.start(&cluster, folder.path(), false, args.latency_ms)?;
    let alone = args.measure("1 replica", &mut one).await?;
    drop(one);
    let mut fleet = args.start(&cluster, folder.path(), true, args.latency_ms)?;
    let name = format!("{} replicas, {} shards", args.replicas, args.shards);
    let shared = args.measure(&name, &mut fleet).await?;
    let median = |rates: &[f64]| rates.get(rates.len() / 2).copied().context("no period");
    println!(
        "ratio of the medians: {:.2}",
        median(&shared)? / median(&alone)?
    );
    println!(
        "smallest ratio of two periods: {:.2}",
        shared[0] / alone[alone.len() - 1]
    );
    Ok(())
}

//! Load test of the webhook with Vector pipelines: new and repeated reviews, compared with a server that parses them
//! without validation, and the effect of pipelines on reviews of another kind.
//!
//! The webhook and its VRL workers share the first core. All clients share the second core.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use bench_harness::Review;
use bench_harness::markdown::{MeasuredCommit, print_table};

use crate::client::Measured;
use crate::loadgen::{LoadGenerator, Workload};
use crate::report::{Spread, spread};
use crate::servers::{self, Program};

/// Number of connections that send pipelines while another kind is measured.
const OTHERS: usize = 4;

const FIRST: &str = "new";
const AGAIN: &str = "repeated";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of runs; the output contains the median, minimum and maximum.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Duration of each measurement in milliseconds, after a warm-up of half a second.
    #[arg(long, default_value_t = 3_000)]
    measure_ms: u32,
}

/// Results of one server, run by run.
#[derive(Default)]
struct Shown {
    latencies: Vec<(String, Vec<Measured>)>,
    start_up: Vec<Duration>,
    mib: Vec<f64>,
    workers: usize,
    workers_mib: Vec<f64>,
}

impl Shown {
    fn add(&mut self, name: &str, measured: Measured) {
        match self.latencies.iter_mut().find(|(known, _)| known == name) {
            Some((_, all)) => all.push(measured),
            None => self.latencies.push((name.to_owned(), vec![measured])),
        }
    }

    fn all(&self, name: &str, number: Number) -> Vec<f64> {
        let found = self.latencies.iter().find(|(known, _)| known == name);
        let all = found.into_iter().flat_map(|(_, all)| all);
        all.map(number).collect()
    }
}

pub(crate) fn compare(args: &Args, directory: &Path) -> anyhow::Result<()> {
    let (webhook, baseline) = (servers::lockstep()?, servers::baseline()?);
    let (mut ours, mut least) = (Shown::default(), Shown::default());
    for run in 0..args.runs {
        eprintln!("run {} of {}", run + 1, args.runs);
        measure(&webhook, directory, args, &mut ours)?;
        measure(&baseline, directory, args, &mut least)?;
    }
    print(&MeasuredCommit::current()?, &ours, &least);
    Ok(())
}

fn measure(
    program: &Program,
    directory: &Path,
    args: &Args,
    shown: &mut Shown,
) -> anyhow::Result<()> {
    let server = program.start(directory)?;
    server.wait_until_idle()?;
    shown.start_up.push(server.start_up);
    let workload = |review, connections, is_new| Workload {
        review,
        connections,
        is_new,
        new_connections: false,
        causes: 0,
        measure_ms: args.measure_ms,
    };
    let measure = |workload| LoadGenerator::begin(&server, workload, directory)?.end();
    for review in [Review::Pipeline, Review::LargePipeline] {
        for (is_new, when) in [(true, FIRST), (false, AGAIN)] {
            let name = format!("{}, {when}", review.name());
            shown.add(&name, measure(workload(review, 1, is_new))?);
        }
    }
    shown.add(ALONE, measure(workload(Review::Typical, 1, false))?);
    let others = Workload {
        // Starts before the measurement and ends after it.
        measure_ms: args.measure_ms + 1_000,
        ..workload(Review::Pipeline, OTHERS, true)
    };
    let others = LoadGenerator::begin(&server, others, directory)?;
    shown.add(BESIDE, measure(workload(Review::Typical, 1, false))?);
    others.end().context("the concurrent pipeline reviews")?;
    shown.mib.push(server.memory()?.peak);
    let workers = server.children()?;
    shown.workers = workers.len();
    shown.workers_mib.extend(workers);
    Ok(())
}

/// A number of a measurement.
type Number = fn(&Measured) -> f64;

const ALONE: &str = "CloudDatabase, alone";
const BESIDE: &str = "CloudDatabase, with new pipelines";

/// Prints the latencies in Markdown, as the documentation has them.
fn print(measured: &MeasuredCommit, ours: &Shown, least: &Shown) {
    println!("{measured}");
    let header = [
        "review, one connection",
        "p50",
        "p99",
        "p50 of `baseline`",
        "ratio of p50",
        "ratio of p99",
    ];
    let rows = ours.latencies.iter().map(|(name, _)| {
        let milliseconds = |shown: &Shown, number: Number| {
            let all = shown.all(name, number).into_iter();
            let all: Vec<_> = all.map(|us| us / 1e3).collect();
            format!("{} ms", fine(&spread(&all)))
        };
        let ratio = |number: Number| {
            let pairs = ours.all(name, number).into_iter();
            let pairs = pairs.zip(least.all(name, number));
            fine(&spread(
                &pairs.map(|(ours, least)| ours / least).collect::<Vec<_>>(),
            ))
        };
        let p50: Number = |measured| measured.p50_us;
        let p99: Number = |measured| measured.p99_us;
        [
            name.clone(),
            milliseconds(ours, p50),
            milliseconds(ours, p99),
            milliseconds(least, p50),
            ratio(p50),
            ratio(p99),
        ]
    });
    print_table(header, rows.collect());
    let p99 = |name| ours.all(name, |measured| measured.p99_us);
    let ratios: Vec<_> = p99(BESIDE)
        .iter()
        .zip(p99(ALONE))
        .map(|(beside, alone)| beside / alone)
        .collect();
    println!(
        "CloudDatabase with new pipelines: p99 {} times that of CloudDatabase alone",
        fine(&spread(&ratios))
    );
    let start_up: Vec<_> = ours
        .start_up
        .iter()
        .map(Duration::as_secs_f64)
        .map(|s| s * 1e3)
        .collect();
    println!(
        "the webhook accepts connections after {} ms, its peak memory is {} MiB; each of {} VRL workers uses {} MiB",
        fine(&spread(&start_up)),
        fine(&spread(&ours.mib)),
        ours.workers,
        fine(&spread(&ours.workers_mib)),
    );
}

fn fine(spread: &Spread) -> String {
    let Spread {
        median,
        least,
        most,
    } = spread;
    format!("{median:.2} ({least:.2}-{most:.2})")
}

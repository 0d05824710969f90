//! Load test of the webhook with Vector pipelines: new and repeated reviews, compared with a server that parses them
//! without validation, and the effect of pipelines on reviews of another kind.
//!
//! The webhook and its VRL workers share the first core. All clients share the second core.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Map, Value, json};

use crate::client::Measured;
use crate::loadgen::{Asking, Question};
use crate::report::{Spread, spread};
use crate::reviews::{ObjectType, Review, review};
use crate::servers::{self, Program};

/// Placeholder in the reviews of pipelines. A client replaces its digits to make each review new.
pub(crate) const NONCE: &str = "nonce-00000000";

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

    fn all(&self, name: &str, number: fn(&Measured) -> f64) -> Vec<f64> {
        let found = self.latencies.iter().find(|(known, _)| known == name);
        let all = found.into_iter().flat_map(|(_, all)| all);
        all.map(number).collect()
    }
}

pub(crate) fn compare(args: &Args, directory: &Path) -> anyhow::Result<()> {
    let (gate, floor) = (servers::lockstep()?, servers::floor()?);
    let (mut ours, mut least) = (Shown::default(), Shown::default());
    for run in 0..args.runs {
        eprintln!("run {} of {}", run + 1, args.runs);
        measure(&gate, directory, args, &mut ours)?;
        measure(&floor, directory, args, &mut least)?;
    }
    print(&gate, &ours, &floor, &least);
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
    let question = |review, connections, is_new| Question {
        review,
        connections,
        is_new,
        new_connections: false,
        causes: 0,
        measure_ms: args.measure_ms,
    };
    let ask = |question| Asking::begin(&server, question, directory)?.end();
    for review in [Review::Pipeline, Review::LargePipeline] {
        for (is_new, when) in [(true, FIRST), (false, AGAIN)] {
            let name = format!("{}, {when}", review.name());
            shown.add(&name, ask(question(review, 1, is_new))?);
        }
    }
    shown.add(QUIET, ask(question(Review::Typical, 1, false))?);
    let others = Question {
        // Starts before the measurement and ends after it.
        measure_ms: args.measure_ms + 1_000,
        ..question(Review::Pipeline, OTHERS, true)
    };
    let others = Asking::begin(&server, others, directory)?;
    shown.add(BESIDE, ask(question(Review::Typical, 1, false))?);
    others.end().context("the concurrent pipeline reviews")?;
    shown.mib.push(server.memory()?.1);
    let workers = server.children()?;
    shown.workers = workers.len();
    shown.workers_mib.extend(workers);
    Ok(())
}

const QUIET: &str = "CloudDatabase, alone";
const BESIDE: &str = "CloudDatabase, with new pipelines";

fn print(gate: &Program, ours: &Shown, floor: &Program, least: &Shown) {
    println!(
        "{:<38} {:<9} {:>22} {:>22}",
        "review, one connection", "server", "p50 ms (min-max)", "p99 ms (min-max)"
    );
    for (name, _) in &ours.latencies {
        for (program, shown) in [(gate, ours), (floor, least)] {
            let p50 = spread(&shown.all(name, |measured| measured.p50_us / 1e3));
            let p99 = spread(&shown.all(name, |measured| measured.p99_us / 1e3));
            println!(
                "{name:<38} {:<9} {:>22} {:>22}",
                program.name,
                fine(&p50),
                fine(&p99)
            );
        }
    }
    println!();
    for (name, _) in &ours.latencies {
        let ratio = |number| {
            let pairs = ours
                .all(name, number)
                .into_iter()
                .zip(least.all(name, number));
            fine(&spread(
                &pairs.map(|(ours, least)| ours / least).collect::<Vec<_>>(),
            ))
        };
        println!(
            "{name}: p50 {} times that of the {}, p99 {} times",
            ratio(|measured| measured.p50_us),
            floor.name,
            ratio(|measured| measured.p99_us)
        );
    }
    let p99 = |name| ours.all(name, |measured| measured.p99_us);
    let ratios: Vec<_> = p99(BESIDE)
        .iter()
        .zip(p99(QUIET))
        .map(|(beside, quiet)| beside / quiet)
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

/// Returns a review of a pipeline with three components and a program of thirty lines.
pub(crate) fn typical() -> Value {
    pipeline(&json!({
        "sources": {"pods": {"type": "kubernetes_logs", "extra_label_selector": "app=shop"}},
        "transforms": {"parse": {"type": "remap", "inputs": ["pods"], "source": program(0)}},
        "sinks": {"out": sink("parse")},
    }))
}

/// Returns a review of a pipeline with fifty components, twenty-four of which have such a program.
pub(crate) fn large() -> Value {
    let mut transforms = Map::new();
    let mut sinks = Map::new();
    for index in 0..24 {
        let name = format!("parse-{index}");
        let transform = json!({"type": "remap", "inputs": ["pods"], "source": program(index)});
        sinks.insert(format!("out-{index}"), sink(&name));
        transforms.insert(name, transform);
    }
    transforms.insert(
        "errors".to_owned(),
        json!({"type": "filter", "inputs": ["parse-0"], "condition": ".level == \"error\""}),
    );
    sinks.insert("errors-out".to_owned(), sink("errors"));
    let sources = json!({"pods": {"type": "kubernetes_logs"}});
    pipeline(&json!({"sources": sources, "transforms": transforms, "sinks": sinks}))
}

fn sink(input: &str) -> Value {
    json!({
        "type": "elasticsearch", "inputs": [input], "endpoints": ["https://logs.example.com:9200"],
        "mode": "bulk", "bulk": {"index": "shop-%Y-%m-%d"}, "compression": "gzip",
        "buffer": {"type": "memory", "max_events": 10_000, "when_full": "drop_newest"},
    })
}

fn pipeline(spec: &Value) -> Value {
    let kind = ObjectType {
        group: "observability.kaasops.io",
        kind: "VectorPipeline",
        resource: "vectorpipelines",
    };
    let object = json!({
        "apiVersion": "observability.kaasops.io/v1alpha1",
        "kind": kind.kind,
        "metadata": {"name": "orders", "namespace": "shop"},
        "spec": spec,
    });
    review(kind, "CREATE", &object, None)
}

/// Returns a program of thirty lines that is typical for the logs of a service.
fn program(index: usize) -> String {
    format!(
        r#"# {NONCE}, {index}
structured, err = parse_json(.message)
if err != null {{
    structured, err = parse_regex(.message, r'^(?P<time>\S+) (?P<level>\w+) (?P<text>.*)$')
}}
if err != null {{
    .unparsed = true
    .level = "unknown"
}} else {{
    fields = object(structured) ?? {{}}
    . = merge(., fields)
    .level = downcase(string(.level) ?? "info")
}}
.service = string(.kubernetes.pod_labels.app) ?? "none"
.namespace = string(.kubernetes.pod_namespace) ?? "none"
.pod = .kubernetes.pod_name
.duration_ms = to_int(.duration) ?? 0
if .duration_ms > 1000 {{
    .slow = true
}}
del(.kubernetes)
del(.file)
if exists(.user.email) {{
    .user.email = redact(string(.user.email) ?? "", filters: [r'[^@]+@'])
}}
.status_class = if match(string(.status) ?? "", r'^5') {{ "error" }} else {{ "fine" }}
.tags = split(string(.tags) ?? "", ",")
.timestamp = parse_timestamp(.time, format: "%+") ?? now()
.fingerprint = encode_base16(string(.message) ?? "")
.size = length(string(.message) ?? "")
.message = truncate(string(.message) ?? "", 4096)
"#
    )
}

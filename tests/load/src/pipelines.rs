//! Measures pipelines of Vector at the gate, asked for the first time and again, beside a server that reads them
//! and judges nothing; and what reviews of another kind notice of them.
//!
//! The gate and the processes that compile programs for it share the first core; all who ask share the second.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Map, Value, json};

use crate::asking::{Asking, Question};
use crate::client::Measured;
use crate::report::{Spread, spread};
use crate::reviews::{ObjectType, Review, review};
use crate::servers::{self, Program};

/// Of as many digits as are put into what is asked for the first time.
pub(crate) const NONCE: &str = "nonce-00000000";

/// How many ask for pipelines while another kind is measured.
const OTHERS: usize = 4;

const FIRST: &str = "the first time";
const AGAIN: &str = "again";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How often everything is measured; medians are printed, with the least and the most.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// How long each measurement takes, after half a second that is not counted.
    #[arg(long, default_value_t = 3_000)]
    measure_ms: u32,
}

/// What one server has shown, run by run.
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
        // Begins before and ends after.
        measure_ms: args.measure_ms + 1_000,
        ..question(Review::Pipeline, OTHERS, true)
    };
    let others = Asking::begin(&server, others, directory)?;
    shown.add(BESIDE, ask(question(Review::Typical, 1, false))?);
    others.end().context("the pipelines beside")?;
    shown.mib.push(server.memory()?.1);
    let workers = server.children()?;
    shown.workers = workers.len();
    shown.workers_mib.extend(workers);
    Ok(())
}

const QUIET: &str = "CloudDatabase, by itself";
const BESIDE: &str = "CloudDatabase, beside new pipelines";

fn print(gate: &Program, ours: &Shown, floor: &Program, least: &Shown) {
    println!(
        "{:<38} {:<9} {:>22} {:>22}",
        "review, one connection", "server", "p50 ms (least-most)", "p99 ms (least-most)"
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
            "{name}: p50 {} of the {}'s, p99 {}",
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
        "CloudDatabase beside new pipelines: p99 {} of that by itself",
        fine(&spread(&ratios))
    );
    let start_up: Vec<_> = ours
        .start_up
        .iter()
        .map(Duration::as_secs_f64)
        .map(|s| s * 1e3)
        .collect();
    println!(
        "the gate takes connections after {} ms and held {} MiB at most; each of {} processes that compile holds {} MiB",
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

/// A pipeline of three components, with a program of thirty lines.
pub(crate) fn typical() -> Value {
    pipeline(&json!({
        "sources": {"pods": {"type": "kubernetes_logs", "extra_label_selector": "app=shop"}},
        "transforms": {"parse": {"type": "remap", "inputs": ["pods"], "source": program(0)}},
        "sinks": {"out": sink("parse")},
    }))
}

/// A pipeline of fifty components, of which twenty-four have such a program.
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

/// Thirty lines as they are written for the logs of a service.
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

//! Report that compares the two operators.

use std::collections::BTreeMap;

use bench_harness::markdown::print_table;

use crate::measure::{Measured, Part};

/// All measurements, by number of objects and operator.
#[derive(Default)]
pub(crate) struct Report {
    runs: BTreeMap<(usize, &'static str), Vec<Measured>>,
}

/// Column of the report: its name with unit, and its value for a phase and a number of objects.
type Column = (&'static str, fn(&Part, f64) -> f64);

const COLUMNS: [Column; 6] = [
    ("seconds", |part, _| part.seconds),
    ("CPU s", |part, _| part.cpu),
    ("CPU ms per object", |part, objects| {
        part.cpu * 1e3 / objects
    }),
    ("calls per object", |part, objects| {
        all_calls(part) / objects
    }),
    ("MiB at the end", |part, _| part.memory.now),
    ("MiB at peak", |part, _| part.memory.peak),
];

/// Results of one phase in those of a run.
type Phase = fn(&Measured) -> &Part;

/// Measured phases.
const PHASES: [(&str, Phase); 2] = [
    ("until all are ready", |run| &run.converged),
    ("after a restart, until idle", |run| &run.restarted),
];

impl Report {
    pub(crate) fn add(&mut self, objects: usize, side: &'static str, measured: Measured) {
        self.runs.entry((objects, side)).or_default().push(measured);
    }

    /// Prints medians with minimum and maximum, and the ratio of the medians.
    pub(crate) fn print(&self, [ours, peer]: [&'static str; 2]) {
        let sizes: std::collections::BTreeSet<_> = self.runs.keys().map(|key| key.0).collect();
        for (phase, part) in PHASES {
            println!("\n{phase}");
            println!("{:>8} {:<18} {ours:>24} {peer:>24}  ratio", "objects", "");
            for objects in &sizes {
                for (name, column) in COLUMNS {
                    let of = |side| {
                        self.spread(*objects, side, |run| column(part(run), count(*objects)))
                    };
                    let (one, other) = (of(ours), of(peer));
                    println!(
                        "{objects:>8} {name:<18} {:>24} {:>24}  {:.2}",
                        shown(one),
                        shown(other),
                        one[1] / other[1]
                    );
                }
                for side in [ours, peer] {
                    let calls = self.runs[&(*objects, side)]
                        .iter()
                        .map(|run| &part(run).calls);
                    println!(
                        "{objects:>8} calls by {side}: {:?}",
                        calls.collect::<Vec<_>>()
                    );
                }
            }
        }
    }

    /// Prints the table of the documentation: the medians of both operators, and the median, minimum and maximum of the ratios
    /// within a run.
    pub(crate) fn print_markdown(&self, [ours, peer]: [&'static str; 2]) {
        let mut rows = Vec::new();
        for (phase, part) in PHASES {
            for (objects, _) in self.runs.keys().filter(|(_, side)| *side == ours) {
                let cell = |side| {
                    let of = |value: fn(&Part) -> f64| {
                        self.spread(*objects, side, |run| value(part(run)))[1]
                    };
                    let (seconds, cpu) = (of(|part| part.seconds), of(|part| part.cpu));
                    let mib = of(|part| part.memory.peak);
                    format!("{seconds:.1} s, {cpu:.2} s CPU, {mib:.0} MiB")
                };
                let ratio = |value: fn(&Part) -> f64| {
                    let values = |side| {
                        let runs = self.runs[&(*objects, side)].iter();
                        runs.map(move |run| value(part(run)))
                    };
                    let ratios = values(ours).zip(values(peer));
                    shown(spread(ratios.map(|(one, other)| one / other)))
                };
                rows.push([
                    objects.to_string(),
                    phase.to_owned(),
                    cell(ours),
                    cell(peer),
                    ratio(|part| part.seconds),
                    ratio(|part| part.cpu),
                    ratio(|part| part.memory.peak),
                ]);
            }
        }
        let header = ["objects", "measured", ours, peer, "time", "CPU", "memory"];
        print_table(header, rows);
    }

    /// Returns minimum, median and maximum.
    fn spread(
        &self,
        objects: usize,
        side: &'static str,
        value: impl Fn(&Measured) -> f64,
    ) -> [f64; 3] {
        spread(self.runs[&(objects, side)].iter().map(value))
    }
}

/// Returns minimum, median and maximum.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    let (middle, last) = (values.len() / 2, values.len() - 1);
    // Of an even number of values, the median is between two of them.
    let median = f64::midpoint(values[middle], values[last - middle]);
    [values[0], median, values[last]]
}

fn all_calls(part: &Part) -> f64 {
    count(part.calls.values().sum())
}

fn shown([least, median, most]: [f64; 3]) -> String {
    format!("{median:.2} ({least:.2}-{most:.2})")
}

#[allow(clippy::cast_precision_loss, reason = "the counts are small")]
fn count(of: usize) -> f64 {
    of as f64
}

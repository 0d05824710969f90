//! Report that compares the two operators.

use std::collections::BTreeMap;

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
    ("MiB at the end", |part, _| part.memory.0),
    ("MiB at peak", |part, _| part.memory.1),
];

impl Report {
    pub(crate) fn add(&mut self, objects: usize, side: &'static str, measured: Measured) {
        self.runs.entry((objects, side)).or_default().push(measured);
    }

    /// Prints medians with minimum and maximum, and the ratio of the medians.
    pub(crate) fn print(&self, [ours, peer]: [&'static str; 2]) {
        let sizes: std::collections::BTreeSet<_> = self.runs.keys().map(|key| key.0).collect();
        for (title, part) in [
            (
                "from the start until all objects are ready",
                (|run| &run.converged) as fn(&Measured) -> &Part,
            ),
            ("from a restart until the operator is idle", |run| {
                &run.restarted
            }),
        ] {
            println!("\n{title}");
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

    /// Returns minimum, median and maximum.
    fn spread(
        &self,
        objects: usize,
        side: &'static str,
        value: impl Fn(&Measured) -> f64,
    ) -> [f64; 3] {
        let mut values: Vec<_> = self.runs[&(objects, side)].iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        [
            values[0],
            values[values.len() / 2],
            values[values.len() - 1],
        ]
    }
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

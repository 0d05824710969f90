//! What came of it, side by side.

use std::collections::BTreeMap;

use crate::measure::{Measured, Part};

/// Everything that was measured, by how many objects, then by side.
#[derive(Default)]
pub(crate) struct Report {
    runs: BTreeMap<(usize, &'static str), Vec<Measured>>,
}

/// What is told of a part: its name, its unit, and whether it is told for each object.
type Column = (&'static str, fn(&Part, f64) -> f64);

const COLUMNS: [Column; 6] = [
    ("seconds", |part, _| part.seconds),
    ("CPU s", |part, _| part.cpu),
    ("CPU ms an object", |part, objects| part.cpu * 1e3 / objects),
    ("calls an object", |part, objects| all_calls(part) / objects),
    ("MiB in the end", |part, _| part.memory.0),
    ("MiB at most", |part, _| part.memory.1),
];

impl Report {
    pub(crate) fn add(&mut self, objects: usize, side: &'static str, measured: Measured) {
        self.runs.entry((objects, side)).or_default().push(measured);
    }

    /// Prints medians, with the least and the most, and the ratio of the medians.
    pub(crate) fn print(&self, [ours, peer]: [&'static str; 2]) {
        let sizes: std::collections::BTreeSet<_> = self.runs.keys().map(|key| key.0).collect();
        for (title, part) in [
            (
                "until all are ready",
                (|run| &run.converged) as fn(&Measured) -> &Part,
            ),
            ("after a restart, until it is quiet", |run| &run.restarted),
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
                        "{objects:>8} calls of {side}: {:?}",
                        calls.collect::<Vec<_>>()
                    );
                }
            }
        }
    }

    /// Least, median and most.
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

#[allow(clippy::cast_precision_loss, reason = "there are not that many")]
fn count(of: usize) -> f64 {
    of as f64
}

//! Report that compares the operators, phase by phase.

use std::collections::{BTreeMap, BTreeSet};

use crate::names::{LOCKSTEP, OPERATORS};
use crate::phase::{Phase, count};

/// All measurements, by operator, in the order of the runs.
pub(crate) struct Report {
    pub(crate) objects: usize,
    pub(crate) runs: BTreeMap<&'static str, Vec<Vec<Phase>>>,
}

/// Row of the report: its name with unit, and its value for a phase and a number of objects.
type Row = (&'static str, fn(&Phase, f64) -> Option<f64>);

const ROWS: [Row; 5] = [
    ("API calls per 1000 objects", |phase, objects| {
        Some(phase.api_calls() * 1e3 / objects)
    }),
    ("provider requests per 1000 objects", |phase, objects| {
        Some(phase.provider_requests() * 1e3 / objects)
    }),
    ("CPU s", |phase, _| Some(phase.cpu)),
    ("peak MiB", |phase, _| Some(phase.peak)),
    ("elapsed s", |phase, _| phase.seconds),
];

impl Report {
    /// Prints the medians of all runs with minimum and maximum, and the ratios of the runs.
    pub(crate) fn print(&self) {
        let Some(first) = self.runs.get(LOCKSTEP).and_then(|runs| runs.first()) else {
            return;
        };
        for (at, phase) in first.iter().enumerate() {
            println!("\n{}", phase.name);
            for (name, value) in ROWS {
                self.print_row(at, name, value);
            }
            self.print_calls(at, "API", |phase| &phase.api);
            self.print_calls(at, "provider", |phase| &phase.provider);
            let loads = OPERATORS.map(|operator| {
                let loads = self.phases(operator, at).map(|phase| phase.load);
                format!("{operator} {}", shown(spread(loads.collect())))
            });
            println!("  load average: {}", loads.join(", "));
        }
    }

    fn phases(&self, operator: &str, at: usize) -> impl Iterator<Item = &Phase> {
        self.runs[operator].iter().map(move |run| &run[at])
    }

    fn print_row(&self, at: usize, name: &str, value: fn(&Phase, f64) -> Option<f64>) {
        let objects = count(self.objects);
        let values = |operator| -> Option<Vec<f64>> {
            let phases = self.phases(operator, at);
            phases.map(|phase| value(phase, objects)).collect()
        };
        let Some(own) = values(LOCKSTEP) else { return };
        for operator in OPERATORS {
            let Some(others) = values(operator) else {
                continue;
            };
            let ratios = own.iter().zip(&others).map(|(own, other)| own / other);
            let ratio = shown(spread(ratios.collect()));
            let against = match operator {
                LOCKSTEP => String::new(),
                _ => format!("  {LOCKSTEP} / {operator}: {ratio}"),
            };
            let value = shown(spread(others));
            println!("  {name:<36} {operator:<20} {value:<28}{against}");
        }
    }

    /// Prints the median number of each kind of call per 1000 objects.
    fn print_calls(&self, at: usize, title: &str, calls: fn(&Phase) -> &BTreeMap<String, usize>) {
        for operator in OPERATORS {
            let phases = || self.phases(operator, at);
            let names: BTreeSet<_> = phases().flat_map(|phase| calls(phase).keys()).collect();
            let shown = names.into_iter().map(|name| {
                let counts = phases().map(|phase| calls(phase).get(name).copied());
                let per_thousand =
                    counts.map(|calls| count(calls.unwrap_or_default() * 1000 / self.objects));
                let [_, median, _] = spread(per_thousand.collect());
                format!("{name} {median:.0}")
            });
            let shown = shown.collect::<Vec<_>>().join(", ");
            println!("  {title} by {operator}: {shown}");
        }
    }
}

/// Returns minimum, median and maximum.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [
        values[0],
        values[values.len() / 2],
        values[values.len() - 1],
    ]
}

fn shown([least, median, most]: [f64; 3]) -> String {
    format!("{median:.2} ({least:.2}-{most:.2})")
}

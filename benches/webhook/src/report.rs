//! Printed report: medians with minimum and maximum, and ratios.

mod markdown;

use std::collections::BTreeMap;
use std::time::Duration;

use bench_harness::usage::Memory;

use crate::client::Measured;

/// One measurement.
pub(crate) struct Row {
    pub(crate) measured: Measured,
    pub(crate) cpu_us: f64,
    /// Most memory of the server since its start.
    pub(crate) peak_mib: f64,
}

impl Row {
    /// Returns the number of responses per second.
    fn rate(&self) -> f64 {
        f64::from(self.measured.responses) / self.measured.seconds
    }
}

/// All measurements by server.
#[derive(Default)]
pub(crate) struct Report {
    servers: Vec<(&'static str, Server)>,
}

#[derive(Default)]
struct Server {
    start_up_ms: Vec<f64>,
    idle_mib: Vec<f64>,
    /// Part of the idle memory that consists of pages of the program's file.
    idle_file_mib: Vec<f64>,
    rows: BTreeMap<String, Vec<Row>>,
    order: Vec<String>,
}

impl Report {
    pub(crate) fn started(&mut self, name: &'static str, start_up: Duration, idle: &Memory) {
        let server = self.server(name);
        server.start_up_ms.push(start_up.as_secs_f64() * 1e3);
        server.idle_mib.push(idle.now);
        server.idle_file_mib.push(idle.files);
    }

    pub(crate) fn add(&mut self, name: &'static str, scenario: &str, row: Row) {
        let server = self.server(name);
        if !server.rows.contains_key(scenario) {
            server.order.push(scenario.to_owned());
        }
        server
            .rows
            .entry(scenario.to_owned())
            .or_default()
            .push(row);
    }

    fn server(&mut self, name: &'static str) -> &mut Server {
        if !self.servers.iter().any(|(known, _)| *known == name) {
            self.servers.push((name, Server::default()));
        }
        let found = self.servers.iter_mut().find(|(known, _)| *known == name);
        &mut found.expect("the server has been added").1
    }

    pub(crate) fn print(&self) {
        let Some((_, first)) = self.servers.first() else {
            return;
        };
        println!(
            "{:<14} {:<29} {:>26} {:>9} {:>9} {:>11}",
            "review, conns", "server", "responses/s (min-max)", "p50 ms", "p99 ms", "CPU us each"
        );
        for scenario in &first.order {
            for (name, server) in &self.servers {
                if let Some(rows) = server.rows.get(scenario) {
                    let [rate, p50, p99, cpu] = numbers(rows);
                    println!(
                        "{scenario:<14} {name:<29} {:>26} {:>9.2} {:>9.2} {:>11.1}",
                        rate.to_string(),
                        p50.median / 1e3,
                        p99.median / 1e3,
                        cpu.median
                    );
                }
            }
        }
        println!();
        for (name, server) in &self.servers {
            println!(
                "{name}: accepts connections after {:.0} ms, uses {:.1} MiB when idle and {:.1} MiB at peak",
                spread(&server.start_up_ms).median,
                spread(&server.idle_mib).median,
                server.peak().median,
            );
        }
        println!();
        self.print_ratios();
    }

    fn print_ratios(&self) {
        let is_ours = |name: &str| name.starts_with("lockstep");
        let (ours, others): (Vec<_>, Vec<_>) =
            self.servers.iter().partition(|(name, _)| is_ours(name));
        for (our_name, our) in &ours {
            for (name, other) in &others {
                println!("{our_name}, compared with {name}:");
                our.print_ratios(other);
            }
        }
        // A server that skips CRD validation is never sent the review that is invalid in all layers.
        if let Some((_, all_layers)) = ours.first() {
            let ratios = all_layers.cpu_ratios("denied, 32", "small, 32");
            let Spread {
                median,
                least,
                most,
            } = spread(&ratios);
            println!(
                "a denial with ten causes takes {median:.2} ({least:.2}-{most:.2}) times the CPU of an allowed request"
            );
        }
    }
}

impl Server {
    /// Returns the memory at its peak, which the last measurement shows.
    fn peak(&self) -> Spread {
        let last = self.order.last().and_then(|last| self.rows.get(last));
        let last = last.into_iter().flatten();
        spread(&last.map(|row| row.peak_mib).collect::<Vec<_>>())
    }

    /// Returns the ratio of the CPU times of two scenarios for each run. Ratios within a run are stable although the
    /// speed of the machine changes over time.
    fn cpu_ratios(&self, scenario: &str, beside: &str) -> Vec<f64> {
        let of = |scenario| self.rows.get(scenario).into_iter().flatten();
        let pairs = of(scenario).zip(of(beside));
        pairs
            .map(|(one, other)| one.cpu_us / other.cpu_us)
            .collect()
    }

    fn print_ratios(&self, other: &Self) {
        for (scenario, rows) in self.order.iter().filter_map(|scenario| {
            Some((scenario, (&self.rows[scenario], other.rows.get(scenario)?)))
        }) {
            let (ours, theirs) = (numbers(rows.0), numbers(rows.1));
            println!(
                "  {scenario}: {:.2} times the responses/s, {:.2} times the p99, {:.2} times the CPU time",
                ours[0].median / theirs[0].median,
                ours[2].median / theirs[2].median,
                ours[3].median / theirs[3].median,
            );
        }
        println!(
            "  memory: {:.2} times when idle, {:.2} times at peak",
            spread(&self.idle_mib).median / spread(&other.idle_mib).median,
            self.peak().median / other.peak().median,
        );
    }
}

/// Returns the rate, p50, p99 and CPU time of the runs.
fn numbers(rows: &[Row]) -> [Spread; 4] {
    let all = |number: fn(&Row) -> f64| spread(&rows.iter().map(number).collect::<Vec<_>>());
    [
        all(Row::rate),
        all(|row| row.measured.p50_us),
        all(|row| row.measured.p99_us),
        all(|row| row.cpu_us),
    ]
}

/// Median, minimum and maximum.
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0} ({:.0}-{:.0})", self.median, self.least, self.most)
    }
}

pub(crate) fn spread(values: &[f64]) -> Spread {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Spread {
        median: sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN),
        least: sorted.first().copied().unwrap_or(f64::NAN),
        most: sorted.last().copied().unwrap_or(f64::NAN),
    }
}

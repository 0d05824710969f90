//! Tables of the report for the documentation.

use bench_harness::markdown::{MeasuredCommit, print_table};

use super::{Report, Row, Server, Spread, numbers, spread};

/// Reviews of the ratios.
const REVIEWS: [&str; 4] = ["small", "denied", "typical", "large"];

impl Report {
    /// Prints the tables in Markdown: the load with the typical review, and the ratios to the peers.
    pub(crate) fn print_markdown(&self, measured: &MeasuredCommit) {
        println!("{measured}");
        let header = [
            "server",
            "responses/s (min-max)",
            "p99",
            "CPU time per response",
            "start",
            "memory: idle, peak",
        ];
        print_table(header, self.load_rows());
        let [small, denied, typical, large] = REVIEWS;
        let header = [
            "server",
            "compared with",
            "ratio",
            small,
            denied,
            typical,
            large,
        ];
        print_table(header, self.ratio_rows());
        let header = [
            "memory in MiB",
            "idle",
            "of it, the program's file",
            "small",
            "denied",
            "typical",
            "256 connections",
            "large",
        ];
        print_table(header, self.memory_rows());
    }

    fn load_rows(&self) -> Vec<[String; 6]> {
        let rows = self.servers.iter().filter_map(|(name, server)| {
            let [rate, _, p99, cpu] = numbers(server.rows.get(&scenario("typical"))?);
            Some([
                (*name).to_owned(),
                with_separators(&rate),
                format!("{:.1} ms", p99.median / 1e3),
                format!("{:.0} us", cpu.median),
                format!("{:.0} ms", spread(&server.start_up_ms).median),
                format!(
                    "{:.0} MiB, {:.0} MiB",
                    spread(&server.idle_mib).median,
                    server.peak().median
                ),
            ])
        });
        rows.collect()
    }

    /// Returns the memory of each server when idle, and the most that it has used up to the end of each measurement.
    fn memory_rows(&self) -> Vec<[String; 8]> {
        let servers = self.servers.iter();
        let rows = servers.map(|(name, server)| {
            let so_far = |scenario: &str| {
                let rows = server.rows.get(scenario)?.iter();
                let peak = spread(&rows.map(|row| row.peak_mib).collect::<Vec<_>>());
                Some(format!("{:.0}", peak.median))
            };
            let cell = |scenario: &str| so_far(scenario).unwrap_or_else(|| "-".to_owned());
            [
                (*name).to_owned(),
                format!("{:.0}", spread(&server.idle_mib).median),
                format!("{:.0}", spread(&server.idle_file_mib).median),
                cell(&scenario("small")),
                cell(&scenario("denied")),
                cell(&scenario("typical")),
                cell("typical, 256"),
                cell(&scenario("large")),
            ]
        });
        rows.collect()
    }

    fn ratio_rows(&self) -> Vec<[String; 7]> {
        let servers_named = |beginning: &'static str| {
            let all = self.servers.iter();
            all.filter(move |(name, _)| name.starts_with(beginning))
        };
        let figures: [(&str, Figure); 2] =
            [("responses/s", Row::rate), ("CPU time", |row| row.cpu_us)];
        let mut rows = Vec::new();
        for (our_name, ours) in servers_named("lockstep") {
            for (peer_name, peer) in servers_named("controller-runtime") {
                for (figure_name, figure) in figures {
                    let [small, denied, typical, large] =
                        REVIEWS.map(|review| ratio(ours, peer, review, figure));
                    rows.push([
                        (*our_name).to_owned(),
                        (*peer_name).to_owned(),
                        figure_name.to_owned(),
                        small,
                        denied,
                        typical,
                        large,
                    ]);
                }
            }
        }
        rows
    }
}

/// Figure of one measurement.
type Figure = fn(&Row) -> f64;

/// Returns the median of the ratios within each run, with the minimum and maximum. A server that is not sent a review has
/// none.
fn ratio(ours: &Server, peer: &Server, review: &str, figure: Figure) -> String {
    let rows = |server: &Server| -> Vec<f64> {
        let rows = server.rows.get(&scenario(review)).into_iter().flatten();
        rows.map(figure).collect()
    };
    let pairs = rows(ours).into_iter().zip(rows(peer));
    let ratios: Vec<_> = pairs.map(|(ours, theirs)| ours / theirs).collect();
    if ratios.is_empty() {
        return "-".to_owned();
    }
    let Spread {
        median,
        least,
        most,
    } = spread(&ratios);
    format!("{median:.2} ({least:.2}-{most:.2})")
}

/// Returns the name of the scenario with a review and 32 connections.
fn scenario(review: &str) -> String {
    format!("{review}, 32")
}

/// Returns whole numbers with separators of thousands, such as `9,859 (8,003-12,277)`.
fn with_separators(spread: &Spread) -> String {
    let number = |value: f64| {
        let digits = format!("{value:.0}");
        let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
        String::from_utf8_lossy(&groups.join(&b',')).into_owned()
    };
    format!(
        "{} ({}-{})",
        number(spread.median),
        number(spread.least),
        number(spread.most)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        let numbers = Spread {
            median: 9_859.4,
            least: 803.0,
            most: 1_012_277.0,
        };
        assert_eq!(with_separators(&numbers), "9,859 (803-1,012,277)");
    }
}

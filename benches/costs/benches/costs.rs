//! Counts the costs of all cases and compares them with the committed counts.
//!
//! Counts are the same in each run with the same compiler, profile, valgrind and processor features. With other ones they
//! are reported and fail nothing.

use std::process::ExitCode;

use bench_costs::comparison::{Comparison, MAX_INCREASE};
use bench_costs::counts::CountSets;
use bench_costs::environment::Environment;
use bench_costs::measure::measure;
use clap::Parser;

/// Count the costs of reviews, reconciliations and `check`, and compare them with the committed counts.
#[derive(Parser)]
struct Args {
    /// Replace the committed counts of this environment by the counted ones.
    #[arg(long)]
    update: bool,
    /// Cargo sets this.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let Args { update, bench: _ } = Args::parse();
    let environment = Environment::detect()?;
    let counts = measure()?;
    let mut sets = CountSets::read()?;
    let committed = sets.for_environment(&environment);
    let comparisons = Comparison::compare_all(&counts, committed);
    for comparison in &comparisons {
        println!("{comparison}");
    }
    if update {
        sets.replace(environment, counts)?;
        println!("the counts are replaced; say in the commit why they have changed");
        return Ok(ExitCode::SUCCESS);
    }
    if committed.is_none() {
        println!(
            "these counts do not bind: there are none of {environment}; add them with `cargo costs --update`"
        );
        return Ok(ExitCode::SUCCESS);
    }
    println!("these counts bind: they are of {environment}");
    if comparisons.iter().all(Comparison::is_accepted) {
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "a count is more than {MAX_INCREASE} % above the committed one, or has none: mend what has become slower, or replace the counts with `cargo costs --update` and say in the commit what the instructions buy"
    );
    Ok(ExitCode::FAILURE)
}

//! Compares the instructions that reviews take with the committed counts.
//!
//! ```text
//! cargo bench ─► callgrind ─► counts ─► compared with the set of this environment in counts.json
//! ```
//!
//! Counts are the same in each run with the same compiler, profile, valgrind and processor features. With other ones they
//! are reported and fail nothing.

mod counts;
mod environment;
mod measure;

use std::process::ExitCode;

use clap::Parser;

use crate::counts::{Comparison, CountSets, MAX_INCREASE};
use crate::environment::Environment;

/// Count the instructions that reviews take and compare them with the committed counts.
#[derive(Parser)]
struct Args {
    /// Replace the committed counts of this environment by the measured ones.
    #[arg(long)]
    update: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let environment = Environment::detect()?;
    let measured = measure::measure()?;
    let mut sets = CountSets::read()?;
    let committed = sets.of(&environment);
    let comparisons = Comparison::of_all(&measured, committed);
    for comparison in &comparisons {
        println!("{comparison}");
    }
    if args.update {
        sets.replace(environment, measured)?;
        println!("the counts are replaced; say in the commit why they have changed");
        return Ok(ExitCode::SUCCESS);
    }
    if committed.is_none() {
        println!(
            "these counts do not bind: there are none of {environment}; add them with `cargo run --package bench-costs -- --update`"
        );
        return Ok(ExitCode::SUCCESS);
    }
    println!("these counts bind: they are of {environment}");
    if comparisons.iter().all(Comparison::is_accepted) {
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "a count is more than {MAX_INCREASE} % above the committed one, or has none: mend what has become slower, or replace the counts with `cargo run --package bench-costs -- --update` and say in the commit what the instructions buy"
    );
    Ok(ExitCode::FAILURE)
}

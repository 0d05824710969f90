//! Instructions of each case, counted by callgrind.

#![expect(missing_docs, reason = "the macros make items without documentation")]

use bench_costs::cases::{Case, Prepared};
use gungraun::Callgrind;
use gungraun::prelude::*;
use mimalloc::MiMalloc;

/// The allocator of the shipped program.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[library_benchmark(setup = Case::prepare)]
#[benches::case(iter = Case::ALL)]
fn measured(mut prepared: Prepared) -> Prepared {
    prepared.run();
    prepared
}

library_benchmark_group!(name = cases, benchmarks = [measured]);

main!(
    // The caches of a processor are not simulated: that takes as much time as the rest.
    config = LibraryBenchmarkConfig::default().tool(Callgrind::with_args(["--cache-sim=no"])),
    library_benchmark_groups = cases
);

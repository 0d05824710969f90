//! Runs each case once, for callgrind: it counts the instructions of `counted` and writes them before each `finished`.

use std::hint::black_box;

use bench_costs::cases::{Case, Prepared};
use mimalloc::MiMalloc;

/// The allocator of the shipped program.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() {
    for case in Case::ALL {
        let mut prepared = case.prepare();
        counted(&mut prepared);
        // Its end is not part of the case.
        finished();
    }
}

#[inline(never)]
fn counted(prepared: &mut Prepared) {
    prepared.run();
}

#[inline(never)]
fn finished() {
    black_box(());
}

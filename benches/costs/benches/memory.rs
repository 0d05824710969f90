//! Allocations of each case and the peak of its memory, counted by the allocator.

use bench_costs::cases::Case;
use serde_json::json;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

fn main() {
    for case in Case::ALL {
        let mut prepared = case.prepare();
        let profiler = dhat::Profiler::builder().testing().build();
        prepared.run();
        let counted = dhat::HeapStats::get();
        drop(profiler);
        println!(
            "{}",
            json!({
                "case": case.name(),
                "allocations": counted.total_blocks,
                "peakBytes": counted.max_bytes,
            })
        );
    }
}

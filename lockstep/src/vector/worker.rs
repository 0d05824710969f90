//! A process of its own that compiles programs for another: orders come a line each, findings go a line each.
//!
//! Programs have bounds, and nobody knows a compiler so well that these hold for all. What is not foreseen ends
//! this process and no other.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, nice, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use vector_rules::Program;

/// How long the processor may be at the programs of one configuration, in seconds; up to one more.
pub(super) const SECONDS: u64 = 2;

/// How much memory there is for them, in MiB.
pub(super) const MEMORY_MIB: u64 = 128;

/// What the process has mapped before it compiles anything, and the stack that it compiles on: most of it is
/// never touched.
const MAPPED_MIB: u64 = 448;

/// Tells the allocator not to map a gibibyte in advance, which would count as taken.
pub(super) const ALLOCATOR: (&str, &str) = ("MIMALLOC_ARENA_RESERVE", "16MiB");

/// The webhook's reviews go first, but with a fair share left: at 19 a machine with two busy cores gives the compiler
/// a hundredth of its time, and a program that takes half a second is refused for having taken eight.
const NICENESS: i32 = 5;

/// A program to be compiled.
#[derive(Serialize, Deserialize)]
pub(super) struct CompileJob<'a> {
    /// Whether it is the first of a configuration: the time of the processor is counted anew.
    pub(super) is_first: bool,
    #[serde(borrow)]
    pub(super) program: Program<'a>,
}

/// Compiles what is asked for, until nobody asks any more.
pub(super) fn run() -> ExitCode {
    let done = confine().and_then(|()| serve(io::stdin().lock(), io::stdout().lock()));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockstep: {error}");
            ExitCode::FAILURE
        }
    }
}

fn confine() -> io::Result<()> {
    let at_most = |most: u64| Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    setrlimit(Resource::As, at_most((MAPPED_MIB + MEMORY_MIB) << 20))?;
    // What it was doing is somebody's program.
    setrlimit(Resource::Core, at_most(0))?;
    nice(NICENESS)?;
    Ok(())
}

fn serve(orders: impl BufRead, mut findings: impl Write) -> io::Result<()> {
    for order in orders.lines() {
        let order = order?;
        let order: CompileJob<'_> = serde_json::from_str(&order)?;
        if order.is_first {
            reset_cpu_limit()?;
        }
        let found = order.program.compile();
        let mut line = serde_json::to_string(&found)?;
        line.push('\n');
        findings.write_all(line.as_bytes())?;
        findings.flush()?;
    }
    Ok(())
}

/// From here on, there is so much time of the processor and no more.
fn reset_cpu_limit() -> io::Result<()> {
    let taken = clock_gettime(ClockId::ProcessCPUTime).tv_sec;
    let taken = u64::try_from(taken).unwrap_or_default();
    let most = Rlimit {
        current: Some(taken + SECONDS + 1),
        maximum: None,
    };
    setrlimit(Resource::Cpu, most)?;
    Ok(())
}

//! VRL worker: a process that compiles VRL programs for another one. It reads one program per line and writes the
//! diagnostics of one program per line.
//!
//! Programs have limits, but no limit covers every behaviour of the compiler. An unforeseen case ends only this
//! process.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use lockstep_shared_validation::report_all;
use lockstep_vector_api::{InProcessCompiler, Program};
use rustix::process::{Resource, Rlimit, nice, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Limits of a worker.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct WorkerLimits {
    /// CPU time for the programs or the tests of one configuration, in seconds; up to one second more can be used.
    #[arg(long, default_value_t = WorkerLimits::SHARED.cpu_seconds)]
    pub(crate) cpu_seconds: u64,
    /// Memory for the programs or the tests of one configuration, in MiB.
    #[arg(long, default_value_t = WorkerLimits::SHARED.memory_mib)]
    pub(crate) memory_mib: u64,
}

impl WorkerLimits {
    /// Limits for programs of other people: two workers and the webhook fit into one container.
    pub(crate) const SHARED: Self = Self {
        cpu_seconds: 2,
        memory_mib: 128,
    };

    /// Limits for programs that their author validates.
    pub(crate) const OFFLINE: Self = Self {
        cpu_seconds: 30,
        memory_mib: 1024,
    };

    /// Limits for the tests of a configuration.
    pub(crate) const TESTS: Self = Self {
        cpu_seconds: 10,
        memory_mib: 512,
    };

    /// Returns the command line arguments that set these limits.
    pub(crate) fn arguments(&self) -> [String; 2] {
        [
            format!("--cpu-seconds={}", self.cpu_seconds),
            format!("--memory-mib={}", self.memory_mib),
        ]
    }
}

/// Address space that the process maps before it compiles anything, including the stack for the compiler, in MiB.
/// Most of it is never touched.
#[cfg(target_os = "linux")]
const MAPPED_MIB: u64 = 448;

/// Environment variable that stops the allocator from mapping a gibibyte in advance, which would count against the
/// limit.
pub(crate) const ALLOCATOR: (&str, &str) = ("MIMALLOC_ARENA_RESERVE", "16MiB");

/// Niceness of the process. The webhook's reviews have priority, but the compiler keeps a fair share: at 19, a
/// machine with two busy cores gives the compiler a hundredth of its time, and a program that needs half a second
/// is rejected for having taken eight.
const NICENESS: i32 = 5;

/// Request to compile a program.
#[derive(Serialize, Deserialize)]
pub(crate) struct CompileJob<'a> {
    /// If true, it is the first program of a configuration, and the limit of CPU time starts again.
    pub(crate) is_first: bool,
    /// If true, all errors of the program are reported.
    pub(crate) reports_all: bool,
    #[serde(borrow)]
    pub(crate) program: Program<'a>,
}

/// Compiles the requested programs until the input ends.
pub(crate) fn run(limits: WorkerLimits) -> ExitCode {
    let done = confine(limits)
        .and_then(|()| serve(io::stdin().lock(), io::stdout().lock(), limits.cpu_seconds));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockstep: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Limits the memory of this process.
pub(crate) fn confine(limits: WorkerLimits) -> io::Result<()> {
    let at_most = |most: u64| Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    // Other systems have no such limit, or reject one below what is mapped already.
    #[cfg(target_os = "linux")]
    setrlimit(
        Resource::As,
        at_most((MAPPED_MIB + limits.memory_mib) << 20),
    )?;
    // A core dump would contain a user's program.
    setrlimit(Resource::Core, at_most(0))?;
    nice(NICENESS)?;
    Ok(())
}

fn serve(orders: impl BufRead, mut findings: impl Write, cpu_seconds: u64) -> io::Result<()> {
    let mut compiler = InProcessCompiler::default();
    for order in orders.lines() {
        let order = order?;
        let order: CompileJob<'_> = serde_json::from_str(&order)?;
        if order.is_first {
            reset_cpu_limit(cpu_seconds)?;
        }
        let mut compile = || compiler.compile(&order.program);
        let found = if order.reports_all {
            report_all(compile)
        } else {
            compile()
        };
        let mut line = serde_json::to_string(&found)?;
        line.push('\n');
        findings.write_all(line.as_bytes())?;
        findings.flush()?;
    }
    Ok(())
}

/// Sets the limit of CPU time from now on.
pub(crate) fn reset_cpu_limit(cpu_seconds: u64) -> io::Result<()> {
    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec;
    let used = u64::try_from(used).unwrap_or_default();
    let most = Rlimit {
        current: Some(used + cpu_seconds + 1),
        maximum: None,
    };
    setrlimit(Resource::Cpu, most)?;
    Ok(())
}

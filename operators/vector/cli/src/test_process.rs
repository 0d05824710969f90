//! Process that runs the tests of one configuration. A program can make values of any size and work for any time, and tests may
//! be those of another author, whose change is reviewed.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use lockstep_vector_api::{Catalogue, NamedResult, TestResult};
use serde_json::Value;

use crate::flow::FlowConfig;
use crate::pool::{ended, this_program};
use crate::unit_tests::{run_all, tests};
use crate::worker::{ALLOCATOR, WorkerLimits, confine, reset_cpu_limit};

/// Environment variable with the local time zone, which programs use.
const TIME_ZONE: &str = "TZ";

/// Runs the tests of a configuration in a process of their own, with limits of time and memory.
#[must_use]
pub fn run_tests(catalogue: &Catalogue, config: &Value) -> Vec<NamedResult> {
    let flow_config = FlowConfig::new(catalogue, config);
    if tests(&flow_config.config).next().is_none() {
        return Vec::new();
    }
    results(&flow_config, &WorkerLimits::TESTS).unwrap_or_else(|why| {
        let names = tests(&flow_config.config).map(|(name, _)| name);
        let not_run = names.map(|name| NamedResult {
            name,
            result: TestResult::NotRun(why.clone()),
        });
        not_run.collect()
    })
}

fn results(flow_config: &FlowConfig, limits: &WorkerLimits) -> Result<Vec<NamedResult>, String> {
    let problem = |error: io::Error| format!("cannot run a process for tests: {error}");
    let mut process = Command::new(this_program().map_err(problem)?)
        .args(["vector", "run-tests"])
        .args(limits.arguments())
        // It needs neither the environment of this process nor signals from its terminal.
        .env_clear()
        .env(ALLOCATOR.0, ALLOCATOR.1)
        .envs(std::env::var_os(TIME_ZONE).map(|zone| (TIME_ZONE, zone)))
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(problem)?;
    if let Some(mut input) = process.stdin.take() {
        // A process that ends early says why by its status.
        let _ = serde_json::to_writer(&mut input, flow_config);
    }
    let output = process.wait_with_output().map_err(problem)?;
    if !output.status.success() {
        return Err(format!(
            "the tests of the configuration exceed their limits: {}",
            ended(output.status, limits)
        ));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| problem(error.into()))
}

/// Runs the tests of the configuration in the standard input, and writes their results.
pub(crate) fn run(limits: WorkerLimits) -> ExitCode {
    let run = || -> io::Result<()> {
        confine(limits)?;
        reset_cpu_limit(limits.cpu_seconds)?;
        let flow_config = serde_json::from_reader(io::stdin().lock())?;
        let results = run_all(&flow_config);
        io::stdout()
            .lock()
            .write_all(&serde_json::to_vec(&results)?)
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockstep: {error}");
            ExitCode::FAILURE
        }
    }
}

//! Process that runs the tests of one configuration. A program can make values of any size and work for any time, and tests may
//! be those of another author, whose change is reviewed.

use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
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
    let (mut results, end) = match results(&flow_config, &WorkerLimits::TESTS) {
        Ok(Ended { results, end }) => (results, end),
        Err(error) => {
            let why = format!("cannot run a process for tests: {error}");
            (Vec::new(), Some(TestResult::NotRun(why)))
        }
    };
    // The first one without a result was running when the process ended.
    let names = tests(&flow_config.config).map(|(name, _)| name);
    let left = names.skip(results.len()).collect::<Vec<_>>().into_iter();
    let after = TestResult::NotRun("the process ended with an earlier test".to_owned());
    let all = end.into_iter().chain(std::iter::repeat(after));
    let missing = left.zip(all);
    results.extend(missing.map(|(name, result)| NamedResult { name, result }));
    results
}

/// Process of tests that has ended.
struct Ended {
    /// Results of the tests that came to their end.
    results: Vec<NamedResult>,
    /// Result of the test in which the process ended, if it did not end after the last one.
    end: Option<TestResult>,
}

fn results(flow_config: &FlowConfig, limits: &WorkerLimits) -> io::Result<Ended> {
    let mut process = Command::new(this_program()?)
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
        .spawn()?;
    if let Some(mut input) = process.stdin.take() {
        // A process that ends early says why by its status.
        let _ = serde_json::to_writer(&mut input, flow_config);
    }
    let output = process.wait_with_output()?;
    let lines = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
    // The process may have ended within a line.
    let results = lines.map_while(Result::ok).collect();
    let why = ended(output.status, limits);
    let end = match output.status {
        status if status.success() => None,
        // A test that was not run would be a warning, behind which failed tests could hide.
        status if status.signal().is_some() => Some(TestResult::Failed(vec![format!(
            "it exceeds its limits: {why}"
        )])),
        _ => Some(TestResult::NotRun(why)),
    };
    Ok(Ended { results, end })
}

/// Runs the tests of the configuration in the standard input, and writes the result of each as a line, so that it is not lost when
/// a later one exceeds the limits.
pub(crate) fn run(limits: WorkerLimits) -> ExitCode {
    let run = || -> io::Result<()> {
        confine(limits)?;
        reset_cpu_limit(limits.cpu_seconds)?;
        let flow_config = serde_json::from_reader(io::stdin().lock())?;
        let mut written = Ok(());
        run_all(&flow_config, |result| {
            let line = serde_json::to_vec(&result).map_err(io::Error::from);
            let line =
                line.and_then(|line| io::stdout().lock().write_all(&[&line[..], b"\n"].concat()));
            // The first problem is the one that is reported.
            written = std::mem::replace(&mut written, Ok(())).and(line);
        });
        written
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockstep: {error}");
            ExitCode::FAILURE
        }
    }
}

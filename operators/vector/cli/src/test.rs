//! `lockstep vector test`: runs the tests of a configuration without Vector.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use lockstep_sdk::on_one_line;
use lockstep_vector_api::{NamedResult, TestResult};

use crate::catalogue_files::VersionArgs;
use crate::common_args::CommonArgs;
use crate::loaded::{EX_CONFIG, Loaded, Scope};
use crate::run_tests;

/// Exit code if no test failed and some were not run.
const NOT_RUN: u8 = 2;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Configuration files, or files with the manifest of one pipeline each.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Exit with 0 if no test failed, also if some were not run.
    #[arg(long)]
    allow_not_run: bool,
    #[command(flatten)]
    version: VersionArgs,
}

pub(crate) fn run(args: &Args, common: &CommonArgs) -> ExitCode {
    let loaded = match Loaded::read(&args.files, &args.version, common, Scope::Transforms) {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("lockstep: {error}");
            return ExitCode::from(EX_CONFIG);
        }
    };
    let mut counts = Counts::default();
    let mut text = String::new();
    for loaded_config in &loaded.configurations {
        for NamedResult { name, result } in run_tests(&loaded.catalogue, &loaded_config.config) {
            text.push_str(&counts.add(&on_one_line(&name), &result));
        }
    }
    text.push_str(&counts.summary());
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => counts.exit_code(args.allow_not_run),
        Err(error) => {
            eprintln!("lockstep: {error}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    not_run: usize,
    invalid: usize,
}

impl Counts {
    /// Counts a test, and returns its part of the report.
    fn add(&mut self, name: &str, result: &TestResult) -> String {
        match result {
            TestResult::Passed => {
                self.passed += 1;
                format!("test {name} ... passed\n")
            }
            TestResult::Failed(reasons) => {
                self.failed += 1;
                let reasons = reasons.join("\n").replace('\n', "\n  ");
                format!("test {name} ... failed\n  {reasons}\n")
            }
            TestResult::NotRun(why) => {
                self.not_run += 1;
                format!("test {name} ... not run: {why}\n")
            }
            TestResult::Invalid(why) => {
                self.invalid += 1;
                format!("test {name} ... invalid: {why}\n")
            }
        }
    }

    fn summary(&self) -> String {
        let Self {
            passed,
            failed,
            not_run,
            invalid,
        } = self;
        let all = passed + failed + not_run + invalid;
        if all == 0 {
            return "There are no tests.\n".to_owned();
        }
        let invalid = if *invalid > 0 {
            format!(", {invalid} invalid")
        } else {
            String::new()
        };
        format!("{passed} passed, {failed} failed, {not_run} not run{invalid}\n")
    }

    fn exit_code(&self, allow_not_run: bool) -> ExitCode {
        if self.invalid > 0 {
            ExitCode::from(EX_CONFIG)
        } else if self.failed > 0 {
            ExitCode::FAILURE
        } else if self.not_run > 0 && !allow_not_run {
            ExitCode::from(NOT_RUN)
        } else {
            ExitCode::SUCCESS
        }
    }
}

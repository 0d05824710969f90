//! The two programs: how they are built and run.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::documents::Planted;
use crate::measure::{self, Run};

/// Program that validates files.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Command line without the files.
    command: Vec<String>,
    /// Function that reads the number of invalid documents from the last printed line.
    invalid: fn(&str) -> Option<usize>,
    /// Function that returns true if the program validates the layer of a planted error.
    pub(crate) finds: fn(Planted) -> bool,
}

impl Program {
    /// Runs the program on all files in a folder.
    pub(crate) fn run(&self, input: &Path, scratch: &Path) -> anyhow::Result<Run> {
        let (stdout, stderr) = (scratch.join("stdout"), scratch.join("stderr"));
        let mut command = self.command.clone();
        command.push(input.display().to_string());
        let usage = measure::run(&command, &stdout, &stderr)?;
        let (printed, errors) = (fs::read_to_string(&stdout)?, fs::read_to_string(&stderr)?);
        let last = printed
            .lines()
            .chain(errors.lines())
            .last()
            .unwrap_or_default();
        ensure!(
            matches!(usage.code, Some(0 | 1)),
            "{} ended with exit code {:?}: {last}",
            self.name,
            usage.code
        );
        let invalid = (self.invalid)(last)
            .with_context(|| format!("{}: the last line is not a summary: {last}", self.name))?;
        Ok(Run { usage, invalid })
    }
}

/// Builds `lockstep` and returns its `check` command.
pub(crate) fn lockstep() -> anyhow::Result<Program> {
    let program = bench_harness::lockstep()?;
    Ok(Program {
        name: "lockstep",
        command: vec![program.display().to_string(), "check".to_owned()],
        // ..., 1200 invalid, ...
        invalid: |summary| {
            let before = summary.split_once(" invalid")?.0;
            before.rsplit(' ').next()?.parse().ok()
        },
        finds: |_| true,
    })
}

/// Builds kubeconform and returns its command. It is as strict as lockstep: it rejects unknown fields and repeated
/// keys.
pub(crate) fn kubeconform(schemas: &Path) -> anyhow::Result<Program> {
    let program = bench_harness::go(
        "benches/check/go/kubeconform",
        "github.com/yannh/kubeconform/cmd/kubeconform",
        "kubeconform",
    )?;
    let template = "{{ .ResourceKind }}_{{ .ResourceAPIVersion }}.json";
    let command = [
        &*program.to_string_lossy(),
        "-strict",
        "-summary",
        "-schema-location",
        &format!("{}/{template}", schemas.display()),
    ];
    Ok(Program {
        name: "kubeconform",
        command: command.map(String::from).to_vec(),
        // ... - Valid: 3800, Invalid: 1200, Errors: 0, Skipped: 0
        invalid: |summary| {
            let rest = summary.split_once("Invalid: ")?.1;
            let (count, rest) = rest.split_once(", ")?;
            rest.starts_with("Errors: 0, Skipped: 0")
                .then(|| count.parse().ok())?
        },
        finds: |planted| planted == Planted::Schema,
    })
}

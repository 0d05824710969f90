//! Environment on which counts of instructions depend, besides the measured code.

use std::fmt;
use std::fs;
use std::process::Command;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

/// Cargo profile of the measured code: that of the tests, for which everything is compiled already.
pub const PROFILE: &str = "dev";

/// Processor features for which libraries have code of their own, as far as valgrind has them.
const FEATURES: [&str; 6] = ["avx", "avx2", "bmi1", "bmi2", "sse4_2", "ssse3"];

/// Environment on which counts of instructions depend, besides the measured code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    toolchain: String,
    profile: String,
    valgrind: String,
    processor_features: Vec<String>,
}

impl Environment {
    /// Returns the environment of this process.
    ///
    /// # Errors
    ///
    /// The compiler or valgrind is not installed.
    pub fn detect() -> anyhow::Result<Self> {
        let processor = fs::read_to_string("/proc/cpuinfo").context("/proc/cpuinfo")?;
        let flags = processor.lines().find(|line| line.starts_with("flags"));
        let flags: Vec<_> = flags.unwrap_or_default().split_whitespace().collect();
        Ok(Self {
            toolchain: version("rustc")?,
            profile: PROFILE.to_owned(),
            valgrind: version("valgrind")?,
            processor_features: FEATURES
                .into_iter()
                .filter(|feature| flags.contains(feature))
                .map(str::to_owned)
                .collect(),
        })
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let features = self.processor_features.join(", ");
        let Self {
            toolchain,
            profile,
            valgrind,
            ..
        } = self;
        write!(
            f,
            "{toolchain}, profile {profile}, {valgrind} and {features}"
        )
    }
}

fn version(program: &str) -> anyhow::Result<String> {
    let output = Command::new(program).arg("--version").output();
    let output = output.with_context(|| format!("{program} does not run; install it"))?;
    ensure!(output.status.success(), "{program} --version failed");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

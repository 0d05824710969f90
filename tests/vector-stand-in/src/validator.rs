//! Validation of a configuration, where Vector builds its components.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// Checks that Vector would start with the configuration of a directory.
pub(crate) fn validate(directory: &Path) -> anyhow::Result<()> {
    let mut command = Command::new("lockstep");
    command.args(["vector", "validate", "--start", "--config-dir"]);
    let output = command.arg(directory).output();
    let output = output.context("cannot run `lockstep vector validate`")?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        bail!("{}", String::from_utf8_lossy(&text).trim());
    }
    Ok(())
}

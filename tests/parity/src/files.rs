//! Input files of a comparison.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use crate::case::Case;

/// Reads a `CustomResourceDefinition`.
///
/// # Errors
///
/// If the file cannot be read or is not YAML.
pub fn read_crd(path: &Path) -> anyhow::Result<Value> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_saphyr::from_str(&text).with_context(|| path.display().to_string())
}

/// Reads cases from a file with one JSON object per line.
///
/// # Errors
///
/// If the file cannot be read or a line is not a case.
pub fn read_cases(path: &Path) -> anyhow::Result<Vec<Case>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let cases = text.lines().map(|line| Ok(serde_json::from_str(line)?));
    cases.collect()
}

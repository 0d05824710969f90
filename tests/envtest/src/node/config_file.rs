//! Configuration files of the programs.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::Error;

/// Writes a configuration file, and returns its path. JSON is YAML.
pub(crate) fn write(directory: &Path, name: &str, content: &Value) -> Result<PathBuf, Error> {
    let path = directory.join(name);
    std::fs::write(&path, content.to_string()).map_err(Error::file(&path))?;
    Ok(path)
}

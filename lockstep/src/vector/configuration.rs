//! Configuration files of Vector: from the paths on the command line to one configuration.
//!
//! Paths → [`paths`] → files → [`format`](mod@format) → tables → [`merge`] → configuration. A folder is read by
//! [`directory`].

mod directory;
pub(crate) mod format;
mod merge;
pub(crate) mod paths;
mod unreadable;

use std::fs;
use std::io::Read;
use std::path::Path;

use lockstep_sdk::describe_read_error;
use lockstep_vector_api::interpolation;
use serde_json::Value;
use toml::Table;

use crate::vector::configuration::format::Format;
use crate::vector::configuration::paths::ConfigPath;

/// Reads the files and folders that form one configuration together, and returns it or all errors.
///
/// If `interpolates` is true, environment variables are replaced in the text of each file.
pub(crate) fn read(paths: &[ConfigPath], interpolates: bool) -> Result<Value, Vec<String>> {
    let mut whole = Table::new();
    let mut problems = Vec::new();
    for path in paths {
        let read = match path {
            ConfigPath::File(path, format) => {
                let format = format.or_else(|| Format::of(path)).unwrap_or(Format::Toml);
                read_file(path, format, interpolates).and_then(|part| {
                    let found = merge::append(&mut whole, part);
                    located(path, found)
                })
            }
            ConfigPath::Folder(path) => directory::read(path, interpolates, &mut whole),
        };
        problems.extend(read.err().unwrap_or_default());
    }
    if problems.is_empty() {
        Ok(format::to_json(toml::Value::Table(whole)))
    } else {
        Err(problems)
    }
}

/// Reads one file.
fn read_file(path: &Path, format: Format, interpolates: bool) -> Result<Table, Vec<String>> {
    let mut text = String::new();
    let read = if path.as_os_str() == paths::STANDARD_INPUT {
        std::io::stdin().lock().read_to_string(&mut text).map(drop)
    } else {
        fs::read_to_string(path).map(|read| text = read)
    };
    let problem = |error| vec![format!("the file {}", describe_read_error(&error))];
    let parsed = read.map_err(problem).and_then(|()| {
        if interpolates {
            text = interpolation::interpolate(&text, &environment_variable)?;
        }
        format::parse(&text, format).map_err(|problem| vec![problem])
    });
    parsed.or_else(|problems| located(path, problems).map(|()| Table::new()))
}

/// Returns the value of an environment variable. Vector sets `HOSTNAME` itself if the environment does not.
fn environment_variable(name: &str) -> Option<String> {
    let value = std::env::var(name).ok();
    value.or_else(|| (name == "HOSTNAME").then(host_name).flatten())
}

#[cfg(unix)]
fn host_name() -> Option<String> {
    let system = rustix::system::uname();
    system.nodename().to_str().ok().map(str::to_owned)
}

#[cfg(not(unix))]
fn host_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}

/// Prefixes errors with the path of their file. Returns an error if there are any.
fn located(path: &Path, problems: Vec<String>) -> Result<(), Vec<String>> {
    if problems.is_empty() {
        return Ok(());
    }
    let named = |problem| format!("{}: {problem}", path.display());
    Err(problems.into_iter().map(named).collect())
}

#[cfg(test)]
mod tests;

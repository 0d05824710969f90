//! One configuration file: its text, with environment variables, and its errors.

use std::fs;
use std::io::Read;
use std::path::Path;

use lockstep_sdk::describe_read_error;
use lockstep_vector_api::interpolation;
use toml::Table;

use crate::configuration::format;
use crate::configuration::format::Format;
use crate::configuration::paths::STANDARD_INPUT;
use crate::configuration::reading::Reading;

/// Reads one file.
pub(crate) fn read_file(
    path: &Path,
    format: Format,
    reading: Reading,
) -> Result<Table, Vec<String>> {
    let mut text = String::new();
    let read = if path.as_os_str() == STANDARD_INPUT {
        std::io::stdin().lock().read_to_string(&mut text).map(drop)
    } else {
        fs::read_to_string(path).map(|read| text = read)
    };
    let problem = |error| vec![format!("the file {}", describe_read_error(&error))];
    let parsed = read.map_err(problem).and_then(|()| {
        if reading.interpolates {
            text = interpolation::interpolate(&text, &environment_variable)?;
        }
        format::parse(&text, format, reading.version).map_err(|problem| vec![problem])
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
pub(crate) fn located(path: &Path, problems: Vec<String>) -> Result<(), Vec<String>> {
    if problems.is_empty() {
        return Ok(());
    }
    let named = |problem| format!("{}: {problem}", path.display());
    Err(problems.into_iter().map(named).collect())
}

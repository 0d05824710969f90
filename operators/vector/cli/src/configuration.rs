//! Configuration files of Vector: from the paths on the command line to one configuration.
//!
//! Paths → [`paths`] → files → [`format`](mod@format) → tables → [`merge`] → configuration. A folder is read by
//! [`directory`].

mod directory;
mod file;
pub(crate) mod format;
mod merge;
mod nesting;
pub(crate) mod paths;
mod reading;
mod unreadable;

use serde_json::Value;
use toml::Table;

use crate::configuration::file::{located, read_file};
use crate::configuration::format::Format;
use crate::configuration::paths::ConfigPath;
pub(crate) use crate::configuration::reading::Reading;

/// Reads the files and folders that form one configuration together, and returns it or all errors.
///
pub(crate) fn read(paths: &[ConfigPath], reading: Reading) -> Result<Value, Vec<String>> {
    let mut whole = Table::new();
    let mut problems = Vec::new();
    for path in paths {
        let read = match path {
            ConfigPath::File(path, format) => {
                let format = format.or_else(|| Format::of(path)).unwrap_or(Format::Toml);
                read_file(path, format, reading).and_then(|part| {
                    let found = merge::append(&mut whole, part);
                    located(path, found)
                })
            }
            ConfigPath::Folder(path) => directory::read(path, reading, &mut whole),
        };
        problems.extend(read.err().unwrap_or_default());
    }
    if problems.is_empty() {
        Ok(format::to_json(toml::Value::Table(whole)))
    } else {
        Err(problems)
    }
}

#[cfg(test)]
mod tests;

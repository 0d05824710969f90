//! Folder → configuration: the files in a folder are parts of one configuration, and each file in a folder such as
//! `sinks` is one component.

use std::fs;
use std::path::{Path, PathBuf};

use lockstep_sdk::describe_read_error;
use toml::{Table, Value};

use crate::configuration::file::read_file;
use crate::configuration::format::Format;
use crate::configuration::merge;
use crate::configuration::reading::Reading;

/// Folders whose files are components, in the order in which Vector reads them.
const COMPONENT_FOLDERS: [&str; 5] = [
    "sources",
    "transforms",
    "sinks",
    "tests",
    "enrichment_tables",
];

/// Reads a folder and adds its content to a configuration.
pub(crate) fn read(folder: &Path, reading: Reading, whole: &mut Table) -> Result<(), Vec<String>> {
    let mut root = Table::new();
    for (name, part) in files(folder, reading, false)? {
        if let Value::Table(part) = part {
            merge_into(&mut root, part, &name).map_err(|problem| at(folder, &problem))?;
        }
    }
    let problems = merge::append(whole, root);
    if !problems.is_empty() {
        return Err(problems
            .iter()
            .flat_map(|problem| at(folder, problem))
            .collect());
    }
    for block in COMPONENT_FOLDERS {
        let path = folder.join(block);
        if path.is_dir() {
            // Only the options of a transform can be divided between files and folders.
            let components = files(&path, reading, block == "transforms")?;
            merge::replace(whole, block, components);
        }
    }
    Ok(())
}

/// Reads the files in a folder, by their names without extension. If `descends` is true, a folder is an option of the
/// file of its name, or a table of its own.
fn files(folder: &Path, reading: Reading, descends: bool) -> Result<Table, Vec<String>> {
    let mut result = Table::new();
    read_into(&mut result, folder, reading, descends)?;
    Ok(result)
}

fn read_into(
    result: &mut Table,
    folder: &Path,
    reading: Reading,
    descends: bool,
) -> Result<(), Vec<String>> {
    let mut problems = Vec::new();
    let entries = entries(folder).map_err(|problem| at(folder, &problem))?;
    let (files, folders): (Vec<_>, Vec<_>) = entries.into_iter().partition(|path| path.is_file());
    for path in files {
        let (Some(format), Some(name)) = (Format::of(&path), stem(&path)) else {
            continue;
        };
        let read = read_file(&path, format, reading).and_then(|mut part| {
            let below = folder.join(&name);
            if descends && below.is_dir() {
                read_into(&mut part, &below, reading, true)?;
            }
            merge_named(result, name, part).map_err(|problem| at(&path, &problem))
        });
        problems.extend(read.err().unwrap_or_default());
    }
    let is_hidden = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with('.'))
    };
    for path in folders
        .iter()
        .filter(|path| descends && path.is_dir() && !is_hidden(path))
    {
        let Some(name) = stem(path).filter(|name| !result.contains_key(name)) else {
            continue;
        };
        match self::files(path, reading, true) {
            Ok(table) => drop(result.insert(name, Value::Table(table))),
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// Returns what a folder contains, sorted, so that a result does not depend on the file system.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let problem = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotADirectory => {
            "it is not a folder; use `--config-yaml`, `--config-json` or `--config-toml` for a file"
                .to_owned()
        }
        _ => format!("the folder {}", describe_read_error(&error)),
    };
    let entries = fs::read_dir(folder).map_err(problem)?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()).map_err(problem))
        .collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    Ok(paths)
}

/// Adds a part under a name. Parts of the same name are merged.
fn merge_named(into: &mut Table, name: String, part: Table) -> Result<(), String> {
    match into.get_mut(&name) {
        Some(Value::Table(before)) => merge_into(before, part, &name),
        _ => {
            into.insert(name, Value::Table(part));
            Ok(())
        }
    }
}

/// Merges a table into another one: tables are merged, arrays are joined, and other values are replaced.
fn merge_into(table: &mut Table, part: Table, name: &str) -> Result<(), String> {
    serde_toml_merge::merge_into_table(table, part).map_err(|error| {
        format!(
            "{name}: two files have values of different types at {}: {} and {}; remove one of them",
            error.path.trim_start_matches("$."),
            error.expected,
            error.existing
        )
    })
}

fn stem(path: &Path) -> Option<String> {
    path.file_stem()?.to_str().map(str::to_owned)
}

fn at(path: &Path, problem: &str) -> Vec<String> {
    vec![format!("{}: {problem}", path.display())]
}

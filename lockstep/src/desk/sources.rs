//! The texts that are to be judged: files, folders, standard input.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A text and where it came from; or why it cannot be read.
pub(crate) struct Source {
    /// The file's name, or `<stdin>`.
    pub(crate) name: String,
    pub(crate) text: Result<String, String>,
}

/// Reads what is named: a file, every YAML and JSON file below a folder, or standard input for `-`.
pub(crate) fn read_all(names: &[PathBuf]) -> Vec<Source> {
    let mut sources = Vec::new();
    for name in names {
        if name.as_os_str() == "-" {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            sources.push(Source {
                name: "<stdin>".to_owned(),
                text: read.map(|_| text).map_err(|e| e.to_string()),
            });
        } else if name.is_dir() {
            read_folder(name, &mut sources);
        } else {
            sources.push(read_file(name));
        }
    }
    sources
}

fn read_folder(folder: &Path, sources: &mut Vec<Source>) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            let name = folder.display().to_string();
            return sources.push(Source {
                name,
                text: Err(error.to_string()),
            });
        }
    };
    let mut paths: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    for path in paths {
        let is_document = path
            .extension()
            .is_some_and(|ending| ["json", "yaml", "yml"].iter().any(|e| ending == *e));
        if path.is_dir() {
            read_folder(&path, sources);
        } else if is_document {
            sources.push(read_file(&path));
        }
    }
}

fn read_file(path: &Path) -> Source {
    let text = fs::read(path)
        .map_err(|error| error.to_string())
        .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "not UTF-8 text".to_owned()));
    Source {
        name: path.display().to_string(),
        text,
    }
}

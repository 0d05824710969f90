//! Inputs of the check: files, folders, glob patterns and standard input.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::read_error::describe_read_error;

/// Maximum size of an input. The API server accepts objects of at most 1.5 MiB. This limit has room for thousands
/// of objects in one file, and bounds the cost of a wrong path.
const MAX_BYTES: u64 = 64 << 20;

/// An input.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// File name, or `<stdin>`.
    pub(crate) name: String,
    kind: SourceKind,
}

#[derive(Clone, Debug)]
enum SourceKind {
    Stdin,
    File(PathBuf),
    /// No input, for this reason.
    Missing(String),
}

/// Finds the inputs for the given names: a file, every YAML and JSON file below a folder, the matches of a glob
/// pattern, or standard input for `-`.
pub(crate) fn find(names: &[PathBuf]) -> Vec<Source> {
    let mut sources = Vec::new();
    for name in names {
        if name.as_os_str() == "-" {
            sources.push(Source {
                name: "<stdin>".to_owned(),
                kind: SourceKind::Stdin,
            });
        } else if name.is_dir() {
            let known = sources.len();
            below(name, &mut sources);
            if sources.len() == known {
                let problem = "the folder contains no .yaml, .yml or .json file";
                sources.push(Source::missing(&name.display().to_string(), problem));
            }
        } else if fs::symlink_metadata(name).is_err() && is_pattern(name) {
            matching(name, &mut sources);
        } else {
            sources.push(Source::file(name));
        }
    }
    sources
}

fn is_pattern(name: &Path) -> bool {
    name.to_string_lossy().contains(['*', '?', '['])
}

fn matching(pattern: &Path, sources: &mut Vec<Source>) {
    let name = pattern.display().to_string();
    let paths = match glob::glob(&pattern.to_string_lossy()) {
        Ok(paths) => paths,
        Err(error) => return sources.push(Source::missing(&name, &error.to_string())),
    };
    let known = sources.len();
    for path in paths {
        match path {
            Ok(path) if path.is_dir() => below(&path, sources),
            Ok(path) => sources.push(Source::file(&path)),
            Err(error) => sources.push(Source::missing(
                &error.path().display().to_string(),
                &error.error().to_string(),
            )),
        }
    }
    if sources.len() == known {
        sources.push(Source::missing(&name, "the pattern matches no file"));
    }
}

fn below(folder: &Path, sources: &mut Vec<Source>) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            return sources.push(Source::missing(
                &folder.display().to_string(),
                &error.to_string(),
            ));
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
        // A symbolic link to a folder may point to a parent.
        if path.is_dir() && !path.is_symlink() {
            below(&path, sources);
        } else if is_document {
            sources.push(Source::file(&path));
        }
    }
}

impl Source {
    fn file(path: &Path) -> Self {
        Self {
            name: path.display().to_string(),
            kind: SourceKind::File(path.to_owned()),
        }
    }

    fn missing(name: &str, problem: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: SourceKind::Missing(problem.to_owned()),
        }
    }

    /// Reads the text.
    pub(crate) fn read(&self) -> Result<String, String> {
        let bytes = match &self.kind {
            SourceKind::Stdin => bounded(io::stdin().lock()),
            SourceKind::File(path) => File::open(path).and_then(bounded),
            SourceKind::Missing(problem) => return Err(problem.clone()),
        };
        let mut bytes = bytes.map_err(|error| match &self.kind {
            SourceKind::File(path) if path.is_symlink() && !path.exists() => {
                "the symbolic link is broken".to_owned()
            }
            _ if error.kind() == io::ErrorKind::Other => error.to_string(),
            _ => describe_read_error(&error),
        })?;
        // A byte order mark is not part of the text.
        if bytes.starts_with(b"\xef\xbb\xbf") {
            bytes.drain(..3);
        }
        if bytes.contains(&0) {
            return Err("not text: it contains a zero byte".to_owned());
        }
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            format!("not UTF-8 text: the byte at offset {at} does not begin a character")
        })
    }
}

fn bounded(input: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("larger than {} MiB; split it", MAX_BYTES >> 20);
        return Err(io::Error::other(message));
    }
    Ok(bytes)
}

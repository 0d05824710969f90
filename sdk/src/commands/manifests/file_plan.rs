//! Plan of the files to write: every file is examined before the first one is written.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::Context;
use lockstep_manifests::Manifest;

/// Files of one folder.
pub(super) struct Output<'a> {
    pub(super) folder: &'a Path,
    pub(super) files: Vec<Manifest>,
}

/// Plan of the files to write.
#[derive(Default)]
pub(super) struct FilePlan {
    /// Files that are missing or out of date.
    stale: Vec<StaleFile>,
    /// Files that the program has not written, each with the reason.
    foreign: Vec<ForeignFile>,
    /// Number of files that are as they would be written.
    current: usize,
}

struct StaleFile {
    path: PathBuf,
    content: String,
}

struct ForeignFile {
    path: PathBuf,
    reason: String,
}

/// State of a file before it is written.
enum FileState {
    Missing,
    /// It has the content already.
    Current,
    /// The program has written it.
    Own,
    Foreign(String),
}

impl FilePlan {
    /// Looks at all files.
    pub(super) fn new(outputs: Vec<Output<'_>>, program: &str) -> Self {
        let mut plan = Self::default();
        for Output { folder, files } in outputs {
            for file in files {
                let path = folder.join(&file.name);
                match state(&path, &file, program) {
                    FileState::Current => plan.current += 1,
                    FileState::Foreign(reason) => plan.foreign.push(ForeignFile { path, reason }),
                    FileState::Missing | FileState::Own => plan.stale.push(StaleFile {
                        path,
                        content: file.content,
                    }),
                }
            }
        }
        plan
    }

    /// Returns the paths of all files that do not have their content.
    pub(super) fn out_of_date(&self) -> Vec<String> {
        let stale = self.stale.iter().map(|file| &file.path);
        let foreign = self.foreign.iter().map(|file| &file.path);
        stale
            .chain(foreign)
            .map(|path| path.display().to_string())
            .collect()
    }

    /// Returns the reason why nothing may be written, if there is one.
    pub(super) fn refusal(&self, program: &str) -> Option<String> {
        if self.foreign.is_empty() {
            return None;
        }
        let mut text = format!(
            "nothing was written, because these files were not written by `{program} manifests`:\n"
        );
        for ForeignFile { path, reason } in &self.foreign {
            let _ = writeln!(text, "  {}: {reason}", path.display());
        }
        text.push_str("Choose another folder, or move these files.");
        Some(text)
    }

    /// Writes all files, and returns the lines that list them.
    pub(super) fn write(&self) -> anyhow::Result<String> {
        let mut lines = String::new();
        for StaleFile { path, content } in &self.stale {
            write_file(path, content)?;
            let _ = writeln!(lines, "Wrote {}", path.display());
        }
        if self.current > 0 {
            let _ = writeln!(lines, "{} files were up to date", self.current);
        }
        Ok(lines)
    }
}

/// Looks at a file, without a change of it.
fn state(path: &Path, file: &Manifest, program: &str) -> FileState {
    match path.symlink_metadata() {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return state_of_folders(path),
        Err(error) => return unreadable(&error),
    }
    // Of a link, the file that it leads to is read, and would be written.
    let existing = match fs::read(path) {
        Ok(existing) => existing,
        Err(error) => return unreadable(&error),
    };
    if existing == file.content.as_bytes() {
        return FileState::Current;
    }
    match std::str::from_utf8(&existing) {
        Ok(existing) if file.recognizes(program, existing) => FileState::Own,
        _ => FileState::Foreign(format!("it does not have {}", file.expected(program))),
    }
}

/// Returns the state of a file that is missing: its folders can be created, or one of them is something else.
fn state_of_folders(path: &Path) -> FileState {
    let existing = path
        .ancestors()
        .skip(1)
        .find(|folder| folder.symlink_metadata().is_ok());
    match existing {
        Some(folder) if !folder.is_dir() => {
            FileState::Foreign(format!("{} is not a folder", folder.display()))
        }
        _ => FileState::Missing,
    }
}

fn unreadable(error: &io::Error) -> FileState {
    FileState::Foreign(format!("it cannot be read: {error}"))
}

/// Writes a file, and creates its folders.
pub(super) fn write_file(path: &Path, content: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

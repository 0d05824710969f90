//! Changes of files: all of them are made, or none.

mod step;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::changes::step::{Done, Staged};
use crate::error::{Error, Unrestored};
use crate::rustfmt::Rustfmt;

/// Changes of files.
#[derive(Default)]
pub(crate) struct Changes {
    files: Vec<Change>,
}

/// Change of a file.
struct Change {
    path: PathBuf,
    /// Content before the change; none of a new file.
    before: Option<String>,
    after: String,
}

impl Changes {
    /// Adds a new file.
    pub(crate) fn create(&mut self, path: PathBuf, content: String) {
        let before = None;
        self.files.push(Change {
            path,
            before,
            after: content,
        });
    }

    /// Replaces the content of a file. A file that stays the same is not changed.
    pub(crate) fn replace(&mut self, path: PathBuf, before: String, after: String) {
        if before != after {
            let before = Some(before);
            self.files.push(Change {
                path,
                before,
                after,
            });
        }
    }

    /// Writes all files, and formats the Rust files among them. A changed file is formatted only if it was before: otherwise its
    /// author does not use rustfmt, and nothing else in it changes. Returns the paths that were written.
    ///
    /// # Errors
    ///
    /// A new file exists, or a file cannot be written. All files are as they were then, unless the error is
    /// [`Error::NotRestored`].
    pub(crate) fn write(mut self, rustfmt: &Rustfmt) -> Result<Vec<PathBuf>, Error> {
        for change in &mut self.files {
            if change.before.is_none() && change.path.symlink_metadata().is_ok() {
                return Err(Error::Exists(change.path.clone()));
            }
            change.format(rustfmt);
        }
        let mut folders = Vec::new();
        let mut done = Vec::new();
        let written = self.stage(&mut folders).and_then(|staged| {
            for step in staged {
                done.push(step.finish()?);
            }
            Ok(())
        });
        let Err(error) = written else {
            return Ok(self.files.into_iter().map(|change| change.path).collect());
        };
        let files = undo(done, &folders);
        if files.is_empty() {
            return Err(error);
        }
        let cause = Box::new(error);
        Err(Error::NotRestored { files, cause })
    }

    /// Writes all contents beside their files, so that a full disk is noticed before a file changes. Adds the folders that it
    /// creates.
    fn stage(&self, folders: &mut Vec<PathBuf>) -> Result<Vec<Staged>, Error> {
        let staged = self.files.iter().map(|change| {
            if change.before.is_none() {
                create_folders(&change.path, folders).map_err(Error::file(&change.path))?;
            }
            let before = change.before.as_deref();
            Staged::new(&change.path, before, &change.after).map_err(Error::file(&change.path))
        });
        staged.collect()
    }
}

impl Change {
    fn format(&mut self, rustfmt: &Rustfmt) {
        if self.path.extension() != Some("rs".as_ref()) {
            return;
        }
        let was_formatted = self
            .before
            .as_ref()
            .is_none_or(|before| rustfmt.formatted(&self.path, before).as_ref() == Some(before));
        if was_formatted && let Some(formatted) = rustfmt.formatted(&self.path, &self.after) {
            self.after = formatted;
        }
    }
}

/// Creates the folders of a file, and adds those that did not exist.
fn create_folders(path: &Path, folders: &mut Vec<PathBuf>) -> io::Result<()> {
    let parents = path.ancestors().skip(1);
    let missing = parents.take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let missing: Vec<_> = missing.map(Path::to_owned).collect();
    for folder in missing.into_iter().rev() {
        match fs::create_dir(&folder) {
            Ok(()) => folders.push(folder),
            // Another process was faster: the folder is not removed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Undoes what was done, and removes folders that were created for it. Returns the files that are not as they were.
fn undo(done: Vec<Done>, folders: &[PathBuf]) -> Vec<Unrestored> {
    let mut unrestored = Vec::new();
    for step in done.into_iter().rev() {
        unrestored.extend(step.undo().err());
    }
    for folder in folders.iter().rev() {
        // A folder that another program has written to stays.
        let _ = fs::remove_dir(folder);
    }
    unrestored
}

#[cfg(test)]
mod tests;

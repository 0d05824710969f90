//! Change of one file: its content is written beside it, and takes its place in one step.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};

use crate::error::{Error, Unrestored};

/// Content that is written beside the file that it belongs to.
pub(super) struct Staged {
    /// Path as the author knows it.
    path: PathBuf,
    /// File that changes: of a link, the one that it leads to.
    target: PathBuf,
    after: TempPath,
    /// Content before the change, written as well: a full disk must not prevent that it comes back. None of a new file.
    before: Option<TempPath>,
}

/// Change that was made.
pub(super) struct Done {
    path: PathBuf,
    target: PathBuf,
    before: Option<TempPath>,
}

impl Staged {
    /// Writes the content. The permissions are those of the file.
    pub(super) fn new(path: &Path, before: Option<&str>, after: &str) -> io::Result<Self> {
        let path = path.to_owned();
        let Some(before) = before else {
            return Ok(Self {
                target: path.clone(),
                after: beside(&path, after)?.into_temp_path(),
                before: None,
                path,
            });
        };
        let target = path.canonicalize()?;
        let permissions = target.metadata()?.permissions();
        let with_permissions = |content| {
            let file = beside(&target, content)?;
            file.as_file().set_permissions(permissions.clone())?;
            Ok::<_, io::Error>(file.into_temp_path())
        };
        Ok(Self {
            after: with_permissions(after)?,
            before: Some(with_permissions(before)?),
            target,
            path,
        })
    }

    /// Puts the content in the place of the file.
    pub(super) fn finish(self) -> Result<Done, Error> {
        let finished = if self.before.is_some() {
            self.after.persist(&self.target)
        } else {
            self.after.persist_noclobber(&self.target)
        };
        finished.map_err(|error| Error::file(&self.path)(error.error))?;
        Ok(Done {
            path: self.path,
            target: self.target,
            before: self.before,
        })
    }
}

impl Done {
    /// Restores the file.
    pub(super) fn undo(self) -> Result<(), Unrestored> {
        let undone = match self.before {
            Some(before) => before.persist(&self.target).map_err(|error| error.error),
            None => fs::remove_file(&self.target),
        };
        let path = self.path;
        undone.map_err(|error| Unrestored { path, error })
    }
}

/// Writes a content to a file of a new name in the folder of a file. It has the permissions of any new file.
fn beside(path: &Path, content: &str) -> io::Result<NamedTempFile<File>> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().make_in(folder, |path| File::create_new(path))?;
    file.write_all(content.as_bytes())?;
    file.as_file().sync_all()?;
    Ok(file)
}

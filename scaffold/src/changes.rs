//! Changes of files: all of them are made, or none.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::error::Error;
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
    /// author does not use rustfmt, and nothing else in it changes.
    ///
    /// # Errors
    ///
    /// A new file exists, or a file cannot be written. All files are as they were then, unless the error is
    /// [`Error::NotRestored`].
    pub(crate) fn write(mut self, rustfmt: &Rustfmt) -> Result<(), Error> {
        for change in &mut self.files {
            if change.before.is_none() && change.path.symlink_metadata().is_ok() {
                return Err(Error::Exists(change.path.clone()));
            }
            change.format(rustfmt);
        }
        let mut folders = Vec::new();
        for (at, change) in self.files.iter().enumerate() {
            if let Err(error) = change.write(&mut folders) {
                let error = Error::file(&change.path)(error);
                return Err(undo(&self.files[..=at], &folders).err().unwrap_or(error));
            }
        }
        Ok(())
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

    /// Writes the file, and adds the folders that it creates.
    fn write(&self, folders: &mut Vec<PathBuf>) -> io::Result<()> {
        if self.before.is_some() {
            return fs::write(&self.path, &self.after);
        }
        let parents = self.path.ancestors().skip(1);
        let missing =
            parents.take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let missing: Vec<_> = missing.map(Path::to_owned).collect();
        for folder in missing.into_iter().rev() {
            fs::create_dir(&folder)?;
            folders.push(folder);
        }
        File::create_new(&self.path)?.write_all(self.after.as_bytes())
    }
}

/// Restores files, of which the last may be written in part, and removes folders that were created for them.
fn undo(files: &[Change], folders: &[PathBuf]) -> Result<(), Error> {
    for (at, change) in files.iter().enumerate() {
        let is_last = at + 1 == files.len();
        let restored = match &change.before {
            Some(before) => fs::write(&change.path, before),
            None => fs::remove_file(&change.path),
        };
        match restored {
            Err(error) if !is_last => {
                let path = change.path.clone();
                return Err(Error::NotRestored { path, error });
            }
            _ => {}
        }
    }
    for folder in folders.iter().rev() {
        // A folder that another program has written to stays.
        let _ = fs::remove_dir(folder);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_leaves_every_file_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a.txt"), "before").expect("a file");
        fs::create_dir(path("c.txt")).expect("a folder");
        let rustfmt = Rustfmt::new(None);
        let changes = || {
            let mut changes = Changes::default();
            changes.replace(path("a.txt"), "before".to_owned(), "after".to_owned());
            changes.create(path("new/x/b.txt"), "b".to_owned());
            changes
        };
        let mut failing = changes();
        // A folder cannot be written to as a file.
        failing.replace(path("c.txt"), String::new(), "c".to_owned());
        let error = failing.write(&rustfmt).expect_err("a folder");
        assert!(
            matches!(&error, Error::File { path: of, .. } if *of == path("c.txt")),
            "{error}"
        );
        assert_eq!(fs::read_to_string(path("a.txt")).expect("a file"), "before");
        assert!(!path("new").exists());

        let mut existing = changes();
        existing.create(path("c.txt"), "c".to_owned());
        let error = existing.write(&rustfmt).expect_err("it exists");
        assert!(matches!(error, Error::Exists(_)), "{error}");
        assert_eq!(fs::read_to_string(path("a.txt")).expect("a file"), "before");

        changes().write(&rustfmt).expect("changes");
        assert_eq!(fs::read_to_string(path("a.txt")).expect("a file"), "after");
        assert_eq!(
            fs::read_to_string(path("new/x/b.txt")).expect("a file"),
            "b"
        );
    }

    #[test]
    fn an_author_who_does_not_format_keeps_the_form() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let rustfmt = Rustfmt::new(Some("2024".to_owned()));
        let mut changes = Changes::default();
        for (name, before, after) in [
            ("own.rs", "fn  a( ) {}\n", "fn  a( ) {}\nfn  b( ) {}\n"),
            (
                "formatted.rs",
                "\u{feff}fn a() {}\r\n",
                "\u{feff}fn a() {}\r\nfn  b( ) {}\r\n",
            ),
        ] {
            fs::write(path(name), before).expect("a file");
            changes.replace(path(name), before.to_owned(), after.to_owned());
        }
        changes.create(path("new.rs"), "mod other;\nfn  c( ) {}\n".to_owned());
        changes.create(path("new.txt"), "fn  c( ) {}\n".to_owned());
        changes.write(&rustfmt).expect("changes");
        for (name, expected) in [
            ("own.rs", "fn  a( ) {}\nfn  b( ) {}\n"),
            ("formatted.rs", "\u{feff}fn a() {}\r\nfn b() {}\r\n"),
            ("new.rs", "mod other;\nfn c() {}\n"),
            ("new.txt", "fn  c( ) {}\n"),
        ] {
            let text = fs::read_to_string(path(name)).expect("a file");
            assert_eq!(text, expected, "{name}");
        }
    }
}

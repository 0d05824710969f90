//! Files of a repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::names::Names;
use crate::template::Template;

/// Repository of an operator.
pub(crate) struct Project {
    folder: PathBuf,
}

impl Project {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Returns the path of a file.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// Returns the name of the program.
    ///
    /// # Errors
    ///
    /// The folder has no manifest of a package.
    pub(crate) fn program(&self) -> Result<String, Error> {
        let manifest = self.path("Cargo.toml");
        let text = read(&manifest)?;
        let line = text.lines().find(|line| line.starts_with("name = "));
        let name = line.and_then(|line| line.split('"').nth(1));
        name.map(ToOwned::to_owned).ok_or(Error::NoProject {
            path: manifest,
            problem: "the package has no name",
        })
    }

    /// Writes templates with the names of a program and a kind.
    ///
    /// # Errors
    ///
    /// One of the files exists: nothing is written then.
    pub(crate) fn write(&self, templates: &[Template], names: &Names) -> Result<(), Error> {
        let files = templates.iter().map(|template| {
            // A file whose name begins with the kind has the words of the kind separated by `-`, unless it is Rust.
            let is_rust = Path::new(template.path).extension() == Some("rs".as_ref());
            let names_of_file = Names {
                module: if is_rust {
                    names.module.clone()
                } else {
                    names.module.replace('_', "-")
                },
                ..names.clone()
            };
            let path = self.path(&names_of_file.apply(template.path));
            (path, names.apply(template.content))
        });
        write_new(&files.collect::<Vec<_>>())
    }

    /// Formats the Rust files, whose lines are longer or shorter with other names. Without rustfmt they stay as they are.
    pub(crate) fn format(&self) {
        let mut command = Command::new("cargo");
        command.arg("fmt").current_dir(&self.folder);
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::file(path))
}

/// Writes a file, and creates its folder.
pub(crate) fn write(path: &Path, content: &str) -> Result<(), Error> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::file(folder))?;
    }
    fs::write(path, content).map_err(Error::file(path))
}

/// Writes new files.
///
/// # Errors
///
/// One of them exists: nothing is written then.
pub(crate) fn write_new(files: &[(PathBuf, String)]) -> Result<(), Error> {
    if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
        return Err(Error::Exists(path.clone()));
    }
    files
        .iter()
        .try_for_each(|(path, content)| write(path, content))
}

/// Replaces a Rust file by the same with more code. If it was formatted, so is the result; otherwise its author does not
/// use rustfmt, and nothing else in it changes.
pub(crate) fn insert(path: &Path, content: &str) -> Result<(), Error> {
    let was_formatted = rustfmt(path, &["--check"]);
    write(path, content)?;
    if was_formatted {
        rustfmt(path, &[]);
    }
    Ok(())
}

/// Runs rustfmt and returns true if it succeeds.
fn rustfmt(path: &Path, arguments: &[&str]) -> bool {
    let mut command = Command::new("rustfmt");
    command
        .args(["--edition", "2024"])
        .args(arguments)
        .arg(path);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

//! Repository of an operator.

use std::fs;
use std::path::{Path, PathBuf, absolute};

use crate::error::Error;
use crate::manifest::Manifest;
use crate::rustfmt::Rustfmt;

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

    /// Returns the name of the program, and that of its library if it has another one.
    ///
    /// # Errors
    ///
    /// The folder has no manifest of a package.
    pub(crate) fn program(&self) -> Result<(String, Option<String>), Error> {
        let path = self.path("Cargo.toml");
        let text = read(&path)?;
        let manifest = Manifest::parse(&path, &text)?;
        let library = manifest.library().map(ToOwned::to_owned);
        let name = manifest.name().map(ToOwned::to_owned);
        let name = name.ok_or(Error::NoProject {
            path,
            problem: "the package has no name",
        })?;
        Ok((name, library))
    }

    /// Returns rustfmt with the edition of the package.
    pub(crate) fn rustfmt(&self) -> Rustfmt {
        Rustfmt::new(self.edition())
    }

    /// Returns the edition of the package, or that of its workspace.
    pub(crate) fn edition(&self) -> Option<String> {
        let folder = absolute(&self.folder).ok()?;
        let own = in_manifest(&folder, |manifest| manifest.edition());
        own.or_else(|| {
            let mut folders = folder.ancestors();
            folders.find_map(|folder| in_manifest(folder, |it| it.workspace_edition()))
        })
    }
}

/// Returns a part of the manifest of a folder; none if it cannot be read.
fn in_manifest(folder: &Path, part: impl Fn(&Manifest<'_>) -> Option<String>) -> Option<String> {
    let path = folder.join("Cargo.toml");
    let text = read(&path).ok()?;
    part(&Manifest::parse(&path, &text).ok()?)
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_may_have_the_edition_of_its_workspace() {
        let folder = tempfile::tempdir().expect("a folder");
        let package = folder.path().join("package");
        fs::create_dir(&package).expect("a folder");
        let edition_with = |workspace: &str, manifest: &str| {
            fs::write(folder.path().join("Cargo.toml"), workspace).expect("a file");
            fs::write(package.join("Cargo.toml"), manifest).expect("a file");
            Project::in_folder(&package).edition()
        };
        let workspace = "[workspace.package]\nedition = \"2021\"\n";
        let own = "[package]\nname = \"a\"\nedition = \"2024\"\n";
        let inherited = "[package]\nname = \"a\"\nedition.workspace = true\n";
        assert_eq!(edition_with(workspace, own).as_deref(), Some("2024"));
        assert_eq!(edition_with(workspace, inherited).as_deref(), Some("2021"));
        assert_eq!(edition_with("[workspace]\n", inherited), None);
    }
}

//! `Cargo.toml` of a repository. As the Rust files, it is never printed: its text is edited at positions of its tree.

pub(crate) mod dependencies;

use std::path::Path;

use toml_edit::{Document, Item, TableLike};

use crate::error::Error;

/// Manifest of a package.
pub(crate) struct Manifest<'a> {
    pub(crate) text: &'a str,
    document: Document<&'a str>,
}

impl<'a> Manifest<'a> {
    /// Parses a manifest.
    ///
    /// # Errors
    ///
    /// The text is not TOML.
    pub(crate) fn parse(path: &Path, text: &'a str) -> Result<Self, Error> {
        let document = Document::parse(text).map_err(|error| Error::Syntax {
            path: path.to_owned(),
            line: 1 + text[..error.span().map_or(0, |span| span.start)]
                .matches('\n')
                .count(),
            problem: error.message().to_owned(),
        })?;
        Ok(Self { text, document })
    }

    /// Returns the name of the package.
    pub(crate) fn name(&self) -> Option<&str> {
        self.package()?.get("name")?.as_str()
    }

    /// Returns the name of the library, if it is not that of the package.
    pub(crate) fn library(&self) -> Option<&str> {
        let library = self.document.get("lib")?.as_table_like()?;
        library.get("name")?.as_str()
    }

    /// Returns the edition of the package; none if the manifest has none of its own.
    pub(crate) fn edition(&self) -> Option<String> {
        self.package()?.get("edition")?.as_str().map(str::to_owned)
    }

    /// Returns the edition that packages of the workspace have if they have none of their own.
    pub(crate) fn workspace_edition(&self) -> Option<String> {
        let workspace = self.document.get("workspace")?.as_table_like()?;
        workspace
            .get("package")?
            .as_table_like()?
            .get("edition")?
            .as_str()
            .map(str::to_owned)
    }

    fn package(&self) -> Option<&dyn TableLike> {
        self.document.get("package")?.as_table_like()
    }

    /// Returns the section `dependencies`.
    fn dependencies(&self) -> Option<&Item> {
        self.document.get("dependencies")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_that_of_the_package() {
        let text = "[lib]\nname = \"a\"\n[package]\nname=\"b\" # c\nedition.workspace = true\n\
                    [workspace.package]\nedition = '2021'\n";
        let manifest = Manifest::parse(Path::new("Cargo.toml"), text).expect("TOML");
        assert_eq!(manifest.name(), Some("b"));
        assert_eq!(manifest.library(), Some("a"));
        assert_eq!(manifest.edition(), None);
        assert_eq!(manifest.workspace_edition().as_deref(), Some("2021"));
        let error = Manifest::parse(Path::new("Cargo.toml"), "[package]\nname = b\n");
        let error = error.map(drop).expect_err("no TOML").to_string();
        assert!(error.starts_with("Cargo.toml:2: "), "{error}");
    }
}

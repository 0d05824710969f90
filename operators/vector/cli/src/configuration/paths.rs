//! Paths of configuration files, as Vector reads them from its command line and its environment variables.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::configuration::format::Format;

/// Path by which standard input is named.
pub(crate) const STANDARD_INPUT: &str = "-";

/// Path that Vector reads if no other is given.
const DEFAULT: &str = "/etc/vector/vector.yaml";

/// File or folder with a configuration or a part of one. The order is the one in which Vector reads them: files
/// before folders, each by path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConfigPath {
    /// File, with its format if the command line sets it. Otherwise the extension selects the format, or TOML.
    File(PathBuf, Option<Format>),
    /// Folder with files.
    Folder(PathBuf),
}

impl ConfigPath {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File(path, _) | Self::Folder(path) => path,
        }
    }
}

/// Paths as given, with patterns.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenPaths {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) toml: Vec<PathBuf>,
    pub(crate) json: Vec<PathBuf>,
    pub(crate) yaml: Vec<PathBuf>,
    pub(crate) folders: Vec<PathBuf>,
}

impl GivenPaths {
    /// Adds the paths of the environment variables of Vector. A variable is used only if the command line has no
    /// path of its kind.
    #[must_use]
    pub(crate) fn or_environment(mut self) -> Self {
        for (paths, name) in [
            (&mut self.files, "VECTOR_CONFIG"),
            (&mut self.toml, "VECTOR_CONFIG_TOML"),
            (&mut self.json, "VECTOR_CONFIG_JSON"),
            (&mut self.yaml, "VECTOR_CONFIG_YAML"),
            (&mut self.folders, "VECTOR_CONFIG_DIR"),
        ] {
            if paths.is_empty()
                && let Some(value) = env::var_os(name)
            {
                *paths = split(&value);
            }
        }
        self
    }

    /// Returns the existing files and folders, sorted and without duplicates. Each path is a pattern, which must
    /// match at least one.
    pub(crate) fn existing(self) -> Result<Vec<ConfigPath>, String> {
        let file = |format| move |path| ConfigPath::File(path, format);
        let mut given: Vec<_> = self.files.into_iter().map(file(None)).collect();
        given.extend(self.toml.into_iter().map(file(Some(Format::Toml))));
        given.extend(self.json.into_iter().map(file(Some(Format::Json))));
        given.extend(self.yaml.into_iter().map(file(Some(Format::Yaml))));
        given.extend(self.folders.into_iter().map(ConfigPath::Folder));
        if given.is_empty() {
            given.push(ConfigPath::File(DEFAULT.into(), Some(Format::Yaml)));
        }
        let mut existing = Vec::new();
        for path in given {
            match path {
                ConfigPath::File(path, _) if path.as_os_str() == STANDARD_INPUT => {
                    existing.push(ConfigPath::File(path, Some(Format::Yaml)));
                }
                ConfigPath::File(path, format) => {
                    let found = matching(&path)?.into_iter();
                    existing.extend(found.map(|path| ConfigPath::File(path, format)));
                }
                ConfigPath::Folder(path) => {
                    existing.extend(matching(&path)?.into_iter().map(ConfigPath::Folder));
                }
            }
        }
        existing.sort();
        existing.dedup();
        Ok(existing)
    }
}

/// Splits a list at its commas.
fn split(list: &OsStr) -> Vec<PathBuf> {
    let list = list.to_string_lossy();
    list.split(',').map(PathBuf::from).collect()
}

/// Returns the files and folders that a pattern matches.
fn matching(pattern: &Path) -> Result<Vec<PathBuf>, String> {
    let shown = pattern.display();
    let text = pattern
        .to_str()
        .ok_or_else(|| format!("the path {shown} is not UTF-8 text; rename the file"))?;
    let found = glob::glob(text).map_err(|error| {
        format!(
            "the path {shown} is not a valid pattern: {} at character {}; correct it, or write `[[]` for `[`",
            error.msg,
            error.pos + 1
        )
    })?;
    let found: Vec<_> = found.filter_map(Result::ok).collect();
    if found.is_empty() {
        return Err(format!(
            "the configuration file {shown} does not exist; check its path"
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_pattern_matches_files_and_each_file_is_read_once() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["b.yaml", "a.yaml", "c.toml"] {
            fs::write(folder.path().join(name), "").expect("a file");
        }
        let at = |name: &str| folder.path().join(name);
        let given = GivenPaths {
            files: vec![at("*.yaml"), at("a.yaml"), at("c.toml")],
            json: vec![at("c.toml")],
            folders: vec![folder.path().to_owned()],
            ..GivenPaths::default()
        };
        let file = |name: &str, format| ConfigPath::File(at(name), format);
        assert_eq!(
            given.existing(),
            Ok(vec![
                file("a.yaml", None),
                file("b.yaml", None),
                file("c.toml", None),
                file("c.toml", Some(Format::Json)),
                ConfigPath::Folder(folder.path().to_owned()),
            ])
        );
    }

    #[test]
    fn a_path_that_matches_nothing_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, part) in [
            ("*.yaml", "does not exist; check its path"),
            ("a[", "is not a valid pattern"),
        ] {
            let given = GivenPaths {
                files: vec![folder.path().join(name)],
                ..GivenPaths::default()
            };
            let error = given.existing().expect_err("nothing matches");
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_list_is_split_at_its_commas() {
        assert_eq!(
            split(OsStr::new("a.yaml,/b/*.toml")),
            [PathBuf::from("a.yaml"), PathBuf::from("/b/*.toml")]
        );
    }
}

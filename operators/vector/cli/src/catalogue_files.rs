//! Catalogues of other versions of Vector, read from files.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use lockstep_sdk::{JsonFolders, describe_read_error, json_files, parse_json_file};
use lockstep_vector_api::{Catalogue, Catalogues, VectorVersion};

/// Catalogues for pipelines.
#[derive(clap::Args)]
#[command(next_help_heading = "Vector")]
pub struct CatalogueArgs {
    /// Folder with catalogues of other versions of Vector than the shipped one, which `lockstep vector catalogue` writes:
    /// the files `*.json` and `*.json.gz`. Webhook and controller read them again when they change. Can be repeated: of two
    /// catalogues of one version, the one in the folder that is named first is used. Manifests set the folders of the
    /// `ConfigMap` with the policy and of the `ConfigMap` `lockstep-vector-catalogues`.
    #[arg(long, value_name = "FOLDER")]
    vector_catalogues: Vec<PathBuf>,
}

impl CatalogueArgs {
    /// Reads the catalogues.
    pub fn read(&self) -> anyhow::Result<Catalogues> {
        for folder in &self.vector_catalogues {
            json_files(folder)
                .with_context(|| format!("cannot read the catalogues in {}", folder.display()))?;
        }
        let mut folders = self.folders();
        folders.scan();
        match folders.problems.into_iter().next() {
            Some(problem) => bail!(problem),
            None => Ok(Catalogues::with(&folders.catalogues)),
        }
    }

    /// Returns the folders, which are not read yet.
    pub fn folders(&self) -> CatalogueFolders {
        CatalogueFolders {
            files: JsonFolders::new(self.vector_catalogues.clone(), "catalogue", parse),
            catalogues: Vec::new(),
            problems: Vec::new(),
        }
    }
}

/// Folders with catalogues, as they were read last.
pub struct CatalogueFolders {
    files: JsonFolders<Catalogue>,
    /// The catalogues in force, one of each version.
    pub catalogues: Vec<Arc<Catalogue>>,
    /// Files that are not in use, and why not.
    pub problems: Vec<String>,
}

impl CatalogueFolders {
    /// Reads the folders. Returns true if the catalogues or the problems differ. The last valid content of a file remains in
    /// force until the file is deleted.
    pub fn scan(&mut self) -> bool {
        if !self.files.scan() {
            return false;
        }
        let mut problems = self.files.problems().to_vec();
        let catalogues = self.chosen(&mut problems);
        let digests = |catalogues: &[Arc<Catalogue>]| -> Vec<_> {
            catalogues.iter().map(|it| it.digest()).collect()
        };
        let is_same =
            digests(&catalogues) == digests(&self.catalogues) && problems == self.problems;
        self.catalogues = catalogues;
        self.problems = problems;
        !is_same
    }

    /// Returns the catalogues that are used: of each version, the one in the first folder.
    fn chosen(&self, problems: &mut Vec<String>) -> Vec<Arc<Catalogue>> {
        let mut chosen: Vec<(usize, &Arc<Catalogue>)> = Vec::new();
        for (folder, path, catalogue) in self.files.files() {
            let same = chosen
                .iter()
                .find(|(_, known)| known.number() == catalogue.number());
            match same {
                None => chosen.push((folder, catalogue)),
                Some((other, _)) if *other == folder => problems.push(format!(
                    "{}: another file in the folder is a catalogue of Vector {}, too; remove one of them",
                    path.display(),
                    catalogue.version
                )),
                Some(_) => {}
            }
        }
        let chosen = chosen.into_iter();
        chosen.map(|(_, catalogue)| Arc::clone(catalogue)).collect()
    }
}

/// Arguments that select the version of Vector of a configuration on the command line.
#[derive(clap::Args)]
pub(crate) struct VersionArgs {
    /// Version of Vector for which the program has a catalogue. Default: 0.57.
    #[arg(long, value_name = "VERSION", value_parser = vector_version, conflicts_with = "catalogue")]
    vector_version: Option<VectorVersion>,
    /// Catalogue of another version of Vector, which `lockstep vector catalogue` writes.
    #[arg(long, value_name = "FILE")]
    catalogue: Option<PathBuf>,
}

impl VersionArgs {
    /// Returns the catalogue of the selected version.
    pub(crate) fn chosen(&self) -> anyhow::Result<Arc<Catalogue>> {
        let Some(path) = &self.catalogue else {
            let version = self.vector_version.unwrap_or(VectorVersion::DEFAULT);
            let found = Catalogue::of_version(version).with_context(|| {
                format!("the program has no catalogue of Vector {version}; make one with `lockstep vector catalogue`, and name it with --catalogue")
            });
            return found.cloned();
        };
        let content = fs::read(path).map_err(|error| describe_read_error(&error));
        let catalogue = content.and_then(|content| parse_json_file(&content, parse));
        catalogue.map_err(|error| anyhow!("the catalogue {} {error}", path.display()))
    }
}

/// Parses a version of Vector on the command line.
pub(crate) fn vector_version(text: &str) -> Result<VectorVersion, String> {
    VectorVersion::try_from(text.to_owned())
}

fn parse(text: &str) -> Result<Arc<Catalogue>, String> {
    Catalogue::load(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Returns the shipped catalogue as one of another version.
    fn text_of(version: &str) -> String {
        let shipped = include_str!("../../config/catalogue/0.57.json");
        let version = format!(r#""version":"{version}""#);
        shipped.replacen(r#""version":"0.57""#, &version, 1)
    }

    #[test]
    fn changed_files_are_read_again_and_a_broken_one_keeps_its_last_catalogue() {
        let directory = tempfile::tempdir().expect("a folder");
        let policy = directory.path().join("policy");
        let learned = directory.path().join("learned");
        fs::create_dir(&policy).expect("a folder");
        let args = CatalogueArgs {
            vector_catalogues: vec![policy.clone(), learned.clone()],
        };
        let mut folders = args.folders();
        let mut scan = || {
            let is_changed = folders.scan();
            let versions = folders.catalogues.iter().map(|it| it.version.clone());
            let versions: Vec<_> = versions.collect();
            (is_changed, versions.join(" "), folders.problems.len())
        };
        let state =
            |is_changed, versions: &str, problems| (is_changed, versions.to_owned(), problems);
        // The second folder does not exist.
        assert_eq!(scan(), state(false, "", 0));
        let write = |folder: &Path, name: &str, text: &str| {
            fs::create_dir_all(folder).expect("a folder");
            fs::write(folder.join(name), text).expect("a file");
        };
        write(&policy, "a.json", &text_of("0.48"));
        assert_eq!(scan(), state(true, "0.48", 0));
        assert_eq!(scan(), state(false, "0.48", 0));
        write(&policy, "a.json", "{");
        assert_eq!(scan(), state(true, "0.48", 1));
        write(&learned, "0.40.json", &text_of("0.40"));
        write(&learned, "0.48.json", &text_of("0.48"));
        assert_eq!(scan(), state(true, "0.48 0.40", 1));
        // Two files of one folder.
        write(&learned, "again.json", &text_of("0.40"));
        assert_eq!(scan(), state(true, "0.48 0.40", 2));
        fs::remove_file(policy.join("a.json")).expect("it exists");
        fs::remove_file(learned.join("again.json")).expect("it exists");
        assert_eq!(scan(), state(true, "0.40 0.48", 0));
        fs::remove_dir_all(&learned).expect("it exists");
        assert_eq!(scan(), state(true, "", 0));
    }

    #[test]
    fn the_catalogue_in_the_first_folder_is_used() {
        let directory = tempfile::tempdir().expect("a folder");
        let folders = ["policy", "learned"].map(|name| directory.path().join(name));
        let texts = [
            text_of("0.48").replace("\"console\":", "\"terminal\":"),
            text_of("0.48"),
        ];
        for (folder, text) in folders.iter().zip(&texts) {
            fs::create_dir(folder).expect("a folder");
            fs::write(folder.join("any.json"), text).expect("a file");
        }
        let args = CatalogueArgs {
            vector_catalogues: folders.to_vec(),
        };
        let mut folders = args.folders();
        folders.scan();
        assert!(folders.problems.is_empty(), "{:?}", folders.problems);
        let expected = Catalogue::load(&texts[0]).expect("a catalogue");
        assert_eq!(folders.catalogues[0].digest(), expected.digest());
        assert_eq!(folders.catalogues.len(), 1);
    }
}

//! Catalogues of other versions of Vector, read from files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use flate2::read::MultiGzDecoder;
use lockstep_sdk::describe_read_error;
use lockstep_vector_api::{Catalogue, Catalogues};

/// Maximum size of a catalogue, in bytes. That of Vector 0.57 has 290 KiB.
const LONGEST_FILE: u64 = 16 << 20;

/// First bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Catalogues for pipelines.
#[derive(clap::Args)]
#[command(next_help_heading = "Vector")]
pub(crate) struct CatalogueArgs {
    /// Folder with catalogues of other versions of Vector than the shipped one, which `lockstep vector catalogue` writes:
    /// the files `*.json` and `*.json.gz`. Webhook and controller read them again when they change. Can be repeated: of two
    /// catalogues of one version, the one in the folder that is named first is used. Manifests set the folders of the
    /// `ConfigMap` with the policy and of the `ConfigMap` `lockstep-vector-catalogues`.
    #[arg(long, value_name = "FOLDER")]
    vector_catalogues: Vec<PathBuf>,
}

impl CatalogueArgs {
    /// Reads the catalogues.
    pub(crate) fn read(&self) -> anyhow::Result<Catalogues> {
        for folder in &self.vector_catalogues {
            files(folder)
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
    pub(crate) fn folders(&self) -> CatalogueFolders {
        CatalogueFolders {
            folders: self.vector_catalogues.clone(),
            files: BTreeMap::new(),
            catalogues: Vec::new(),
            problems: Vec::new(),
        }
    }
}

/// Folders with catalogues, as they were read last.
pub(crate) struct CatalogueFolders {
    folders: Vec<PathBuf>,
    /// Files by folder and path.
    files: BTreeMap<(usize, PathBuf), CatalogueFile>,
    /// The catalogues in force, one of each version.
    pub(crate) catalogues: Vec<Arc<Catalogue>>,
    /// Files that are not in use, and why not.
    pub(crate) problems: Vec<String>,
}

/// File with a catalogue.
struct CatalogueFile {
    content: Result<Vec<u8>, String>,
    /// Reason why the content is not in use.
    problem: Option<String>,
    /// Last valid content.
    catalogue: Option<Arc<Catalogue>>,
}

impl CatalogueFolders {
    /// Reads the folders. Returns true if the catalogues or the problems differ. The last valid content of a file remains in
    /// force until the file is deleted.
    pub(crate) fn scan(&mut self) -> bool {
        let mut problems = Vec::new();
        let mut present = BTreeMap::new();
        for (index, folder) in self.folders.iter().enumerate() {
            match files(folder) {
                Ok(files) => {
                    let files = files.into_iter();
                    present.extend(files.map(|path| {
                        let content = fs::read(&path);
                        let content = content.map_err(|error| describe_read_error(&error));
                        ((index, path), content)
                    }));
                }
                // An optional `ConfigMap` that does not exist.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let error = describe_read_error(&error);
                    problems.push(format!("the folder {} {error}", folder.display()));
                    let known = self.files.extract_if(.., |(at, _), _| *at == index);
                    present.extend(known.map(|(key, file)| (key, file.content)));
                }
            }
        }
        let mut before = std::mem::take(&mut self.files);
        for (key, content) in present {
            let file = match before.remove(&key) {
                Some(file) if file.content == content => file,
                last => CatalogueFile::new(&key.1, content, last),
            };
            problems.extend(file.problem.clone());
            self.files.insert(key, file);
        }
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
        for ((folder, path), file) in &self.files {
            let Some(catalogue) = &file.catalogue else {
                continue;
            };
            let same = chosen
                .iter()
                .find(|(_, known)| known.number() == catalogue.number());
            match same {
                None => chosen.push((*folder, catalogue)),
                Some((other, _)) if other == folder => problems.push(format!(
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

impl CatalogueFile {
    fn new(path: &Path, content: Result<Vec<u8>, String>, last: Option<Self>) -> Self {
        let last = last.and_then(|last| last.catalogue);
        let (catalogue, problem) = match catalogue(path, content.as_deref()) {
            Ok(catalogue) => (Some(catalogue), None),
            Err(problem) => (last, Some(problem)),
        };
        Self {
            content,
            problem,
            catalogue,
        }
    }
}

/// Returns the catalogue in a file, or the shipped one.
pub(crate) fn chosen(file: Option<&Path>) -> anyhow::Result<Arc<Catalogue>> {
    let Some(path) = file else {
        return Ok(Arc::clone(Catalogue::shipped()));
    };
    let content = fs::read(path).map_err(|error| describe_read_error(&error));
    catalogue(path, content.as_deref()).map_err(anyhow::Error::msg)
}

/// Returns the files of a folder that are catalogues by their names. A mounted `ConfigMap` also has a hidden folder.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let is_catalogue = has_extension(&path, "json")
            || has_extension(&path, "gz") && has_extension(&path.with_extension(""), "json");
        if is_catalogue && !is_hidden {
            files.push(path);
        }
    }
    Ok(files)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|own| own == extension)
}

/// Returns the catalogue that a file contains.
fn catalogue(path: &Path, content: Result<&[u8], &String>) -> Result<Arc<Catalogue>, String> {
    let path = path.display();
    let wrong = |error: &str| format!("the catalogue {path} {error}");
    let text = content
        .map_err(String::clone)
        .and_then(|content| text(content).map_err(|error| describe_read_error(&error)));
    let text = text.map_err(|error| wrong(&error))?;
    if text.len() as u64 > LONGEST_FILE {
        let error = format!(
            "has more than {LONGEST_FILE} bytes; create it with `lockstep vector catalogue`"
        );
        return Err(wrong(&error));
    }
    Catalogue::load(&text).map_err(|error| wrong(&error.to_string()))
}

/// Returns the text of a file, which may be compressed, or its beginning if it is longer than allowed.
fn text(content: &[u8]) -> io::Result<String> {
    let mut text = String::new();
    if content.starts_with(&GZIP) {
        let decoder = MultiGzDecoder::new(content);
        decoder.take(LONGEST_FILE + 1).read_to_string(&mut text)?;
    } else {
        content.take(LONGEST_FILE + 1).read_to_string(&mut text)?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the shipped catalogue as one of another version.
    fn text_of(version: &str) -> String {
        let shipped = include_str!("../../../operators/vector/config/catalogue/0.57.json");
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

//! JSON files in folders, such as mounted `ConfigMap`s, which may change while the program runs.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::MultiGzDecoder;

use crate::read_error::describe_read_error;

/// Maximum size of a file, in bytes, also if it is compressed.
const LONGEST_FILE: u64 = 16 << 20;

/// First bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Makes the content from the text of a file. The error is the rest of a sentence that begins with the path.
pub type ParseFn<T> = fn(&str) -> Result<Arc<T>, String>;

/// Files `*.json` and `*.json.gz` in folders, as they were read last.
///
/// # Expected flow
///
/// The function of [`RulesetExtension::reloaded_by`](crate::RulesetExtension::reloaded_by) calls [`scan`](Self::scan), and uses
/// the [`files`](Self::files) if it returns true. The argument of
/// [`Operator::config_map_arg`](crate::Operator::config_map_arg) has the folder.
///
/// # Guarantees
///
/// A file that becomes invalid keeps its last valid content until it is deleted. A folder that does not exist is empty: it may
/// be that of an optional `ConfigMap`.
///
/// ```
/// use std::sync::Arc;
///
/// use lockstep_sdk::JsonFolders;
///
/// let folder = std::env::temp_dir().join("reserved-names-that-do-not-exist");
/// let mut files = JsonFolders::<Vec<String>>::new(vec![folder], "list", |text| {
///     serde_json::from_str(text).map(Arc::new).map_err(|error| format!("is invalid: {error}"))
/// });
/// assert!(!files.scan(), "nothing has changed");
/// assert_eq!(files.files().count(), 0);
/// ```
pub struct JsonFolders<T> {
    folders: Vec<PathBuf>,
    parse: ParseFn<T>,
    /// Noun that messages use for the content.
    noun: &'static str,
    /// Files by folder and path.
    files: BTreeMap<(usize, PathBuf), JsonFile<T>>,
    problems: Vec<String>,
}

struct JsonFile<T> {
    bytes: Result<Vec<u8>, String>,
    /// Reason why the bytes are not in use.
    problem: Option<String>,
    /// Last valid content.
    content: Option<Arc<T>>,
}

impl<T> JsonFolders<T> {
    /// Returns folders that are not read yet. Messages call the content of a file `noun`.
    pub fn new(folders: Vec<PathBuf>, noun: &'static str, parse: ParseFn<T>) -> Self {
        Self {
            folders,
            parse,
            noun,
            files: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    /// Returns the contents in use, each with the index of its folder and its path, in this order.
    pub fn files(&self) -> impl Iterator<Item = (usize, &Path, &Arc<T>)> {
        self.files.iter().filter_map(|((folder, path), file)| {
            Some((*folder, path.as_path(), file.content.as_ref()?))
        })
    }

    /// Returns the reasons why files are not in use.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Reads the folders. Returns true if a file or a problem differs.
    pub fn scan(&mut self) -> bool {
        let mut problems = Vec::new();
        let mut present = BTreeMap::new();
        for (index, folder) in self.folders.iter().enumerate() {
            match json_files(folder) {
                Ok(files) => {
                    let files = files.into_iter();
                    present.extend(files.map(|path| {
                        let bytes = fs::read(&path);
                        (
                            (index, path),
                            bytes.map_err(|error| describe_read_error(&error)),
                        )
                    }));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let error = describe_read_error(&error);
                    problems.push(format!("the folder {} {error}", folder.display()));
                    let known = self.files.extract_if(.., |(at, _), _| *at == index);
                    present.extend(known.map(|(key, file)| (key, file.bytes)));
                }
            }
        }
        let mut before = std::mem::take(&mut self.files);
        let mut is_changed = false;
        for (key, bytes) in present {
            let file = match before.remove(&key) {
                Some(file) if file.bytes == bytes => file,
                last => {
                    is_changed = true;
                    self.file(&key.1, bytes, last)
                }
            };
            problems.extend(file.problem.clone());
            self.files.insert(key, file);
        }
        is_changed |= !before.is_empty() || problems != self.problems;
        self.problems = problems;
        is_changed
    }

    fn file(
        &self,
        path: &Path,
        bytes: Result<Vec<u8>, String>,
        last: Option<JsonFile<T>>,
    ) -> JsonFile<T> {
        let content = match &bytes {
            Ok(bytes) => parse_json_file(bytes, self.parse),
            Err(error) => Err(error.clone()),
        };
        let (content, problem) = match content {
            Ok(content) => (Some(content), None),
            Err(error) => {
                let problem = format!("the {} {} {error}", self.noun, path.display());
                (last.and_then(|last| last.content), Some(problem))
            }
        };
        JsonFile {
            bytes,
            problem,
            content,
        }
    }
}

/// Makes the content of a file, which may be compressed.
///
/// # Errors
///
/// The rest of a sentence that begins with the path.
pub fn parse_json_file<T>(bytes: &[u8], parse: ParseFn<T>) -> Result<Arc<T>, String> {
    let text = text(bytes).map_err(|error| describe_read_error(&error))?;
    if text.len() as u64 > LONGEST_FILE {
        return Err(format!("has more than {LONGEST_FILE} bytes"));
    }
    parse(&text)
}

/// Returns the files of a folder that have content by their names. A mounted `ConfigMap` also has a hidden folder.
///
/// # Errors
///
/// The folder cannot be read.
pub fn json_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let is_json = has_extension(&path, "json")
            || has_extension(&path, "gz") && has_extension(&path.with_extension(""), "json");
        if is_json && !is_hidden {
            files.push(path);
        }
    }
    Ok(files)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|own| own == extension)
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
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn parse(text: &str) -> Result<Arc<String>, String> {
        let valid = text.strip_prefix("ok ").ok_or("is no content")?;
        Ok(Arc::new(valid.to_owned()))
    }

    #[test]
    fn changed_files_are_read_again_and_an_invalid_one_keeps_its_last_content() {
        let directory = tempfile::tempdir().expect("a folder");
        let folders = ["first", "second"].map(|name| directory.path().join(name));
        fs::create_dir(&folders[0]).expect("a folder");
        let mut files = JsonFolders::new(folders.to_vec(), "content", parse);
        let mut scan = || {
            let is_changed = files.scan();
            let contents: Vec<_> = files.files().map(|(_, _, it)| it.to_string()).collect();
            (is_changed, contents.join(" "), files.problems().join(", "))
        };
        let state = |is_changed, contents: &str, problems: &str| {
            (is_changed, contents.to_owned(), problems.to_owned())
        };
        assert_eq!(scan(), state(false, "", ""));
        let path = folders[0].join("a.json");
        fs::write(&path, "ok 1").expect("a file");
        fs::write(folders[0].join(".hidden.json"), "no").expect("a file");
        assert_eq!(scan(), state(true, "1", ""));
        assert_eq!(scan(), state(false, "1", ""));
        fs::write(&path, "2").expect("a file");
        let problem = format!("the content {} is no content", path.display());
        assert_eq!(scan(), state(true, "1", &problem));
        fs::create_dir(&folders[1]).expect("a folder");
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(b"ok 3").expect("it fits");
        let packed = packed.finish().expect("it fits");
        fs::write(folders[1].join("a.json.gz"), packed).expect("a file");
        assert_eq!(scan(), state(true, "1 3", &problem));
        fs::remove_file(&path).expect("it exists");
        assert_eq!(scan(), state(true, "3", ""));
    }
}

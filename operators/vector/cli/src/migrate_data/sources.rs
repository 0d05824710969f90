//! Read positions of sources.
//!
//! A directory with a new name of its own is renamed. If several become one, or one becomes several, the new files are
//! written first and the old ones are deleted then: a run that is interrupted in between reads the same positions again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use lockstep_vector_assembly::DataMove;

use crate::migrate_data::checkpoints::Checkpoints;
use crate::migrate_data::data_directory::{self, DataDirectory};

/// File with the read positions.
const STABLE: &str = "checkpoints.json";

/// File that Vector writes before it replaces the other one with it. If it is complete, it is the newer one.
const UNFINISHED: &str = "checkpoints.new.json";

/// Moves the read positions.
pub(super) fn migrate(
    directory: &DataDirectory,
    moves: &[DataMove],
    report: &mut Vec<String>,
) -> io::Result<()> {
    let moves = data_directory::valid(moves, report);
    let mut sources: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut targets: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for DataMove { from, to } in moves {
        sources.entry(from).or_default().insert(to);
        targets.entry(to).or_default().insert(from);
    }
    for (to, of) in &targets {
        let is_alone = |from: &&&str| sources[**from].len() == 1;
        if let ([from], true) = (
            &of.iter().collect::<Vec<_>>()[..],
            of.iter().all(|it| is_alone(&it)),
        ) {
            let (old, new) = (directory.of_source(from), directory.of_source(to));
            if data_directory::rename(&old, &new)? {
                report.push(format!("the read positions of {from} are those of {to}"));
                continue;
            }
        }
        write(directory, to, of, report)?;
    }
    for (from, to) in &sources {
        let are_written = to
            .iter()
            .all(|to| directory.of_source(to).join(STABLE).exists());
        if are_written {
            remove(&directory.of_source(from))?;
        }
    }
    Ok(())
}

/// Writes the read positions of a source from those of others, and from those that it has already.
fn write(
    directory: &DataDirectory,
    to: &str,
    of: &BTreeSet<&str>,
    report: &mut Vec<String>,
) -> io::Result<()> {
    let mut found = Vec::new();
    let mut like = None;
    for from in of {
        let old = directory.of_source(from);
        if let Some(checkpoints) = read(&old, report)? {
            found.push(checkpoints);
            like = Some(old);
        }
    }
    let Some(like) = like else {
        return Ok(());
    };
    let new = directory.of_source(to);
    data_directory::create(&new, &like)?;
    let mut checkpoints = Checkpoints::join(&found);
    if let Some(left) = read(&new, report)? {
        checkpoints = checkpoints.or_newer(&left);
    }
    data_directory::replace(&new.join(STABLE), &checkpoints.to_bytes(), &like)?;
    // Vector would prefer it, and its content is part of the other file now.
    remove_file(&new.join(UNFINISHED))?;
    let number = found.len();
    report.push(format!(
        "the read positions of {number} of {} sources are those of {to}",
        of.len()
    ));
    Ok(())
}

/// Reads positions as Vector does. None if there are none, or if they are in a format that Vector would not read either.
fn read(directory: &Path, report: &mut Vec<String>) -> io::Result<Option<Checkpoints>> {
    for name in [UNFINISHED, STABLE] {
        let path = directory.join(name);
        let content = match fs::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        match Checkpoints::parse(&content) {
            Ok(checkpoints) => return Ok(Some(checkpoints)),
            Err(error) => report.push(format!(
                "'{}' has no read positions: {error:#}",
                path.display()
            )),
        }
    }
    Ok(None)
}

/// Deletes positions that were written elsewhere, and the directory if nothing else is in it.
fn remove(directory: &Path) -> io::Result<()> {
    let mut unread = Vec::new();
    if read(directory, &mut unread)?.is_none() || !unread.is_empty() {
        return Ok(());
    }
    // In this order, no older positions remain if the process stops in between.
    remove_file(&directory.join(STABLE))?;
    remove_file(&directory.join(UNFINISHED))?;
    match fs::remove_dir(directory) {
        Err(error) if error.kind() != ErrorKind::DirectoryNotEmpty => Err(error),
        _ => Ok(()),
    }
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;

    struct Data(TempDir);

    impl Data {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a directory"))
        }

        fn fill(&self, source: &str, file: &str, checkpoints: &[(u64, u64, u8)]) {
            let checkpoints = checkpoints.iter().map(|(checksum, position, second)| {
                json!({
                    "fingerprint": {"first_lines_checksum": checksum}, "position": position,
                    "modified": format!("2026-01-01T00:00:{second:02}Z"),
                })
            });
            let content = json!({"version": "1", "checkpoints": checkpoints.collect::<Vec<_>>()});
            self.fill_text(source, file, &content.to_string());
        }

        fn fill_text(&self, source: &str, file: &str, content: &str) {
            let directory = self.0.path().join(source);
            fs::create_dir_all(&directory).expect("a directory");
            fs::write(directory.join(file), content).expect("a file");
        }

        fn migrate(&self, moves: &[(&str, &str)]) -> Vec<String> {
            let moves = moves.iter().map(|(from, to)| DataMove {
                from: (*from).to_owned(),
                to: (*to).to_owned(),
            });
            let mut report = Vec::new();
            let directory = DataDirectory::new(self.0.path());
            migrate(&directory, &moves.collect::<Vec<_>>(), &mut report).expect("moved");
            report
        }

        /// Returns the positions of a source by checksum, or none.
        fn positions(&self, source: &str) -> Option<Vec<(u64, u64)>> {
            let content = fs::read(self.0.path().join(source).join(STABLE)).ok()?;
            let content: Value = serde_json::from_slice(&content).expect("JSON");
            let checkpoints = content["checkpoints"].as_array().expect("a list").iter();
            let position = |it: &Value| {
                let checksum = &it["fingerprint"]["first_lines_checksum"];
                (
                    checksum.as_u64().expect("a number"),
                    it["position"].as_u64().expect("a number"),
                )
            };
            Some(checkpoints.map(position).collect())
        }

        /// Returns the names of all directories.
        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.0.path()).expect("a directory");
            let names = entries.map(|it| it.expect("an entry").file_name());
            let mut names: Vec<_> = names.map(|it| it.to_string_lossy().into_owned()).collect();
            names.sort();
            names
        }
    }

    #[test]
    fn a_directory_is_renamed_with_all_that_it_contains() {
        let data = Data::new();
        data.fill("a-p-in", STABLE, &[(1, 10, 1)]);
        data.fill("a-p-in", UNFINISHED, &[(1, 11, 2)]);
        data.fill_text("c-journal", "checkpoint.txt", "s=1;i=2\n");
        data.fill_text("unrelated", "x", "y");
        let moves = [
            ("a-p-in", "a__p__in"),
            ("c-journal", "__c__journal"),
            ("b-p-in", "b__p__in"),
        ];
        assert_eq!(data.migrate(&moves).len(), 2);
        assert_eq!(data.names(), ["__c__journal", "a__p__in", "unrelated"]);
        assert!(data.0.path().join("a__p__in").join(UNFINISHED).exists());
        assert_eq!(data.migrate(&moves), Vec::<String>::new());
    }

    #[test]
    fn several_sources_become_one_and_one_becomes_several() {
        let data = Data::new();
        data.fill("a", STABLE, &[(1, 10, 1), (2, 20, 1)]);
        data.fill("b", STABLE, &[(1, 1, 1)]);
        // The process was interrupted.
        data.fill("b", UNFINISHED, &[(1, 7, 2), (3, 30, 2)]);
        let together = [("a", "m"), ("b", "m"), ("c", "m")];
        data.migrate(&together);
        let all = vec![(1, 7), (2, 20), (3, 30)];
        assert_eq!(data.positions("m"), Some(all.clone()));
        assert_eq!(data.names(), ["m"]);
        assert_eq!(data.migrate(&together), Vec::<String>::new());
        assert_eq!(data.positions("m"), Some(all.clone()));
        let apart = [("m", "a"), ("m", "b")];
        data.migrate(&apart);
        assert_eq!(
            (data.positions("a"), data.positions("b")),
            (Some(all.clone()), Some(all))
        );
        assert_eq!(data.names(), ["a", "b"]);
    }

    #[test]
    fn a_run_continues_one_that_was_interrupted() {
        let moves = [("a", "m"), ("b", "m")];
        let data = Data::new();
        data.fill("a", STABLE, &[(1, 10, 1)]);
        data.fill("b", STABLE, &[(2, 20, 1)]);
        data.migrate(&moves);
        // The new file was written, and only the first of the old ones was deleted.
        data.fill("b", STABLE, &[(2, 20, 1)]);
        data.migrate(&moves);
        assert_eq!(data.positions("m"), Some(vec![(1, 10), (2, 20)]));
        assert_eq!(data.names(), ["m"]);
    }

    #[test]
    fn positions_that_a_source_has_already_stay_unless_the_moved_ones_are_newer() {
        let data = Data::new();
        data.fill("a", STABLE, &[(1, 10, 2), (2, 20, 1)]);
        data.fill("b", STABLE, &[(1, 5, 1), (2, 25, 2), (3, 30, 1)]);
        data.migrate(&[("a", "b")]);
        assert_eq!(data.positions("b"), Some(vec![(1, 10), (2, 25), (3, 30)]));
        assert_eq!(data.names(), ["b"]);
    }

    #[test]
    fn what_cannot_be_read_is_left_as_it_is() {
        let data = Data::new();
        data.fill_text("a", STABLE, "{");
        data.fill("b", STABLE, &[(1, 1, 1)]);
        data.fill_text("c", "checkpoint.txt", "s=1");
        data.fill_text("d", "checkpoint.txt", "s=2");
        let report = data.migrate(&[("a", "m"), ("b", "m"), ("c", "d")]);
        assert_eq!(report.len(), 2, "{report:?}");
        assert_eq!(data.positions("m"), Some(vec![(1, 1)]));
        assert_eq!(data.names(), ["a", "c", "d", "m"]);
    }
}

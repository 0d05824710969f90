use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;

use super::*;
use crate::AddArgs;
use crate::test_repository::repository;

fn add_kind(folder: &Path, arguments: &[&str]) -> Result<Added, String> {
    let args = ["add", "kind", "Second", "--group", "demo.example.com"];
    let args = args.iter().chain(arguments);
    crate::add(&AddArgs::parse_from(args), folder).map_err(|error| error.to_string())
}

/// Returns the files of a folder with their contents.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.insert(path.clone(), Vec::new());
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).expect("a file"));
        }
    }
    found
}

#[test]
fn only_files_that_change_are_formatted() {
    let folder = tempfile::tempdir().expect("a folder");
    repository(folder.path());
    let path = |path: &str| folder.path().join(path);
    let library = fs::read_to_string(path("src/lib.rs")).expect("a file");
    let library = library.replace("pub mod lamp;\n", "mod own;\npub mod lamp; // the first\n");
    let library = format!("\u{feff}{}", library.replace('\n', "\r\n"));
    fs::write(path("src/lib.rs"), &library).expect("a file");
    let own = "fn  own( ) { }\n";
    for file in ["src/own.rs", "src/lamp/sync.rs"] {
        fs::write(path(file), own).expect("a file");
    }
    let before = contents(folder.path());
    let added = add_kind(folder.path(), &["--reconciler"]).expect("a kind");
    assert_eq!(added.notes, Vec::<String>::new());

    let after = contents(folder.path());
    let written = after
        .iter()
        .filter(|(path, text)| !path.is_dir() && before.get(*path) != Some(text));
    let written: BTreeSet<_> = written.map(|(path, _)| path.clone()).collect();
    assert_eq!(BTreeSet::from_iter(added.files), written);
    let changed = before.iter().filter(|(path, text)| after[*path] != **text);
    let changed: Vec<_> = changed.map(|(path, _)| path.clone()).collect();
    assert_eq!(
        changed,
        ["Cargo.toml", "src/lib.rs", "tests/cases.rs"].map(path)
    );
    let expected = library
        .replace("// the first\r\n", "// the first\r\npub mod second;\r\n")
        .replace(
            "lamp::operator))\r\n",
            "lamp::operator))\r\n        .operator(second::operator())\r\n",
        );
    let library = fs::read_to_string(path("src/lib.rs")).expect("a file");
    assert_eq!(library, expected);
    let new = fs::read_to_string(path("src/second/reconciler.rs")).expect("a file");
    let formatted = crate::rustfmt::Rustfmt::new(Some("2024".to_owned()));
    assert_eq!(formatted.formatted(&path("src/second.rs"), &new), Some(new));
}

#[test]
fn a_dependency_of_the_workspace_is_noted() {
    let folder = tempfile::tempdir().expect("a folder");
    repository(folder.path());
    let path = folder.path().join("Cargo.toml");
    let manifest = fs::read_to_string(&path).expect("a file");
    let manifest = manifest.replace("\nserde = ", "\ntokio.workspace = true\nserde = ");
    fs::write(&path, manifest).expect("a file");
    let notes = add_kind(folder.path(), &["--reconciler"])
        .expect("a kind")
        .notes;
    let [note] = &notes[..] else {
        panic!("{notes:?}");
    };
    let expected =
        "Cargo.toml: `tokio` is a dependency of the workspace: the reconciler needs version 1.";
    assert!(note.ends_with(expected), "{note}");
    let manifest = fs::read_to_string(&path).expect("a file");
    let features = "tokio.workspace = true\ntokio.features = [\"net\", \"rt\", \"time\"]\n";
    assert!(manifest.contains(features), "{manifest}");
}

#[test]
fn the_library_may_have_a_name_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    repository(folder.path());
    let path = |path: &str| folder.path().join(path);
    let manifest = fs::read_to_string(path("Cargo.toml")).expect("a file");
    fs::write(
        path("Cargo.toml"),
        manifest + "\n[lib]\nname = \"lights\"\n",
    )
    .expect("a file");
    add_kind(folder.path(), &["--reconciler"]).expect("a kind");
    for (file, expected) in [
        ("tests/cases.rs", "= lights::second::simulator::start()"),
        ("tests/second.rs", "use lights::"),
    ] {
        let text = fs::read_to_string(path(file)).expect("a file");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_failure_leaves_all_files_as_they_were() {
    let folder = tempfile::tempdir().expect("a folder");
    for (file, content, expected) in [
        (
            "tests/cases/second-two-lines.yaml",
            Some(""),
            "exists; delete it",
        ),
        ("src/second/api.rs", Some(""), "exists; delete it"),
        ("src/lib.rs", Some("pub mod lamp;\n"), "add by hand"),
        (
            "src/lib.rs",
            Some("mod second {}\n"),
            "`second` exists already",
        ),
        ("src/lib.rs", Some("fn (\n"), "src/lib.rs:1: "),
        ("src/lib.rs", None, "src/lib.rs: "),
        (
            "Cargo.toml",
            Some("[package]\nname = \"a\"\n"),
            "add by hand",
        ),
        ("Cargo.toml", Some("[package\n"), "Cargo.toml:1: "),
        (
            "Cargo.toml",
            Some("[workspace]\n"),
            "the package has no name",
        ),
        ("tests/cases.rs", Some("fn main() {}\n"), "add by hand"),
        ("tests/cases.rs", None, "tests/cases.rs: "),
    ] {
        let folder = folder.path().join(expected.replace('/', "-"));
        repository(&folder);
        let path = folder.join(file);
        match content {
            Some(content) => {
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                fs::write(&path, content).expect("a file");
            }
            None => fs::remove_file(&path).expect("a file"),
        }
        let before = contents(&folder);
        let error = add_kind(&folder, &["--reconciler"]).expect_err(file);
        assert!(error.contains(expected), "{file}: {error}");
        assert_eq!(contents(&folder), before, "{file}");
        fs::remove_dir_all(&folder).expect("a folder");
    }
}

#[test]
fn a_file_that_stays_the_same_is_not_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    repository(folder.path());
    add_kind(folder.path(), &["--reconciler"]).expect("a kind");
    let args = [
        "add",
        "kind",
        "Third",
        "--group",
        "demo.example.com",
        "--reconciler",
    ];
    let added = crate::add(&AddArgs::parse_from(args), folder.path()).expect("a kind");
    let path = |path: &str| folder.path().join(path);
    assert!(added.files.contains(&path("src/lib.rs")));
    assert!(!added.files.contains(&path("Cargo.toml")), "{added:?}");
}

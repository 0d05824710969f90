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

/// The second file cannot be written after the first one is replaced, as its path is that of a folder.
#[test]
fn files_that_were_replaced_are_restored_in_content_and_permissions() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("a.txt"), "before").expect("a file");
    let read_only = fs::metadata(path("a.txt")).expect("a file");
    let mut read_only = read_only.permissions();
    read_only.set_readonly(true);
    fs::set_permissions(path("a.txt"), read_only.clone()).expect("a file");
    let change = || {
        let mut changes = Changes::default();
        changes.replace(path("a.txt"), "before".to_owned(), "after".to_owned());
        changes
    };
    let assert_is = |content: &str| {
        let text = fs::read_to_string(path("a.txt")).expect("a file");
        let metadata = fs::metadata(path("a.txt")).expect("a file");
        assert_eq!(
            (&*text, metadata.permissions()),
            (content, read_only.clone())
        );
        let names = fs::read_dir(folder.path()).expect("a folder");
        let names = names.map(|entry| entry.expect("an entry").file_name());
        assert!(
            names
                .filter(|name| name != "a.txt" && name != "c.txt")
                .count()
                == 0
        );
    };
    fs::create_dir(path("c.txt")).expect("a folder");
    let mut failing = change();
    failing.replace(path("c.txt"), String::new(), "c".to_owned());
    let mut folders = Vec::new();
    let staged = failing.stage(&mut folders).expect("all contents");
    let mut results = staged.into_iter().map(Staged::finish);
    let replaced = results.next().expect("a step").expect("a replacement");
    let error = results.next().expect("a step").map(drop);
    assert!(matches!(error, Err(Error::File { .. })), "{error:?}");
    let text = fs::read_to_string(path("a.txt")).expect("a file");
    assert_eq!(text, "after");
    assert!(undo(vec![replaced], &folders).is_empty());
    drop(results);
    assert_is("before");

    failing.write(&Rustfmt::new(None)).expect_err("a folder");
    assert_is("before");
    let written = change().write(&Rustfmt::new(None)).expect("a change");
    assert_eq!(written, [path("a.txt")]);
    assert_is("after");
}

#[test]
fn all_files_that_cannot_be_restored_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let mut changes = Changes::default();
    for name in ["a.txt", "b.txt", "c.txt"] {
        fs::write(path(name), "before").expect("a file");
        changes.replace(path(name), "before".to_owned(), "after".to_owned());
    }
    let staged = changes.stage(&mut Vec::new()).expect("all contents");
    let done: Result<Vec<_>, _> = staged.into_iter().map(Staged::finish).collect();
    for name in ["a.txt", "c.txt"] {
        fs::remove_file(path(name)).expect("a file");
        fs::create_dir(path(name)).expect("a folder");
    }
    let files = undo(done.expect("changes"), &[]);
    assert_eq!(fs::read_to_string(path("b.txt")).expect("a file"), "before");
    let cause = Box::new(Error::Exists(path("d.txt")));
    let error = Error::NotRestored { files, cause }.to_string();
    for part in ["a.txt is changed", "c.txt is changed", "d.txt exists"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_file_of_another_process_is_neither_replaced_nor_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let mut changes = Changes::default();
    changes.create(path("new/a.txt"), "a".to_owned());
    changes.create(path("new/b.txt"), "b".to_owned());
    let mut folders = Vec::new();
    let staged = changes.stage(&mut folders).expect("all contents");
    fs::write(path("new/b.txt"), "other").expect("a file");
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for step in staged {
        match step.finish() {
            Ok(step) => done.push(step),
            Err(error) => failed.push(error.to_string()),
        }
    }
    assert_eq!((done.len(), failed.len()), (1, 1), "{failed:?}");
    assert!(undo(done, &folders).is_empty());
    assert!(!path("new/a.txt").exists());
    let text = fs::read_to_string(path("new/b.txt")).expect("a file");
    assert_eq!(text, "other");
}

#[cfg(unix)]
#[test]
fn a_link_stays_one_and_a_new_file_has_the_usual_permissions() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("other")).expect("a folder");
    fs::write(path("other/a.txt"), "before").expect("a file");
    std::os::unix::fs::symlink("other/a.txt", path("a.txt")).expect("a link");
    let mut changes = Changes::default();
    changes.replace(path("a.txt"), "before".to_owned(), "after".to_owned());
    changes.create(path("new.txt"), String::new());
    changes.write(&Rustfmt::new(None)).expect("changes");
    let target = fs::read_link(path("a.txt")).expect("a link");
    assert_eq!(target, Path::new("other/a.txt"));
    let text = fs::read_to_string(path("other/a.txt")).expect("a file");
    assert_eq!(text, "after");
    let permissions = |name| fs::metadata(path(name)).expect("a file").permissions();
    assert_eq!(permissions("new.txt"), permissions("other/a.txt"));
}

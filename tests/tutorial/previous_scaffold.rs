//! Repository as an earlier release has created it: what an upgrade of the crates asks of its author.
//!
//! `previous-scaffold` is never changed to make this test pass. If it fails, the change of the crates breaks the operators of
//! authors: the release notes must say what they have to change, and `CHANGES` has the same. After a release, the folder is
//! created again with it, and `CHANGES` becomes empty.

use std::fs;

use crate::workspace::Workspace;

const NAME: &str = "note-operator";

/// Change that a release asks of an author: in a file, this text becomes the other.
struct Change {
    path: &'static str,
    from: &'static str,
    to: &'static str,
}

/// Changes that the release notes name.
const CHANGES: [Change; 2] = [
    Change {
        path: "src/lib.rs",
        from: "use lockstep_sdk::{Operator,",
        to: "use lockstep_sdk::{Audience, Operator,",
    },
    Change {
        path: "src/lib.rs",
        from: "Operator::of(note::operator)",
        to: "Operator::of(Audience::Tenants, note::operator)",
    },
];

const TEST: &str = "cargo test --workspace --bin note-operator --test cases --test note";

#[test]
fn the_repository_of_an_earlier_release_needs_only_the_changes_of_the_release_notes() {
    let workspace = Workspace::lock();
    workspace.copy_from("tests/tutorial/previous-scaffold", NAME);
    for Change { path, from, to } in CHANGES {
        let path = workspace.path(NAME, path);
        let text = fs::read_to_string(&path).expect("a file");
        assert!(text.contains(from), "{from}");
        fs::write(&path, text.replacen(from, to, 1)).expect("a file");
    }
    let tested = workspace.shell(NAME, TEST);
    let printed = String::from_utf8_lossy(&tested.stdout);
    assert!(tested.status.success(), "{printed}");
    // Among others, of what is deprecated.
    assert!(!printed.contains("warning"), "{printed}");
    for test in [
        "every_case_gets_the_expected_result_everywhere",
        "the_text_is_stored_in_a_config_map",
    ] {
        let passed = format!("test {test} ... ok");
        assert!(printed.contains(&passed), "{test}: {printed}");
    }
}

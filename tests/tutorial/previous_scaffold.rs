//! Repository as an earlier release has created it: what an upgrade of the crates asks of its author.
//!
//! `previous-scaffold` is never changed to make this test pass. If it fails, the change of the crates breaks the operators of
//! authors: the release notes must say what they have to change. After a release, the folder is created again with it.

use crate::workspace::Workspace;

const NAME: &str = "note-operator";

const TEST: &str = "cargo test --workspace --bin note-operator --test cases --test note";

#[test]
fn the_repository_of_an_earlier_release_needs_no_change() {
    let workspace = Workspace::lock();
    workspace.copy_from("tests/tutorial/previous-scaffold", NAME);
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

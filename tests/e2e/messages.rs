//! Messages that a new user meets first: `lockstep check` on each file of `tests/messages`, with its whole output.
//!
//! `LOCKSTEP_UPDATE=1` writes the outputs. Read them as a new user would before you commit them.

use std::fs;

use crate::check::{lockstep, text};
use crate::env::root;

/// Outputs that are pinned for each file. The first is the one for people; the second one has all information on one
/// line, as the others for machines.
const OUTPUTS: [&str; 2] = ["full", "concise"];

#[test]
fn the_first_messages_of_a_new_user_are_unchanged() {
    let folder = root().join("tests/messages");
    let is_updated = std::env::var_os("LOCKSTEP_UPDATE").is_some();
    let mut inputs: Vec<_> = fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect();
    inputs.sort();
    assert_eq!(inputs.len(), 10, "{inputs:?}");
    for path in inputs {
        let input = fs::read_to_string(&path).expect("a file");
        let mut shown = String::new();
        for format in OUTPUTS {
            let output = lockstep(&["check", "--output", format, "-"], &input);
            assert_eq!(output.status.code(), Some(1), "{}", path.display());
            shown.push_str(&format!("$ lockstep check --output {format}\n"));
            shown.push_str(text(&output.stdout).trim_end());
            shown.push_str("\n\n");
        }
        let shown = format!("{}\n", shown.trim_end());
        let expected = path.with_extension("txt");
        if is_updated {
            fs::write(&expected, &shown).expect("the output is written");
        }
        let expected = fs::read_to_string(&expected).unwrap_or_default();
        assert_eq!(shown, expected, "{}", path.display());
    }
}

/// Hints of the compiler and suggestions are part of every output.
#[test]
fn every_output_contains_the_hints_of_the_compiler() {
    let input = fs::read_to_string(root().join("tests/messages/vrl-type-error.yaml"));
    let input = input.expect("a file");
    for format in ["full", "concise", "json", "github", "sarif", "junit"] {
        let output = text(&lockstep(&["check", "--output", format, "-"], &input).stdout);
        for hint in [
            "change this to an infallible assignment",
            ".count, err = to_int(.message)",
            "did you mean",
            "downcase",
        ] {
            assert!(output.contains(hint), "{format}: {hint}: {output}");
        }
        let position = |text: &str| output.find(text).expect("an error");
        assert!(
            position("call to undefined function") < position("unhandled fallible assignment"),
            "errors are in the order of the lines: {format}: {output}"
        );
    }
}

//! The tutorial is correct: its repository is created, against the library crates as they are packaged, its files are
//! changed and its commands are run, and they print the output that it shows. So is a repository whose operator is a
//! reconciler, with everything that can be added to it, and one that an earlier release has created.

mod blocks;
mod packages;
mod previous_scaffold;
mod reconciler;
mod workspace;

use std::fs;
use std::sync::MutexGuard;

use regex::Regex;

use crate::blocks::{Block, Step, blocks};
use crate::workspace::Workspace;

/// Folder of the repository, in the copy of the workspace.
const NAME: &str = "greeting-operator";

#[test]
fn following_the_tutorial_gives_the_output_that_it_shows() {
    let tutorial = Tutorial {
        workspace: Workspace::lock(),
    };
    let text = tutorial.workspace.file("docs/tutorial.md");
    let text = fs::read_to_string(text).expect("the tutorial");
    let (mut files, mut commands) = (0, 0);
    for block in blocks(&text) {
        match block {
            Block::File { path, content } => {
                files += 1;
                tutorial.shows(&path, &content);
            }
            Block::Change(change) => tutorial.apply(&change),
            Block::Console(session) => {
                for step in session {
                    commands += 1;
                    compare(&step, &tutorial.run(&step));
                }
            }
        }
    }
    assert!(
        files >= 5 && commands >= 4,
        "the blocks of the tutorial were not found"
    );
}

/// The tutorial while it is followed.
struct Tutorial {
    workspace: MutexGuard<'static, Workspace>,
}

impl Tutorial {
    /// Asserts that a file contains what the tutorial shows of it, or creates it.
    fn shows(&self, path: &str, content: &str) {
        let path = self.workspace.path(NAME, path);
        match fs::read_to_string(&path) {
            Ok(text) => assert!(
                text.contains(content),
                "{} does not contain:\n{content}",
                path.display()
            ),
            Err(_) => fs::write(path, content).expect("a file"),
        }
    }

    fn apply(&self, change: &str) {
        let command = format!("git apply - <<'END'\n{change}END");
        let applied = self.workspace.shell(NAME, &command);
        let printed = String::from_utf8_lossy(&applied.stdout);
        assert!(applied.status.success(), "{printed}{change}");
    }

    /// Output of a command.
    fn run(&self, step: &Step) -> String {
        if let Some(arguments) = step.command.strip_prefix(NEW) {
            return self.create(arguments);
        }
        let finds_something = step.output.starts_with("error[");
        let command = match step.command.strip_prefix(RUN) {
            Some(arguments) => format!("{BUILD} && ../target/debug/{NAME}{arguments}"),
            None => step.command.replace("cargo test", TEST),
        };
        let output = self.workspace.shell(NAME, &command);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let status = output.status;
        assert_eq!(
            status.success(),
            !finds_something,
            "`{command}`: {status}: {printed}"
        );
        printed
    }

    /// Creates the repository with the packaged crates, in the copy of the workspace.
    fn create(&self, arguments: &str) -> String {
        let folders = format!(" --directory ../{NAME} --local-crates .");
        let arguments = arguments.strip_suffix(&folders).expect("the folders");
        let arguments: Vec<_> = arguments.split_whitespace().collect();
        let printed = self.workspace.create(NAME, &arguments);
        let folder = self.workspace.path(NAME, "").display().to_string();
        printed.replace(&folder, "../greeting-operator")
    }
}

/// Commands of the tutorial that create the repository, and that build and run its program.
const NEW: &str = "cargo run --quiet -- new greeting-operator";
const RUN: &str = "cargo run --quiet --";

/// Builds the program with the features that its libraries have in tests: with those of `cargo run`, most of them would
/// be compiled again. Libraries have these features in a build of all packages with any test.
const BUILD: &str = "cargo build --quiet --workspace --bin greeting-operator --test greeting";

/// Runs the tests of the repository with the same features.
const TEST: &str = "cargo test --workspace --bin greeting-operator --test cases --test greeting";

/// Compares the output of a command with the one shown, in which a line `...` matches any lines.
fn compare(step: &Step, printed: &str) {
    let (shown, printed_now) = (format!("\n{}\n", still(&step.output)), still(printed));
    let pieces: Vec<_> = shown.split("\n...\n").map(str::trim).collect();
    let mut rest = printed_now.as_str();
    let mut is_so = true;
    for piece in &pieces {
        let at = rest.find(piece);
        is_so &= at.is_some();
        rest = at.map_or("", |at| &rest[at + piece.len()..]);
    }
    // Without such a line the whole output must be equal.
    is_so &= pieces.len() > 1 || printed_now.trim() == shown.trim();
    assert!(is_so, "`{}` prints:\n{printed}", step.command);
}

/// The text without durations and temporary paths.
fn still(text: &str) -> String {
    let time = Regex::new(r"\d+\.\d s\b|\b\d+s\b|/tmp/[^ \n]*").expect("a pattern");
    let lines = text.lines().map(|line| time.replace_all(line, "_"));
    lines
        .map(|line| line.trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

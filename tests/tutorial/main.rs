//! The tutorial is correct: in a copy of this repository its files are written and its commands are run, and they
//! print the output that it shows.

mod blocks;
mod copy;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use regex::Regex;

use crate::blocks::{Block, Step, blocks};
use crate::copy::copied;

#[test]
fn following_the_tutorial_gives_the_output_that_it_shows() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let repository = repository.canonicalize().expect("the repository");
    let copy = copied(&repository, &PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    let text = fs::read_to_string(repository.join("docs/tutorial.md")).expect("the tutorial");
    let mut commands = 0;
    for block in blocks(&text) {
        match block {
            Block::File { path, content } => add(&copy.join(path), &content),
            Block::Change(change) => apply(&copy, &change),
            Block::Console(session) => {
                for step in session {
                    commands += 1;
                    compare(&step, &run(&repository, &copy, &step));
                }
            }
        }
    }
    assert!(commands >= 5, "the commands of the tutorial were not found");
    is_echo(&copy, &repository);
}

/// Asserts that the operator of the tutorial is the smallest operator under another name.
fn is_echo(copy: &Path, repository: &Path) {
    let read = |path: PathBuf| fs::read_to_string(path).expect("an operator");
    let built = read(copy.join("operators/greeting/src/lib.rs"));
    let echo = read(repository.join("operators/echo/src/lib.rs"));
    let renamed = built
        .replace("Greeting", "Echo")
        .replace("greetings", "echoes");
    assert_eq!(renamed.trim(), echo.trim());
}

/// Creates a file, or appends to it.
fn add(path: &Path, content: &str) {
    let folder = path.parent().expect("a folder");
    fs::create_dir_all(folder).expect("a folder");
    // Content that cargo generated is replaced.
    let before = fs::read_to_string(path).unwrap_or_default();
    let before = if before.contains("pub fn add(") {
        String::new()
    } else {
        before
    };
    let gap = if before.is_empty() { "" } else { "\n" };
    fs::write(path, format!("{before}{gap}{content}")).expect("a file");
}

fn apply(copy: &Path, change: &str) {
    let mut git = Command::new("git")
        .args(["apply", "-"])
        .current_dir(copy)
        // The copy lies inside a repository but does not belong to it.
        .env("GIT_CEILING_DIRECTORIES", copy.parent().expect("a folder"))
        .stdin(Stdio::piped())
        .spawn()
        .expect("git runs");
    let mut stdin = git.stdin.take().expect("git has a standard input");
    stdin
        .write_all(change.as_bytes())
        .expect("the process reads its input");
    drop(stdin);
    assert!(git.wait().expect("the process ends").success(), "{change}");
}

/// Command of the tutorial that builds and runs the program.
const RUN: &str = "cargo run --quiet --";

/// Builds the program with the features that its libraries have in tests: with those of `cargo run`, most of them would
/// be compiled again. Libraries have these features in a build of all packages with any test.
const BUILD: &str = "cargo build --quiet --workspace --bin lockstep --test fast_tests";

/// Output of a command, which reuses earlier build output.
fn run(repository: &Path, copy: &Path, step: &Step) -> String {
    let finds_something = step.output.starts_with("error[");
    let command = match step.command.strip_prefix(RUN) {
        Some(arguments) => format!("{BUILD} && target/debug/lockstep{arguments}"),
        None => step.command.clone(),
    };
    let output = Command::new("sh")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(copy)
        .env_clear()
        .envs(std::env::vars().filter(|(name, _)| !is_of_this_test(name)))
        .env("CARGO_TARGET_DIR", copy.join("target"))
        .env("CARGO_BUILD_BUILD_DIR", repository.join("target"))
        .env("CARGO_NET_OFFLINE", "true")
        .output()
        .expect("a shell");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let status = output.status;
    assert_eq!(
        status.success(),
        !finds_something,
        "`{command}`: {status}: {printed}"
    );
    printed
}

/// Returns true if cargo has set the variable for this test. It would cause everything to be built again that was
/// built without it.
fn is_of_this_test(name: &str) -> bool {
    const PREFIXES: [&str; 5] = ["BIN_", "CRATE_", "MANIFEST_", "PKG_", "TARGET_"];
    let of_cargo = name.strip_prefix("CARGO_");
    of_cargo.is_some_and(|name| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}

/// Compares the output of a command with the one shown, in which a line `...` matches any lines.
fn compare(step: &Step, printed: &str) {
    let (shown, printed_now) = (still(&step.output) + "\n", still(printed));
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

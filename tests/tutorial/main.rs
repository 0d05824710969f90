//! The tutorial is correct: its repository is created, against the library crates as they are packaged, its files are
//! changed and its commands are run, and they print the output that it shows.

mod blocks;
mod packages;
mod workspace;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use regex::Regex;

use crate::blocks::{Block, Step, blocks};
use crate::packages::Package;
use crate::workspace::{add_member, copied};

/// Folder of the repository, in the copy of the workspace.
const NAME: &str = "greeting-operator";

#[test]
fn following_the_tutorial_gives_the_output_that_it_shows() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let repository = repository.canonicalize().expect("the repository");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let copy = copied(&repository, &folder);
    let tutorial = Tutorial {
        packages: packages::replace(&repository, &copy, &folder),
        repository,
        copy,
    };
    let text = tutorial.repository.join("docs/tutorial.md");
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
    repository: PathBuf,
    /// Copy of the workspace, in which the library crates are as they are published.
    copy: PathBuf,
    packages: Vec<Package>,
}

impl Tutorial {
    fn path(&self, path: &str) -> PathBuf {
        self.copy.join(NAME).join(path)
    }

    /// Asserts that a file contains what the tutorial shows of it, or creates it.
    fn shows(&self, path: &str, content: &str) {
        let path = self.path(path);
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
        let mut git = Command::new("git")
            .args(["apply", "-"])
            .current_dir(self.path(""))
            // The copy lies inside a repository but does not belong to it.
            .env("GIT_CEILING_DIRECTORIES", &self.copy)
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

    /// Output of a command, which reuses earlier build output.
    fn run(&self, step: &Step) -> String {
        if let Some(arguments) = step.command.strip_prefix(NEW) {
            return self.create(arguments);
        }
        let finds_something = step.output.starts_with("error[");
        let command = match step.command.strip_prefix(RUN) {
            Some(arguments) => format!("{BUILD} && ../target/debug/{NAME}{arguments}"),
            None => step.command.replace("cargo test", TEST),
        };
        let output = Command::new("sh")
            .args(["-c", &format!("{{ {command}\n}} 2>&1")])
            .current_dir(self.path(""))
            .env_clear()
            .envs(std::env::vars().filter(|(name, _)| !is_of_this_test(name)))
            .env("CARGO_TARGET_DIR", self.copy.join("target"))
            .env("CARGO_BUILD_BUILD_DIR", self.repository.join("target"))
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

    /// Creates the repository with the packaged crates, in the copy of the workspace.
    fn create(&self, arguments: &str) -> String {
        let arguments: Vec<_> = arguments.split_whitespace().collect();
        let replaced = arguments.iter().map(|argument| match *argument {
            "." => self.copy.clone(),
            "../greeting-operator" => self.path(""),
            other => PathBuf::from(other),
        });
        let output = Command::new(env!("CARGO_BIN_EXE_lockstep"))
            .arg("new")
            .args(replaced)
            .output()
            .expect("the program runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        add_member(&self.copy, NAME, &self.packages);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let folder = self.path("").display().to_string();
        printed.replace(&folder, "../greeting-operator")
    }
}

/// Commands of the tutorial that create the repository, and that build and run its program.
const NEW: &str = "cargo run --quiet -- new";
const RUN: &str = "cargo run --quiet --";

/// Builds the program with the features that its libraries have in tests: with those of `cargo run`, most of them would
/// be compiled again. Libraries have these features in a build of all packages with any test.
const BUILD: &str = "cargo build --quiet --workspace --bin greeting-operator --test greeting";

/// Runs the tests of the repository with the same features.
const TEST: &str = "cargo test --workspace --bin greeting-operator --test cases --test greeting";

/// Returns true if cargo has set the variable for this test. It would cause everything to be built again that was
/// built without it.
fn is_of_this_test(name: &str) -> bool {
    const PREFIXES: [&str; 5] = ["BIN_", "CRATE_", "MANIFEST_", "PKG_", "TARGET_"];
    let of_cargo = name.strip_prefix("CARGO_");
    of_cargo.is_some_and(|name| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}

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

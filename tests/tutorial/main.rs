//! The tutorial does what it says: its files are written, its commands are run, and they print what it shows, in
//! a copy of this repository.

mod blocks;
mod copy;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use regex::Regex;

use crate::blocks::{Block, Said, blocks};
use crate::copy::copied;

#[test]
fn whoever_follows_it_gets_what_it_shows() {
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
                for said in session {
                    commands += 1;
                    compare(&said, &run(&repository, &copy, &said));
                }
            }
        }
    }
    assert!(commands >= 5, "what it shows was not found");
    is_echo(&copy, &repository);
}

/// What it builds is what the smallest operator is, under another name.
fn is_echo(copy: &Path, repository: &Path) {
    let read = |path: PathBuf| fs::read_to_string(path).expect("an operator");
    let built = read(copy.join("operators/greeting/src/lib.rs"));
    let echo = read(repository.join("operators/echo/src/lib.rs"));
    let renamed = built
        .replace("Greeting", "Echo")
        .replace("greetings", "echoes");
    assert_eq!(renamed.trim(), echo.trim());
}

/// Begins a file, or goes on with it.
fn add(path: &Path, content: &str) {
    let folder = path.parent().expect("a folder");
    fs::create_dir_all(folder).expect("a folder");
    // What cargo has put there to begin with is not what anybody writes.
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
        // The copy lies within a repository and is none of it.
        .env("GIT_CEILING_DIRECTORIES", copy.parent().expect("a folder"))
        .stdin(Stdio::piped())
        .spawn()
        .expect("git runs");
    let mut stdin = git.stdin.take().expect("it listens");
    stdin.write_all(change.as_bytes()).expect("it reads");
    drop(stdin);
    assert!(git.wait().expect("it ends").success(), "{change}");
}

/// What a command prints, with what has been built already.
fn run(repository: &Path, copy: &Path, said: &Said) -> String {
    let command = &said.command;
    let finds_something = said.output.starts_with("error[");
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

/// Whether cargo has set it for this test: what was built without it would be built again.
fn is_of_this_test(name: &str) -> bool {
    const PREFIXES: [&str; 5] = ["BIN_", "CRATE_", "MANIFEST_", "PKG_", "TARGET_"];
    let of_cargo = name.strip_prefix("CARGO_");
    of_cargo.is_some_and(|name| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}

/// Holds what was printed against what is shown; a line of dots stands for any lines.
fn compare(said: &Said, printed: &str) {
    let (shown, printed_now) = (still(&said.output) + "\n", still(printed));
    let pieces: Vec<_> = shown.split("\n...\n").map(str::trim).collect();
    let mut rest = printed_now.as_str();
    let mut is_so = true;
    for piece in &pieces {
        let at = rest.find(piece);
        is_so &= at.is_some();
        rest = at.map_or("", |at| &rest[at + piece.len()..]);
    }
    // Without dots there is nothing else.
    is_so &= pieces.len() > 1 || printed_now.trim() == shown.trim();
    assert!(is_so, "`{}` prints:\n{printed}", said.command);
}

/// The same without how long anything took.
fn still(text: &str) -> String {
    let time = Regex::new(r"\d+\.\d s\b|\b\d+s\b|/tmp/[^ \n]*").expect("a pattern");
    let lines = text.lines().map(|line| time.replace_all(line, "_"));
    lines
        .map(|line| line.trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

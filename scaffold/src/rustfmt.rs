//! Formatting of single files by rustfmt.

use std::io::Write as _;
use std::path::{Path, absolute};
use std::process::{Command, Stdio};

use crate::encoding::{has_crlf, split_mark, with_crlf};

/// rustfmt, as the author's package uses it.
pub(crate) struct Rustfmt {
    edition: Option<String>,
}

impl Rustfmt {
    /// Returns rustfmt for an edition. Without one, it is the first, as for Cargo.
    pub(crate) fn new(edition: Option<String>) -> Self {
        Self { edition }
    }

    /// Returns the content of a file formatted, and none without rustfmt. Lines end as they did, and a mark at the beginning
    /// stays.
    pub(crate) fn formatted(&self, path: &Path, text: &str) -> Option<String> {
        let (mark, input) = split_mark(text);
        let formatted = if has_crlf(input) {
            with_crlf(&self.run(path, &input.replace("\r\n", "\n"))?)
        } else {
            self.run(path, input)?
        };
        Some(format!("{mark}{formatted}"))
    }

    /// Returns the output of rustfmt. The text is passed without its path: rustfmt would format the modules of the file, too.
    fn run(&self, path: &Path, text: &str) -> Option<String> {
        let mut command = Command::new("rustfmt");
        command.args(["--edition", self.edition.as_deref().unwrap_or("2015")]);
        // The settings of rustfmt are those of the folder and its parents. A new file may have no folder yet.
        let path = absolute(path).ok()?;
        command.current_dir(path.ancestors().skip(1).find(|folder| folder.is_dir())?);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut rustfmt = command.stderr(Stdio::null()).spawn().ok()?;
        // rustfmt prints after it has read everything. The input is closed here.
        let written = rustfmt.stdin.take()?.write_all(text.as_bytes());
        let output = rustfmt.wait_with_output().ok()?;
        if written.is_err() || !output.status.success() {
            return None;
        }
        String::from_utf8(output.stdout).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_settings_and_the_edition_are_those_of_the_author() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("rustfmt.toml"), "hard_tabs = true\n").expect("a file");
        let formatted = |edition: &str, text: &str| {
            let rustfmt = Rustfmt::new(Some(edition.to_owned()));
            rustfmt.formatted(&folder.path().join("src/new.rs"), text)
        };
        let text = "use a::{A, b};\r\nfn a() { b(); }\r\n";
        let function = "\r\nfn a() {\r\n\tb();\r\n}\r\n";
        for (edition, import) in [("2024", "use a::{A, b};"), ("2015", "use a::{b, A};")] {
            assert_eq!(
                formatted(edition, text),
                Some(format!("{import}{function}"))
            );
        }
        assert_eq!(formatted("2024", "fn a( {"), None);
    }
}

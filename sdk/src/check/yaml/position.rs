//! Positions of libyaml as ranges of a text.

use libyaml_safer::Mark;

use crate::check::yaml::node::Span;

/// Text with the positions that libyaml reports of it.
#[derive(Clone, Copy)]
pub(crate) struct Positions<'a> {
    text: &'a str,
    /// Length of the byte order mark, which libyaml does not count.
    before: usize,
}

impl<'a> Positions<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let content = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self {
            text,
            before: text.len() - content.len(),
        }
    }

    /// Returns what libyaml reads of the text.
    pub(crate) fn content(self, text: &[u8]) -> &[u8] {
        &text[self.before..]
    }

    /// Returns the empty range at a position.
    pub(crate) fn at(self, mark: Mark) -> Span {
        let start = self.byte(mark);
        let line = if start < self.text.len() {
            mark.line + 1
        } else {
            // libyaml reads a line break after the text.
            self.text.matches('\n').count() as u64 + 1
        };
        Span {
            start,
            end: start,
            line,
        }
    }

    fn byte(self, mark: Mark) -> usize {
        let byte = usize::try_from(mark.index).map_or(usize::MAX, |index| index + self.before);
        self.text.floor_char_boundary(byte)
    }

    /// Returns the range of the value of a scalar between two positions: without its anchor and its tag, and without the first
    /// line of a block scalar.
    pub(crate) fn scalar(self, start: Mark, end: Mark, is_block: bool) -> Span {
        let at = self.at(start);
        let end = self.byte(end).max(at.start);
        let written = &self.text[at.start..end];
        let mut skipped = length_of_properties(written);
        if is_block {
            let content = written[skipped..].find('\n');
            let content = content.map_or(written.len(), |newline| skipped + newline);
            let blank = written[content..].trim_start_matches(['\n', '\r', ' ']);
            skipped = written.len() - blank.len();
        }
        let lines = written[..skipped].matches('\n').count();
        Span {
            start: at.start + skipped,
            end,
            line: at.line + lines as u64,
        }
    }
}

/// Returns the number of bytes of the anchor and the tag before a value.
fn length_of_properties(written: &str) -> usize {
    let mut rest = written;
    while rest.starts_with(['&', '!']) {
        let end = rest.find([' ', '\t', '\n', '\r']).unwrap_or(rest.len());
        rest = rest[end..].trim_start();
    }
    written.len() - rest.len()
}

#[cfg(test)]
mod tests {
    use crate::check::yaml::document::read_all;

    #[test]
    fn values_are_located_in_bytes_lines_and_columns() {
        let text = "# ä\na: &x !!str 1\nö: |\n\n  b\n  c\nd:\ne: *x\nf: 'g'\n";
        let documents = read_all(text).expect("a document");
        let shown = |path: &str| {
            let at = documents[0].locate(path, text);
            (at.line, at.column, text[at.span].to_owned())
        };
        for (path, expected) in [
            ("a", (2, 13, "1")),
            ("ö", (5, 3, "b")),
            ("d", (7, 3, "")),
            ("e", (8, 4, "*x")),
            ("f", (9, 4, "'g'")),
        ] {
            let (line, column, text) = expected;
            assert_eq!(shown(path), (line, column, text.to_owned()), "{path}");
        }
    }
}

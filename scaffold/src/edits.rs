//! Edits of a text of an author's: everything else in it keeps its form.

use std::ops::Range;

use crate::encoding::{has_crlf, with_crlf};

/// Text with the edits that it gets.
pub(crate) struct Edits<'a> {
    text: &'a str,
    edits: Vec<(Range<usize>, String)>,
}

impl<'a> Edits<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let edits = Vec::new();
        Self { text, edits }
    }

    /// Inserts a text at a position. Of several at the same position, the first comes first.
    pub(crate) fn insert(&mut self, position: usize, text: impl Into<String>) {
        self.replace(position..position, text);
    }

    /// Replaces a part of the text.
    pub(crate) fn replace(&mut self, part: Range<usize>, text: impl Into<String>) {
        self.edits.push((part, text.into()));
    }

    /// Returns the edited text. New lines end as those of the text do.
    pub(crate) fn apply(mut self) -> String {
        self.edits.sort_by_key(|(part, _)| part.start);
        let has_crlf = has_crlf(self.text);
        let (mut edited, mut end) = (String::new(), 0);
        for (part, text) in self.edits {
            edited += &self.text[end..part.start];
            edited += &if has_crlf { with_crlf(&text) } else { text };
            end = part.end;
        }
        edited + &self.text[end..]
    }
}

/// Returns the white space at the beginning of the line of a position.
pub(crate) fn indentation(text: &str, position: usize) -> &str {
    let line = &text[start_of_line(text, position)..];
    let end = line.find(|letter: char| !matches!(letter, ' ' | '\t'));
    &line[..end.unwrap_or(line.len())]
}

/// Returns true if only white space comes before a position in its line.
pub(crate) fn begins_line(text: &str, position: usize) -> bool {
    text[start_of_line(text, position)..position]
        .trim()
        .is_empty()
}

/// Returns the end of a comment that follows a position in the same line; without one, the position.
pub(crate) fn after_comment(text: &str, position: usize, start_of_comment: &str) -> usize {
    let line = rest_of_line(text, position);
    if line.trim_start().starts_with(start_of_comment) {
        position + line.trim_end().len()
    } else {
        position
    }
}

/// Returns the text from a position to the end of its line.
pub(crate) fn rest_of_line(text: &str, position: usize) -> &str {
    let rest = &text[position..];
    let line = rest.split('\n').next().unwrap_or_default();
    line.strip_suffix('\r').unwrap_or(line)
}

fn start_of_line(text: &str, position: usize) -> usize {
    text[..position].rfind('\n').map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_not_edited_stays() {
        let text = "a (\tb )  // c\n";
        let mut edits = Edits::of(text);
        edits.insert(13, "\nnew");
        edits.replace(4..5, "B");
        edits.insert(2, "1");
        edits.insert(2, "2");
        assert_eq!(edits.apply(), "a 12(\tB )  // c\nnew\n");
        assert_eq!(Edits::of(text).apply(), text);
    }

    #[test]
    fn new_lines_end_as_the_others() {
        let mut edits = Edits::of("a\r\nb\r\n");
        edits.insert(1, "\nx\r\ny");
        assert_eq!(edits.apply(), "a\r\nx\r\ny\r\nb\r\n");
    }

    #[test]
    fn a_comment_belongs_to_what_it_follows() {
        let text = "  a; // b  \r\n  c; d // e";
        assert_eq!(after_comment(text, 4, "//"), 9);
        assert_eq!(after_comment(text, 0, "//"), 0);
        assert_eq!(indentation(text, 4), "  ");
        assert!(begins_line(text, 2) && !begins_line(text, 5));
        let c = text.find("c;").expect("a position") + 2;
        assert_eq!(after_comment(text, c, "//"), c);
        assert_eq!(after_comment(text, c + 2, "//"), text.len());
    }
}

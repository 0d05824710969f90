//! Source location of a part of a scalar, for example inside a VRL program in a document.

use std::ops::Range;

use crate::check::diagnostic::SourceLocation;

/// Returns the location of some bytes of a scalar's value. Returns `None` if the text does not contain the value
/// literally, as in a folded scalar or one with escapes.
pub(crate) fn part(
    text: &str,
    scalar: &SourceLocation,
    value: &str,
    bytes: &Range<usize>,
) -> Option<SourceLocation> {
    let before = value.get(..bytes.start)?;
    let line_of_value = before.matches('\n').count();
    let in_line = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1);
    // An opening quote is not part of the value.
    let quoted = text.get(scalar.span.start..)?.starts_with(['"', '\'']);
    let begin = scalar.span.start + usize::from(quoted);
    let start_of_line = text[..begin].rfind('\n').map_or(0, |newline| newline + 1);
    let indentation = begin - start_of_line;
    let line = value.split('\n').nth(line_of_value).unwrap_or_default();
    let at = if line_of_value == 0 {
        begin
    } else {
        let mut lines = text[start_of_line..].split_inclusive('\n');
        let skipped: usize = lines.by_ref().take(line_of_value).map(str::len).sum();
        let start = start_of_line + skipped;
        let is_indented = text
            .get(start..start + indentation)?
            .bytes()
            .all(|byte| byte == b' ');
        is_indented.then_some(start + indentation)?
    };
    if !text.get(at..)?.starts_with(line) {
        return None;
    }
    let start = at + in_line;
    let length = (bytes.end - bytes.start).min(line.len() - in_line);
    let start_of_line = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    Some(SourceLocation {
        line: scalar.line + line_of_value as u64,
        column: text.get(start_of_line..start)?.chars().count() as u64 + 1,
        span: start..start + length,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the location of a part of the value, which begins at the byte `begins` of the text.
    fn found(
        text: &str,
        begins: usize,
        value: &str,
        part_of_it: &str,
    ) -> Option<(u64, u64, String)> {
        let line = text[..begins].matches('\n').count() as u64 + 1;
        let scalar = SourceLocation {
            line,
            column: 1,
            span: begins..begins,
        };
        let start = value.find(part_of_it).expect("a part");
        let location = part(text, &scalar, value, &(start..start + part_of_it.len()))?;
        Some((
            location.line,
            location.column,
            text[location.span].to_owned(),
        ))
    }

    #[test]
    fn a_part_of_a_block_scalar_is_located_on_its_line() {
        let text = "a:\n  source: |\n    .a = 1\n    .ä = to_int(.b)\n\n    .c = 2\n";
        let begins = text.find(".a").expect("the value");
        let value = ".a = 1\n.ä = to_int(.b)\n\n.c = 2\n";
        let is = |line, column, text: &str| Some((line, column, text.to_owned()));
        assert_eq!(found(text, begins, value, "1"), is(3, 10, "1"));
        assert_eq!(
            found(text, begins, value, "to_int(.b)"),
            is(4, 10, "to_int(.b)")
        );
        assert_eq!(found(text, begins, value, ".c"), is(6, 5, ".c"));
    }

    #[test]
    fn a_part_of_a_one_line_scalar_is_located_after_its_quote() {
        let text = "source: '.a = x'";
        assert_eq!(found(text, 8, ".a = x", "x"), Some((1, 15, "x".to_owned())));
        let text = "source: .a = x";
        assert_eq!(found(text, 8, ".a = x", "x"), Some((1, 14, "x".to_owned())));
    }

    #[test]
    fn parts_of_folded_or_escaped_scalars_are_not_located() {
        assert_eq!(found("s: >\n  .a =\n  x\n", 7, ".a = x\n", "x"), None);
        assert_eq!(
            found("s: \".a = (1\\r\\n 2)\"", 3, ".a = (1\r\n 2)", "\r"),
            None
        );
        assert_eq!(found("s: \".a = \\\"x\\\"\"", 3, ".a = \"x\"", "x"), None);
    }
}

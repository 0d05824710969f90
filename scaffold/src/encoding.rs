//! Byte order mark and line breaks of a text file.

/// Mark at the beginning of a file, which is no part of its code.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns the byte order mark of a text, which may be empty, and the rest.
pub(crate) fn split_mark(text: &str) -> (&str, &str) {
    let code = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    text.split_at(text.len() - code.len())
}

/// Returns true if the lines of a text end with CRLF, as the first one shows.
pub(crate) fn has_crlf(text: &str) -> bool {
    let first = text.split_once('\n');
    first.is_some_and(|(first, _)| first.ends_with('\r'))
}

/// Returns a text whose lines end with CRLF.
pub(crate) fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_decides() {
        assert!(has_crlf("a\r\nb\n") && !has_crlf("a\nb\r\n") && !has_crlf("a"));
        assert_eq!(with_crlf("a\nb\r\n"), "a\r\nb\r\n");
        assert_eq!(split_mark("\u{feff}a"), ("\u{feff}", "a"));
        assert_eq!(split_mark("a"), ("", "a"));
    }
}

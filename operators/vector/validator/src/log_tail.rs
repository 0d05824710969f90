//! End of a log.

use std::collections::VecDeque;

/// Maximum number of lines.
const MAX_LINES: usize = 100;

/// Maximum size, in bytes.
const MAX_BYTES: usize = 16 << 10;

/// Last lines of a log, which may be of any length.
#[derive(Default)]
pub(crate) struct LogTail(VecDeque<u8>);

impl LogTail {
    /// Adds bytes at the end.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(MAX_BYTES);
        self.0.extend(&bytes[bytes.len() - kept..]);
        let excess = self.0.len().saturating_sub(MAX_BYTES);
        self.0.drain(..excess);
    }

    /// Returns the last lines.
    pub(crate) fn into_text(mut self) -> String {
        let text = String::from_utf8_lossy(self.0.make_contiguous()).into_owned();
        let text = text.trim_end();
        let start = text.rmatch_indices('\n').nth(MAX_LINES - 1);
        start.map_or(text, |(at, _)| &text[at + 1..]).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(parts: &[&[u8]]) -> String {
        let mut tail = LogTail::default();
        for part in parts {
            tail.push(part);
        }
        tail.into_text()
    }

    #[test]
    fn the_last_lines_are_kept() {
        assert_eq!(tail(&[b"a\nb", b"c\n"]), "a\nbc");
        let lines: Vec<_> = (0..150).map(|it| format!("line {it}\n")).collect();
        let parts: Vec<_> = lines.iter().map(String::as_bytes).collect();
        let last = tail(&parts);
        assert!(
            last.starts_with("line 50\n") && last.ends_with("line 149"),
            "{last}"
        );
        assert_eq!(last.lines().count(), MAX_LINES);
    }

    #[test]
    fn the_size_is_limited() {
        let long = vec![b'x'; 3 * MAX_BYTES];
        assert_eq!(tail(&[b"first\n", &long]).len(), MAX_BYTES);
        assert_eq!(tail(&[&long, b"\nlast"]).len(), MAX_BYTES);
    }
}

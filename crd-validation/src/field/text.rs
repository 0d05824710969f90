//! Maximum lengths of the parts of an error, in bytes. They apply while a text is written.

use std::borrow::Cow;
use std::fmt;

/// Maximum length of a name in a path. Names that are longer are shortened, with a fingerprint in place of the rest.
pub(crate) const MAX_NAME_BYTES: usize = 512;

/// Maximum length of a path.
pub(crate) const MAX_PATH_BYTES: usize = 4 << 10;

/// Maximum length of a value that is printed.
pub(crate) const MAX_VALUE_BYTES: usize = 1 << 10;

/// Maximum length of the detail of an error. The API server shortens the longest part of one, the result of a
/// `messageExpression`, to 5 KiB.
pub(crate) const MAX_DETAIL_BYTES: usize = 6 << 10;

/// Mark at the end of a text that was shortened.
const CUT: char = '…';

/// Text that ends at a maximum length. Once it is reached, writing fails, so that the writer stops.
pub(crate) struct BoundedText {
    text: String,
    max: usize,
    is_cut: bool,
}

impl BoundedText {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            text: String::new(),
            max,
            is_cut: false,
        }
    }

    /// Returns what was written. If something is missing, the text ends with a mark.
    pub(crate) fn finish(mut self) -> String {
        if self.is_cut {
            self.text.push(CUT);
        }
        self.text
    }
}

impl fmt::Write for BoundedText {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.is_cut {
            return Err(fmt::Error);
        }
        let room = self.max - self.text.len();
        if more.len() <= room {
            self.text.push_str(more);
            return Ok(());
        }
        self.text.push_str(&more[..more.floor_char_boundary(room)]);
        self.is_cut = true;
        Err(fmt::Error)
    }
}

/// Returns a text, shortened to a maximum length in bytes, with a mark at its end if something is missing.
#[must_use]
pub fn shortened(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(max.saturating_sub(CUT.len_utf8()));
    let mut start = text[..end].to_owned();
    start.push(CUT);
    Cow::Owned(start)
}

/// Returns a name, or the beginning of a long one with a fingerprint of all of it: different names remain different.
pub(crate) fn shortened_name(name: &str, max: usize) -> Cow<'_, str> {
    if name.len() <= max {
        return Cow::Borrowed(name);
    }
    Cow::Owned(Name::with_max(name, max).to_string())
}

/// Name in a path. A long one is read when the value is created, and not again for each path that contains it.
#[derive(Clone, Copy)]
pub(crate) struct Name<'a> {
    /// All of it, or the beginning of a long one.
    start: &'a str,
    /// Fingerprint of a long one.
    fingerprint: Option<u64>,
}

impl<'a> Name<'a> {
    pub(crate) fn new(name: &'a str) -> Self {
        Self::with_max(name, MAX_NAME_BYTES)
    }

    fn with_max(name: &'a str, max: usize) -> Self {
        if name.len() <= max {
            return Self {
                start: name,
                fingerprint: None,
            };
        }
        Self {
            start: &name[..name.floor_char_boundary(max / 2)],
            fingerprint: Some(name_fingerprint(name)),
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.start.is_empty()
    }
}

/// Prints a name, or the beginning of a long one with a fingerprint of all of it: different names remain different.
impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.start)?;
        match self.fingerprint {
            Some(fingerprint) => write!(f, "{CUT}{fingerprint:016x}"),
            None => Ok(()),
        }
    }
}

/// Fingerprint of a name, by eight bytes at a time: a name of megabytes may be part of many paths. Paths of ratcheted errors
/// are stored in the cluster, so the algorithm must never change.
fn name_fingerprint(name: &str) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    #[cfg(test)]
    HASHED_BYTES.set(HASHED_BYTES.get() + name.len());
    let chunks = name.as_bytes().chunks(8);
    chunks.fold(name.len() as u64, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (hash ^ u64::from_le_bytes(word))
            .wrapping_mul(PRIME)
            .rotate_left(29)
    })
}

#[cfg(test)]
thread_local! {
    /// Number of bytes of names whose fingerprint this thread has computed.
    static HASHED_BYTES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
pub(crate) fn hashed_bytes() -> usize {
    HASHED_BYTES.get()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    #[test]
    fn a_text_ends_at_its_maximum_length_and_the_writer_is_stopped() {
        let mut text = BoundedText::new(4);
        assert!(text.write_str("ab").is_ok());
        assert!(
            text.write_str("cé").is_err(),
            "the last character does not fit"
        );
        assert!(text.write_str("d").is_err());
        assert_eq!(text.finish(), "abc…");
        let mut text = BoundedText::new(4);
        assert!(text.write_str("abcd").is_ok());
        assert_eq!(text.finish(), "abcd");
    }

    #[test]
    fn long_names_that_differ_anywhere_remain_different() {
        let long = "k".repeat(MAX_NAME_BYTES);
        assert_eq!(shortened_name(&long, MAX_NAME_BYTES), long);
        let mut shown = Vec::new();
        for end in ["a", "b", "ab", "a\0"] {
            let name = format!("{long}{end}");
            shown.push(shortened_name(&name, MAX_NAME_BYTES).into_owned());
        }
        assert!(
            shown.iter().all(|name| name.len() < MAX_NAME_BYTES),
            "{shown:?}"
        );
        shown.sort();
        shown.dedup();
        assert_eq!(shown.len(), 4);
    }
}

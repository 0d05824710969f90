//! How bytes are read: JSON texts, one a line.

use std::str;

/// The first text and, if there is one, the second: an object and what it was.
///
/// Nothing comes back for bytes that are no text: the API server decodes them before anyone else.
pub fn texts(data: &[u8]) -> Option<(&str, Option<&str>)> {
    let text = str::from_utf8(data).ok()?;
    Some(match text.split_once('\n') {
        Some((first, second)) => (first, Some(second)),
        None => (text, None),
    })
}

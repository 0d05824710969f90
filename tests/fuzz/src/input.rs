//! Input format: JSON texts, one per line.

use std::str;

/// Returns the first text and the second one, if any: an object and its old version.
///
/// Returns `None` for bytes that are not UTF-8, because the API server decodes them before all other steps.
pub fn texts(data: &[u8]) -> Option<(&str, Option<&str>)> {
    let text = str::from_utf8(data).ok()?;
    Some(match text.split_once('\n') {
        Some((first, second)) => (first, Some(second)),
        None => (text, None),
    })
}

//! Names of Services and of their ports, made from other names.

use std::hash::Hasher;

use fnv::FnvHasher;

/// Maximum length of a DNS label (RFC 1123).
const MAX: usize = 63;

/// Returns the text as a DNS label that begins with a letter: other characters become `-`, and the end of a text that is
/// too long becomes a hash. A valid text stays as it is.
pub(crate) fn dns_label(text: &str) -> String {
    if is_dns_label(text) {
        return text.to_owned();
    }
    let valid = |c: char| {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            c
        } else {
            '-'
        }
    };
    let label: String = text.chars().map(valid).collect();
    let label = label.trim_matches('-');
    let mut label = if label.is_empty() {
        "x".to_owned()
    } else if label.starts_with(|c: char| c.is_ascii_digit()) {
        format!("x-{label}")
    } else {
        label.to_owned()
    };
    if label.len() <= MAX {
        return label;
    }
    let mut hasher = FnvHasher::default();
    hasher.write(text.as_bytes());
    let hash = format!("-{:016x}", hasher.finish());
    label.truncate(MAX - hash.len());
    format!("{}{hash}", label.trim_end_matches('-'))
}

/// Returns true if a text is a DNS label that begins with a letter (RFC 1035), as the name of a Service must be.
pub(crate) fn is_dns_label(text: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.len() <= MAX
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(is_valid)
        && !text.ends_with('-')
}

//! Kubernetes names: labels, subdomains, qualified names.
//! <https://kubernetes.io/docs/concepts/overview/working-with-objects/names/>.

const LABEL_MAX_BYTES: usize = 63;
const SUBDOMAIN_MAX_BYTES: usize = 253;

/// Returns true for a DNS label as in RFC 1123, in lower case.
pub(crate) fn is_dns1123_label(text: &str) -> bool {
    text.len() <= LABEL_MAX_BYTES && is_label(text)
}

/// Returns true for a DNS subdomain as in RFC 1123: labels separated by dots.
pub(crate) fn is_dns1123_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_MAX_BYTES && text.split('.').all(is_label)
}

/// Returns true for a DNS label as in RFC 1035, which starts with a letter.
pub(crate) fn is_dns1035_label(text: &str) -> bool {
    is_dns1123_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Returns true for the key of a label or annotation: a name with an optional subdomain and slash before it.
#[must_use]
pub fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_dns1123_subdomain(prefix) && is_name_part(name),
        None => is_name_part(text),
    }
}

/// Returns true for the value of a label: empty, or a name.
#[must_use]
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name_part(text)
}

/// Prepares a name prefix for validation. A prefix may end with a dash, because a generated suffix follows it.
/// Like the API server, this replaces the last two characters by one letter.
pub(crate) fn unprefixed(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let cut = rest.char_indices().next_back().map_or(0, |(at, _)| at);
            format!("{}a", &rest[..cut])
        }
        _ => text.to_owned(),
    }
}

fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    is_bounded(text, inner, |b| inner(b) || b == b'-')
}

fn is_name_part(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric();
    text.len() <= LABEL_MAX_BYTES
        && is_bounded(text, inner, |b| inner(b) || matches!(b, b'-' | b'_' | b'.'))
}

fn is_bounded(text: &str, ends: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [one] => ends(*one),
        [first, middle @ .., last] => {
            ends(*first) && ends(*last) && middle.iter().all(|b| inner(*b))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_names_are_distinguished_from_other_text() {
        assert!(is_dns1123_subdomain("a.b-c.9"));
        assert!(!is_dns1123_subdomain("a..b"));
        assert!(!is_dns1123_label("A"));
        assert!(!is_dns1035_label("9a"));
        assert!(is_qualified_name("example.com/My.Name_1"));
        assert!(!is_qualified_name("a/b/c"));
        assert!(is_label_value(""));
        assert!(!is_label_value("-a"));
        assert!(is_dns1123_subdomain(&unprefixed("ab-")));
    }
}

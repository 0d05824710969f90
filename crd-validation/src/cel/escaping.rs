//! Escaping of field names to CEL identifiers.

/// Returns the CEL identifier of a property, or `None` if its name cannot be escaped.
/// <https://kubernetes.io/docs/reference/using-api/cel/#escaping>
pub(crate) fn identifier(name: &str) -> Option<String> {
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if name.bytes().all(plain) && !name.contains("__") {
        return Some(name.to_owned());
    }
    if !name
        .bytes()
        .all(|b| plain(b) || matches!(b, b'.' | b'-' | b'/'))
    {
        return None;
    }
    let escaped = name
        .replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__");
    Some(escaped)
}

/// Returns the second name of a property whose identifier is an escaped reserved word, such as `namespace`: since Kubernetes 1.32,
/// an expression may select it as it is. The four words of CEL itself stay escaped.
pub(crate) fn unescaped(identifier: &str) -> Option<&str> {
    let word = identifier.strip_prefix("__")?.strip_suffix("__")?;
    RESERVED[WORDS_OF_CEL..].contains(&word).then_some(word)
}

/// Number of reserved words at the beginning of the list that CEL's grammar uses.
const WORDS_OF_CEL: usize = 4;

/// Reserved words, from <https://github.com/kubernetes/apiserver/blob/master/pkg/cel/escaping.go>.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_the_api_server_escapes_them() {
        for (name, expected) in [
            ("plain_1", Some("plain_1")),
            ("while", Some("__while__")),
            ("namespace", Some("__namespace__")),
            ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
            ("a__b", Some("a__underscores__b")),
            ("a__dash__b", Some("a__underscores__dash__underscores__b")),
            ("1a", None),
            ("", None),
            ("a b", None),
        ] {
            assert_eq!(identifier(name).as_deref(), expected, "{name}");
        }
        for (identifier, expected) in [
            ("__namespace__", Some("namespace")),
            ("__in__", None),
            ("__true__", None),
            ("namespace", None),
            ("a__dash__b", None),
        ] {
            assert_eq!(unescaped(identifier), expected, "{identifier}");
        }
    }
}

//! POSIX extended regular expressions, which librdkafka has the C library compile.

/// Returns why no C library compiles a pattern. What some of them compile is not reported.
pub(crate) fn wrong(pattern: &str) -> Option<&'static str> {
    let mut open = 0_usize;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.next().is_none() => return Some("ends with a backslash"),
            '[' if !closes_brackets(&mut characters) => return Some("has a `[` without `]`"),
            '(' => open += 1,
            // Some libraries take one without `(` literally.
            ')' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    (open > 0).then_some("has a `(` without `)`")
}

/// Skips a bracket expression. Returns false if it does not end. A `]` at its beginning belongs to it.
fn closes_brackets(characters: &mut std::str::Chars<'_>) -> bool {
    let rest = characters.as_str();
    let rest = rest.strip_prefix('^').unwrap_or(rest);
    let mut rest = rest.strip_prefix(']').unwrap_or(rest);
    loop {
        let Some(at) = rest.find(['[', ']']) else {
            return false;
        };
        let after = &rest[at + 1..];
        if rest[at..].starts_with(']') {
            *characters = after.chars();
            return true;
        }
        // A class, such as `[:alpha:]`, has brackets of its own.
        let class = [":", ".", "="]
            .iter()
            .find_map(|mark| Some((after.strip_prefix(mark)?, format!("{mark}]"))));
        rest = match class {
            Some((inner, end)) => match inner.split_once(end.as_str()) {
                Some((_, after)) => after,
                None => return false,
            },
            None => after,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::wrong;

    #[test]
    fn patterns_that_no_library_compiles_are_reported() {
        for pattern in [
            "^(",
            "^(a|(b)",
            "^[",
            "^[]",
            "^[^]",
            "^[a[:alpha:]",
            r"^a\",
            r"^(\)",
        ] {
            assert!(wrong(pattern).is_some(), "{pattern}");
        }
        for pattern in [
            "^a.*",
            "^(a|b)$",
            "^[(]a",
            "^[]a]",
            "^[^]a]",
            "^[[:alpha:](]x",
            r"^\(",
            r"^[\]a",
            "^a)",
            "^ä[ö]",
        ] {
            assert_eq!(wrong(pattern), None, "{pattern}");
        }
    }
}

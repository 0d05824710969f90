//! Removal of secret values from the log of a Pod.

/// Text in place of a value.
const HIDDEN: &str = "***";

/// Minimum length of a part of a value that is replaced on its own, in bytes.
const SHORTEST_PART: usize = 4;

/// Replaces the values in a text. Their words are replaced, too: an error may quote a part of a value, such as the
/// password of a URL.
pub(crate) fn redact<'a>(text: &str, values: impl Iterator<Item = &'a [u8]>) -> String {
    let values: Vec<_> = values.map(String::from_utf8_lossy).collect();
    let words = values.iter().flat_map(|value| {
        let words = value.split(|c: char| !c.is_alphanumeric());
        words.filter(|word| word.len() >= SHORTEST_PART)
    });
    let mut hidden: Vec<&str> = values.iter().map(AsRef::as_ref).chain(words).collect();
    hidden.retain(|it| !it.is_empty());
    // A value may contain another one.
    hidden.sort_by_key(|it| std::cmp::Reverse(it.len()));
    let replaced = |text: String, value: &&str| text.replace(*value, HIDDEN);
    hidden.iter().fold(text.to_owned(), replaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_their_words_are_replaced() {
        for (text, values, expected) in [
            ("key abc is wrong", vec!["abc"], "key *** is wrong"),
            (
                "invalid port `hunter2`",
                vec!["http://me:hunter2@host"],
                "invalid port `***`",
            ),
            ("abcd abc", vec!["abc", "abcd"], "*** ***"),
            ("nothing", vec!["", "other"], "nothing"),
        ] {
            let values = values.iter().map(|value| value.as_bytes());
            assert_eq!(redact(text, values), expected);
        }
    }
}

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
    let text = without_cut_value(text, &hidden);
    hidden.iter().fold(text, replaced)
}

/// Replaces the end of a value at the beginning of a text: the kubelet reports only the last 2,048 bytes of a log, and may
/// cut them off within a value.
fn without_cut_value(text: &str, values: &[&str]) -> String {
    let found = values.iter().filter_map(|value| {
        let ends = value.char_indices().map(|(start, _)| &value[start..]);
        let mut ends = ends.take_while(|end| end.len() >= SHORTEST_PART);
        ends.find(|end| text.starts_with(end)).map(str::len)
    });
    match found.max() {
        Some(length) => format!("{HIDDEN}{}", &text[length..]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_value_at_the_beginning_is_replaced() {
        for (text, expected) in [
            ("nter2@host` is no port", "***` is no port"),
            // The longest end counts: that of the whole value, or that of a word.
            ("ter2 failed", "*** failed"),
            ("r2 failed", "r2 failed"),
            ("x nter2 failed", "x nter2 failed"),
        ] {
            let values = ["http://me:hunter2@host".as_bytes(), "ähunter2".as_bytes()];
            assert_eq!(redact(text, values.into_iter()), expected);
        }
    }

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

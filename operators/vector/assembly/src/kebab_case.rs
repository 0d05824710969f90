//! Names in kebab case, as the operator of kaasops makes them.

/// Returns a name in lower case, with a dash between its words: `httpInput_a` becomes `http-input-a`.
#[must_use]
pub fn kebab_case(name: &str) -> String {
    let is_delimiter = |c: char| matches!(c, '-' | '_' | ' ' | '\t' | '\n' | '\r');
    let mut words = String::new();
    let mut before = None;
    let mut letters = name.trim().chars().peekable();
    while let Some(letter) = letters.next() {
        let is_before = |is: fn(&char) -> bool| before.as_ref().is_some_and(is);
        if is_delimiter(letter) {
            // A delimiter at the end is not replaced.
            if letters.peek().is_none() {
                words.push(letter);
            } else if !before.is_some_and(is_delimiter) {
                words.push('-');
            }
        } else {
            let is_last_of_capitals = is_before(char::is_ascii_uppercase)
                && letters.peek().is_some_and(char::is_ascii_lowercase);
            let begins_word = is_before(char::is_ascii_lowercase) || is_last_of_capitals;
            if letter.is_ascii_uppercase() && begins_word {
                words.push('-');
            }
            words.push(letter.to_ascii_lowercase());
        }
        before = Some(letter);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_separated_by_dashes() {
        for (name, expected) in [
            ("", ""),
            ("source", "source"),
            (
                "all-aggregator-vectorPipeline1",
                "all-aggregator-vector-pipeline1",
            ),
            ("internalMetricsSource", "internal-metrics-source"),
            ("HTTPServer", "http-server"),
            ("a_b c--d", "a-b-c-d"),
            ("Input", "input"),
            ("aB", "a-b"),
        ] {
            assert_eq!(kebab_case(name), expected);
        }
    }
}

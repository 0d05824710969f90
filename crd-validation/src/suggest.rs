//! Suggestions for misspelled names.

/// Returns the end of an error message about an unknown name: a question with the most similar known name, or
/// an empty string if none is similar.
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let meant = similar_names(name, known).into_iter().next();
    meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"))
}

/// Maximum length of a name for which suggestions are computed. Longer names are not typing errors, and the
/// comparison takes time.
const LONGEST_NAME: usize = 64;

/// Maximum number of known names that are compared.
const MAX_COMPARED: usize = 1000;

/// Returns the known names that differ only in case or by a few typing errors, the most similar first.
pub fn similar_names<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    if name.len() > LONGEST_NAME {
        return Vec::new();
    }
    let lower = name.to_lowercase();
    let length = name.chars().count();
    let allowed = (1 + length / 5).min(3);
    // Names with a very different length are skipped, because the time of a comparison grows with the length.
    let close = known.filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed);
    let close = close.take(MAX_COMPARED);
    let compared = close.map(|candidate| {
        let distance = strsim::damerau_levenshtein(&lower, &candidate.to_lowercase());
        (distance, candidate)
    });
    let mut meant: Vec<_> = compared
        // A name of which no character remains is another name.
        .filter(|(distance, _)| *distance <= allowed && *distance < length)
        .collect();
    meant.sort_by_key(|(distance, _)| *distance);
    meant.into_iter().map(|(_, candidate)| candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_name_is_distinguished_from_another_name() {
        let known = ["storage", "engine", "size"];
        let nearest = |name, known: &[&'static str]| {
            similar_names(name, known.iter().copied())
                .into_iter()
                .next()
        };
        assert_eq!(nearest("Storage", &known), Some("storage"));
        assert_eq!(nearest("sotrage", &known), Some("storage"));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(nearest("si", &known), None);
        assert_eq!(nearest("3", &["1", "2"]), None);
    }
}

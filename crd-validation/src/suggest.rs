//! Suggestions for misspelled names.

/// Returns the end of an error message about an unknown name: a question with the most similar known name, or
/// an empty string if none is similar.
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let meant = nearest(name, known);
    meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"))
}

/// Maximum length of a name for which suggestions are computed. Longer names are not typing errors, and the
/// comparison takes time.
const LONGEST_NAME: usize = 64;

/// Maximum number of known names that are compared.
const MAX_COMPARED: usize = 1000;

/// Returns the known name that differs only in case or by a few typing errors.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST_NAME {
        return None;
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
    let meant = compared.filter(|(distance, _)| *distance <= allowed);
    let nearest = meant.min_by_key(|(distance, _)| *distance);
    nearest.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_name_is_distinguished_from_another_name() {
        let known = ["storage", "engine", "size"];
        assert_eq!(nearest("Storage", known.into_iter()), Some("storage"));
        assert_eq!(nearest("sotrage", known.into_iter()), Some("storage"));
        assert_eq!(nearest("colour", known.into_iter()), None);
        assert_eq!(nearest("si", known.into_iter()), None);
    }
}

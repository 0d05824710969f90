//! What an author may have meant.

/// The end of a sentence to an author who has named what there is not: a question, if one of the known names was
/// probably meant, and else nothing.
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let meant = nearest(name, known);
    meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"))
}

/// Nothing that long is a slip of the pen, and comparing it would take time.
const LONGEST_NAME: usize = 64;

/// With how many names one is compared.
const MOST_COMPARED: usize = 1000;

/// The known name that is the same in other case, or a slip or two away.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST_NAME {
        return None;
    }
    let lower = name.to_lowercase();
    let length = name.chars().count();
    let allowed = (1 + length / 5).min(3);
    // What is much longer or shorter is not compared: that takes time for each of its letters.
    let close = known.filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed);
    let close = close.take(MOST_COMPARED);
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
    fn a_slip_is_told_from_another_name() {
        let known = ["storage", "engine", "size"];
        assert_eq!(nearest("Storage", known.into_iter()), Some("storage"));
        assert_eq!(nearest("sotrage", known.into_iter()), Some("storage"));
        assert_eq!(nearest("colour", known.into_iter()), None);
        assert_eq!(nearest("si", known.into_iter()), None);
    }
}

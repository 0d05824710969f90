//! Set of instance classes, written as `m7g(large,xlarge) t4g(micro)`.

mod nearest;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Prefix of the names of classes.
const PREFIX: &str = "db.";

/// Instance classes, by family and size. A set is kept as its text, so that a catalogue with many sets is read quickly.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClassSet {
    text: String,
    /// Positions of the families in the text, in the order of their names.
    families: Vec<usize>,
}

/// Text of a set of classes that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no set of classes, such as `m7g(large,xlarge) t4g(micro)`")]
pub struct InvalidClasses(String);

/// Size of a class, in the order of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size<'a>(&'a str);

impl Size<'_> {
    /// Returns a number that is greater for larger sizes. None if it is no size: a misspelled one is not the largest.
    fn rank(&self) -> Option<u32> {
        let size = self.0.split('.').next().unwrap_or_default();
        match size {
            "micro" => Some(0),
            "small" => Some(1),
            "medium" => Some(2),
            "large" => Some(3),
            "xlarge" => Some(4),
            _ => {
                let factor: u32 = size.strip_suffix("xlarge")?.parse().ok()?;
                Some(factor.saturating_add(4))
            }
        }
    }

    /// Returns a number that is greater for sizes that differ more: by their ranks, or else by their characters.
    fn difference(&self, other: &Size<'_>) -> usize {
        match (self.rank(), other.rank()) {
            (Some(rank), Some(other)) => rank.abs_diff(other) as usize,
            _ => strsim::osa_distance(self.0, other.0),
        }
    }
}

impl Ord for Size<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_rank = |size: &Self| size.rank().unwrap_or(u32::MAX);
        let ordering = by_rank(self).cmp(&by_rank(other));
        ordering.then_with(|| self.0.cmp(other.0))
    }
}

impl PartialOrd for Size<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl ClassSet {
    /// Returns true if no class is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns true if a class, such as `db.m7g.large`, is in the set.
    #[must_use]
    pub fn contains(&self, class: &str) -> bool {
        split(class).is_some_and(|(family, size)| {
            let sizes = self.sizes(family);
            sizes.is_some_and(|sizes| sizes.split(',').any(|known| known == size))
        })
    }

    /// Returns the sizes of a family, which are separated by commas.
    fn sizes(&self, family: &str) -> Option<&str> {
        let position = self.families.binary_search_by(|&start| {
            let known = self.text[start..].split('(').next();
            known.cmp(&Some(family))
        });
        let entry = &self.text[self.families[position.ok()?]..];
        let (_, sizes) = self::family(entry.split(' ').next()?)?;
        Some(sizes)
    }

    /// Returns all classes.
    pub fn iter(&self) -> impl Iterator<Item = String> {
        self.families().flat_map(|(family, sizes)| {
            let sizes = sizes.split(',');
            sizes.map(move |size| format!("{PREFIX}{family}.{size}"))
        })
    }

    /// Returns the families with their sizes, which are separated by commas.
    fn families(&self) -> impl Iterator<Item = (&str, &str)> {
        self.text.split(' ').filter_map(family)
    }

    /// Returns the classes that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let classes = self.iter().filter(|class| other.contains(class));
        classes.collect()
    }
}

/// Returns the family and the size of a class.
fn split(class: &str) -> Option<(&str, &str)> {
    class.strip_prefix(PREFIX)?.split_once('.')
}

/// Returns the name of a family and its sizes from `m7g(large,xlarge)`.
fn family(text: &str) -> Option<(&str, &str)> {
    let (name, sizes) = text.split_once('(')?;
    Some((name, sizes.strip_suffix(')')?))
}

impl<T: AsRef<str>> FromIterator<T> for ClassSet {
    /// Returns the set of these classes. One without a family and a size is left out: `db.serverless` has no size.
    fn from_iter<I: IntoIterator<Item = T>>(classes: I) -> Self {
        let classes: Vec<T> = classes.into_iter().collect();
        let mut families: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (family, size) in classes.iter().filter_map(|class| split(class.as_ref())) {
            families.entry(family).or_default().insert(Size(size));
        }
        let families = families.into_iter().map(|(family, sizes)| {
            let sizes: Vec<_> = sizes.into_iter().map(|size| size.0).collect();
            format!("{family}({})", sizes.join(","))
        });
        let text = families.collect::<Vec<_>>().join(" ");
        text.parse().expect("the text of a set is readable")
    }
}

impl fmt::Display for ClassSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for ClassSet {
    type Err = InvalidClasses;

    fn from_str(text: &str) -> Result<Self, InvalidClasses> {
        let mut families = Vec::new();
        let mut start = 0;
        for entry in text.split(' ').filter(|_| !text.is_empty()) {
            let (name, _) = family(entry).ok_or_else(|| InvalidClasses(text.to_owned()))?;
            families.push((name, start));
            start += entry.len() + 1;
        }
        families.sort_unstable();
        Ok(Self {
            text: text.to_owned(),
            families: families.into_iter().map(|(_, start)| start).collect(),
        })
    }
}

impl TryFrom<String> for ClassSet {
    type Error = InvalidClasses;

    fn try_from(text: String) -> Result<Self, InvalidClasses> {
        text.parse()
    }
}

impl From<ClassSet> for String {
    fn from(set: ClassSet) -> Self {
        set.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_read_as_it_is_written_with_sizes_in_their_order() {
        let classes = [
            "db.t4g.micro",
            "db.m7g.12xlarge",
            "db.m7g.large",
            "db.m7g.2xlarge",
        ];
        let set: ClassSet = classes.into_iter().chain(["db.serverless"]).collect();
        let text = "m7g(large,2xlarge,12xlarge) t4g(micro)";
        assert_eq!(set.to_string(), text);
        assert_eq!(text.parse::<ClassSet>().expect("a set"), set);
        assert!(classes.iter().all(|class| set.contains(class)));
        assert!(!set.contains("db.m7g.xlarge") && !set.contains("db.serverless"));
        assert!(!set.contains("db.m7.large") && !set.contains("db.m7gd.large"));
        assert!("m7g".parse::<ClassSet>().is_err() && "".parse::<ClassSet>().is_ok());
        let unordered: ClassSet = "t4g(micro) m7g(large,xlarge)".parse().expect("a set");
        assert!(unordered.contains("db.t4g.micro") && unordered.contains("db.m7g.xlarge"));
    }
}

//! Set of instance classes, written as `m7g(large,xlarge) t4g(micro)`.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Prefix of the names of classes.
const PREFIX: &str = "db.";

/// Maximum length of a name that is compared with classes. The schema allows 32 characters.
const LONGEST: usize = 64;

/// Maximum number of typing errors in a name that was meant as another one.
const MAX_EDITS: usize = 2;

/// Maximum number of classes that are suggested because they differ by one typing error. At most nine do in the shipped
/// catalogue: `db.mg.xlarge` can be that of each generation.
const MAX_BY_ONE_ERROR: usize = 12;

/// Instance classes, by family and size. A set is kept as its text, so that a catalogue with many sets is read quickly.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClassSet(String);

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

/// Numbers of the letters of a name. Most classes have other letters, and need no comparison in order.
struct Letters {
    counts: [u8; 256],
    length: usize,
}

impl Letters {
    fn new(name: &str) -> Self {
        let mut counts = [0_u8; 256];
        for letter in name.bytes() {
            let count = &mut counts[usize::from(letter)];
            *count = count.saturating_add(1);
        }
        let length = name.len();
        Self { counts, length }
    }

    /// Returns the number of typing errors that the different letters need: at most the number in fact.
    fn min_edits(&self, class: &str) -> usize {
        let mut left = self.counts;
        let mut common = 0;
        for letter in class.bytes() {
            let count = &mut left[usize::from(letter)];
            if *count > 0 {
                *count -= 1;
                common += 1;
            }
        }
        self.length.max(class.len()) - common
    }
}

/// Class as which another name can have been meant.
struct Misspelled {
    class: String,
    difference: Difference,
}

/// Difference between a name and a class: typing errors first, and then by what is more often meant.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Difference {
    edits: usize,
    is_of_other_family: bool,
    is_of_other_size: bool,
    generations: u32,
    sizes: usize,
}

impl Difference {
    fn between(name: &str, class: &str, edits: usize) -> Self {
        let (family, size) = split(name).unwrap_or_default();
        let (known_family, known_size) = split(class).unwrap_or_default();
        Self {
            edits,
            is_of_other_family: family != known_family,
            is_of_other_size: size != known_size,
            generations: generation(family).1.abs_diff(generation(known_family).1),
            sizes: Size(size).difference(&Size(known_size)),
        }
    }
}

impl ClassSet {
    /// Returns true if no class is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a class, such as `db.m7g.large`, is in the set.
    #[must_use]
    pub fn contains(&self, class: &str) -> bool {
        split(class).is_some_and(|(family, size)| {
            let mut families = self.families();
            let sizes = families.find(|(known, _)| *known == family);
            sizes.is_some_and(|(_, sizes)| sizes.split(',').any(|known| known == size))
        })
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
        self.0.split(' ').filter_map(family)
    }

    /// Returns the classes that are most similar to one that is not in the set: those that differ by a typing error or two,
    /// and then those of its family by their sizes, or those of its size by their families. They are `count`, or more if more
    /// differ by a single typing error: any of them can be meant.
    #[must_use]
    pub fn nearest(&self, class: &str, count: usize) -> Vec<String> {
        if class.len() > LONGEST {
            return Vec::new();
        }
        let misspelled = self.misspelled(class);
        let by_one_error = misspelled.iter().filter(|it| it.difference.edits == 1);
        let count = count.max(by_one_error.count().min(MAX_BY_ONE_ERROR));
        let mut nearest: Vec<String> = misspelled.into_iter().map(|it| it.class).collect();
        for class in self.comparable(class, count) {
            if !nearest.contains(&class) {
                nearest.push(class);
            }
        }
        nearest.truncate(count);
        nearest
    }

    /// Returns the classes as which a name can have been meant, the most similar first.
    fn misspelled(&self, class: &str) -> Vec<Misspelled> {
        let letters = Letters::new(class);
        let mut misspelled: Vec<_> = self
            .iter()
            .filter(|known| letters.min_edits(known) <= MAX_EDITS)
            .filter_map(|known| {
                let edits = strsim::osa_distance(class, &known);
                (edits <= MAX_EDITS).then(|| Misspelled {
                    difference: Difference::between(class, &known, edits),
                    class: known,
                })
            })
            .collect();
        misspelled.sort_by(|a, b| a.difference.cmp(&b.difference));
        misspelled
    }

    /// Returns the classes of the same family by their sizes, or those of the same size by their families.
    fn comparable(&self, class: &str, count: usize) -> Vec<String> {
        let Some((family, size)) = split(class) else {
            return Vec::new();
        };
        let difference = |other: &&str| Size(size).difference(&Size(other));
        let name = |family: &str, size: &str| format!("{PREFIX}{family}.{size}");
        if let Some((_, sizes)) = self.families().find(|(known, _)| *known == family) {
            let mut sizes: Vec<_> = sizes.split(',').collect();
            sizes.sort_by_key(difference);
            let sizes = sizes.into_iter().take(count);
            return sizes.map(|size| name(family, size)).collect();
        }
        // db.m4.large → db.m5.large: the same letter, and the next generation.
        let (letter, generation) = generation(family);
        let mut families: Vec<_> = self.families().collect();
        families.sort_by_key(|(other, _)| {
            let (other_letter, other) = self::generation(other);
            (other_letter != letter, other.abs_diff(generation))
        });
        let families = families.into_iter().filter_map(|(family, sizes)| {
            let nearest = sizes.split(',').min_by_key(difference)?;
            Some(name(family, nearest))
        });
        families.take(count).collect()
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

/// Returns the letters before the generation of a family, and the generation.
fn generation(family: &str) -> (&str, u32) {
    let start = family.find(|c: char| c.is_ascii_digit());
    let (letters, rest) = family.split_at(start.unwrap_or(family.len()));
    let end = rest.find(|c: char| !c.is_ascii_digit());
    let digits = &rest[..end.unwrap_or(rest.len())];
    (letters, digits.parse().unwrap_or_default())
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
        Self(families.collect::<Vec<_>>().join(" "))
    }
}

impl fmt::Display for ClassSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ClassSet {
    type Err = InvalidClasses;

    fn from_str(text: &str) -> Result<Self, InvalidClasses> {
        let is_valid = text.is_empty() || text.split(' ').all(|it| family(it).is_some());
        is_valid
            .then(|| Self(text.to_owned()))
            .ok_or_else(|| InvalidClasses(text.to_owned()))
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
        set.to_string()
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
        assert!("m7g".parse::<ClassSet>().is_err());
    }

    #[test]
    fn the_nearest_classes_have_the_family_or_else_the_size() {
        let set: ClassSet = "m5(large,xlarge,4xlarge) m7g(large,xlarge) t4g(micro,medium)"
            .parse()
            .expect("a set");
        assert_eq!(
            set.nearest("db.m5.2xlarge", 2),
            ["db.m5.xlarge", "db.m5.4xlarge"]
        );
        assert_eq!(
            set.nearest("db.m4.large", 2),
            ["db.m5.large", "db.m7g.large"]
        );
        assert_eq!(set.nearest("db.t3.small", 1), ["db.t4g.micro"]);
        assert_eq!(set.nearest("serverless", 1), Vec::<String>::new());
    }

    /// Returns the names that differ from a class by one typing error: a character is missing, is another one, or is
    /// exchanged with the next one.
    fn with_one_error(class: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for at in PREFIX.len()..class.len() {
            let (before, rest) = class.split_at(at);
            let (character, after) = rest.split_at(1);
            names.insert(format!("{before}{after}"));
            for other in ["q", "1"] {
                names.insert(format!("{before}{other}{after}"));
            }
            if !after.is_empty() {
                let (next, after) = after.split_at(1);
                names.insert(format!("{before}{next}{character}{after}"));
            }
        }
        names.remove(class);
        names
    }

    #[test]
    fn a_class_with_one_typing_error_is_suggested() {
        let all: ClassSet = crate::Catalogue::shipped()
            .engines
            .values()
            .flat_map(|offers| {
                let versions = offers.versions.values();
                let groups = versions.filter_map(|version| offers.offer_of(version));
                let with_versions = groups.flatten().map(|offer| &offer.classes);
                with_versions.chain(offers.regions.values())
            })
            .collect::<BTreeSet<_>>()
            .into_iter()
            .flat_map(ClassSet::iter)
            .collect();
        let mut tried = 0;
        for class in all.iter() {
            for name in with_one_error(&class) {
                if all.contains(&name) {
                    continue;
                }
                tried += 1;
                let suggested = all.nearest(&name, 3);
                assert!(
                    suggested.contains(&class),
                    "{name} was meant as {class}: {suggested:?}"
                );
                // One that comes before it is as similar.
                let edits = strsim::osa_distance(&name, &suggested[0]);
                assert!(
                    suggested[0] == class || edits == 1,
                    "{name} was meant as {class}: {suggested:?}"
                );
            }
        }
        assert!(tried > 10_000, "{tried} names were tried");
    }

    #[test]
    fn a_misspelled_size_is_not_the_largest_one() {
        let set: ClassSet = "m7g(large,xlarge,2xlarge,4xlarge,8xlarge,12xlarge,16xlarge)"
            .parse()
            .expect("a set");
        assert_eq!(set.nearest("db.m7g.larg", 1), ["db.m7g.large"]);
        assert_eq!(set.nearest("db.m7g.extralarge", 1), ["db.m7g.xlarge"]);
        assert_eq!(
            set.nearest(&"m".repeat(LONGEST + 1), 2),
            Vec::<String>::new()
        );
    }
}

//! Classes that are most similar to a name.

use super::{ClassSet, PREFIX, Size, split};

/// Maximum length of a name that is compared with classes. The schema allows 32 characters.
const LONGEST: usize = 64;

/// Maximum number of typing errors in a name that was meant as another one.
const MAX_EDITS: usize = 2;

/// Maximum number of classes that are suggested because they differ by one typing error. At most nine do in the shipped
/// catalogue: `db.mg.xlarge` can be that of each generation.
const MAX_BY_ONE_ERROR: usize = 12;

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
        if let Some(sizes) = self.sizes(family) {
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
}

/// Returns the letters before the generation of a family, and the generation.
fn generation(family: &str) -> (&str, u32) {
    let start = family.find(|c: char| c.is_ascii_digit());
    let (letters, rest) = family.split_at(start.unwrap_or(family.len()));
    let end = rest.find(|c: char| !c.is_ascii_digit());
    let digits = &rest[..end.unwrap_or(rest.len())];
    (letters, digits.parse().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

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

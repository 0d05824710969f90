//! Index of a catalogue by what a spec can name as its version.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use crate::catalogue::{Catalogue, ClassOffer, EngineOffers, VersionOffer};

/// Catalogue whose questions about a version take constant time, however many versions it has.
///
/// # Examples
///
/// ```
/// use rds_catalogue::IndexedCatalogue;
///
/// let shipped = IndexedCatalogue::shipped();
/// let postgres = shipped.engine("postgres").expect("the catalogue has PostgreSQL");
/// let versions = postgres.versions(Some("16")).expect("the catalogue has versions of PostgreSQL 16");
/// let offers = postgres.classes_of(versions).expect("their classes are known");
/// assert!(offers.iter().any(|offer| offer.classes.contains("db.m7g.large")));
/// assert!(postgres.versions(Some("1")).is_none());
/// ```
#[derive(Debug)]
pub struct IndexedCatalogue {
    catalogue: Arc<Catalogue>,
    engines: BTreeMap<String, VersionIndex>,
}

#[derive(Debug)]
struct VersionIndex {
    all: MatchingVersions,
    /// By their first components, such as `16` or `16.3`.
    by_prefix: HashMap<Box<str>, MatchingVersions>,
}

/// Properties of all versions that a version of a spec stands for.
#[derive(Debug)]
pub struct MatchingVersions {
    /// If true, RDS creates new instances with none of them.
    pub are_deprecated: bool,
    /// If true, none of them is offered with a class.
    pub have_no_classes: bool,
    /// Indices of the sets of classes, each once, with which those are offered of which RDS chooses one. Not set if that of one
    /// of them is unknown.
    offers: Option<Vec<usize>>,
}

/// Offers of an engine in an indexed catalogue.
#[derive(Clone, Copy, Debug)]
pub struct IndexedEngine<'a> {
    /// Offers.
    pub offers: &'a EngineOffers,
    index: &'a VersionIndex,
}

impl IndexedCatalogue {
    /// Creates the index of a catalogue.
    #[must_use]
    pub fn new(catalogue: Arc<Catalogue>) -> Self {
        let engines = catalogue.engines.iter();
        Self {
            engines: engines
                .map(|(name, engine)| (name.clone(), version_index(engine)))
                .collect(),
            catalogue,
        }
    }

    /// Returns the [shipped catalogue](Catalogue::shipped) with its index. Both are made when they are first needed.
    #[must_use]
    pub fn shipped() -> &'static Self {
        static SHIPPED: LazyLock<IndexedCatalogue> =
            LazyLock::new(|| IndexedCatalogue::new(Arc::clone(Catalogue::shipped())));
        &SHIPPED
    }

    /// Returns the catalogue.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Returns the offers of an engine.
    #[must_use]
    pub fn engine(&self, name: &str) -> Option<IndexedEngine<'_>> {
        Some(IndexedEngine {
            offers: self.catalogue.engines.get(name)?,
            index: self.engines.get(name)?,
        })
    }
}

impl<'a> IndexedEngine<'a> {
    /// Returns the versions that a version of a spec stands for: all, if the spec has none.
    #[must_use]
    pub fn versions(&self, wanted: Option<&str>) -> Option<&'a MatchingVersions> {
        match wanted {
            Some(prefix) => self.index.by_prefix.get(prefix),
            None => Some(&self.index.all),
        }
    }

    /// Returns the classes with their storage and capabilities with which versions are offered, if they are known. Of current
    /// and deprecated versions, the current ones count: RDS chooses one of them.
    #[must_use]
    pub fn classes_of(&self, versions: &MatchingVersions) -> Option<Vec<&'a ClassOffer>> {
        let sets = versions.offers.as_ref()?.iter();
        let offers: &'a EngineOffers = self.offers;
        Some(sets.flat_map(|&set| &offers.offers[set]).collect())
    }
}

fn version_index(engine: &EngineOffers) -> VersionIndex {
    let mut by_prefix: HashMap<&str, Vec<&VersionOffer>> = HashMap::new();
    for (name, version) in &engine.versions {
        for prefix in prefixes(name.as_str()) {
            by_prefix.entry(prefix).or_default().push(version);
        }
    }
    VersionIndex {
        all: matching(engine, &engine.versions.values().collect::<Vec<_>>()),
        by_prefix: by_prefix
            .into_iter()
            .map(|(prefix, versions)| (prefix.into(), matching(engine, &versions)))
            .collect(),
    }
}

/// Returns what a spec can have as its version for a version of the catalogue: its first component, the first two, and so on.
fn prefixes(version: &str) -> impl Iterator<Item = &str> {
    let dots = version.match_indices('.').map(|(at, _)| at);
    dots.chain([version.len()]).map(|end| &version[..end])
}

fn matching(engine: &EngineOffers, versions: &[&VersionOffer]) -> MatchingVersions {
    let are_deprecated = versions.iter().all(|version| version.deprecated);
    let mut offers = Some(Vec::new());
    for version in versions {
        // RDS chooses a current version.
        if version.deprecated && !are_deprecated {
            continue;
        }
        match (version.offer, &mut offers) {
            (Some(set), Some(sets)) if !sets.contains(&set) => sets.push(set),
            (None, _) => offers = None,
            _ => {}
        }
    }
    MatchingVersions {
        are_deprecated,
        have_no_classes: versions.iter().all(|version| {
            let classes = engine.offer_of(version);
            classes.is_some_and(<[_]>::is_empty)
        }),
        offers,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns true if all components of `wanted` are the first ones of `version`.
    fn stands_for(wanted: Option<&str>, version: &str) -> bool {
        let mut components = version.split('.');
        let mut wanted = wanted.into_iter().flat_map(|wanted| wanted.split('.'));
        wanted.all(|component| components.next() == Some(component))
    }

    #[test]
    fn the_index_says_the_same_as_a_search_through_all_versions() {
        let shipped = IndexedCatalogue::shipped();
        for name in shipped.catalogue().engines.keys() {
            let engine = shipped.engine(name).expect("the engine is indexed");
            let versions = &engine.offers.versions;
            let of_catalogue = versions
                .keys()
                .flat_map(|version| prefixes(version.as_str()));
            let others = ["", "1", "16.", ".", "16.3.4", "99", "8.0.4"];
            let wanted: BTreeSet<_> = of_catalogue.chain(others).map(Some).chain([None]).collect();
            assert!(wanted.len() > versions.len());
            for wanted in wanted {
                let expected: Vec<_> = versions
                    .iter()
                    .filter(|(name, _)| stands_for(wanted, name.as_str()))
                    .map(|(_, version)| version)
                    .collect();
                let found = engine.versions(wanted);
                assert_eq!(found.is_none(), expected.is_empty(), "{name} {wanted:?}");
                let Some(found) = found else { continue };
                let current: Vec<_> = expected.iter().filter(|it| !it.deprecated).collect();
                assert_eq!(found.are_deprecated, current.is_empty(), "{wanted:?}");
                let chosen: Vec<_> = if current.is_empty() {
                    expected.iter().collect()
                } else {
                    current
                };
                let classes = chosen.iter().map(|it| engine.offers.offer_of(it));
                let classes: Option<Vec<_>> = classes.collect();
                let all = |offers: &mut dyn Iterator<Item = &ClassOffer>| -> BTreeSet<String> {
                    offers.map(|offer| format!("{offer:?}")).collect()
                };
                let expected_classes = classes.map(|sets| all(&mut sets.into_iter().flatten()));
                let found_classes = engine.classes_of(found);
                let found_classes = found_classes.map(|offers| all(&mut offers.into_iter()));
                assert_eq!(found_classes, expected_classes, "{name} {wanted:?}");
            }
        }
    }

    #[test]
    fn classes_of_which_a_part_is_unknown_are_unknown() {
        let text = r#"{"format": 1, "origin": {"source": "a"}, "engines": {"mysql": {"date": "2026-01-01",
            "versions": {"8.0.1": {"deprecated": true}, "8.0.2": {"offer": 0}, "8.4.1": {"offer": 1}, "8.4.2": {}},
            "offers": [[], [{"classes": "m7g(large)"}]]}}}"#;
        let catalogue = Catalogue::load(text).expect("a catalogue");
        let indexed = IndexedCatalogue::new(Arc::new(catalogue));
        let mysql = indexed.engine("mysql").expect("an engine");
        let classes = |wanted| {
            let versions = mysql.versions(wanted).expect("versions");
            mysql.classes_of(versions).map(|classes| classes.len())
        };
        assert_eq!(classes(Some("8.0")), Some(0));
        assert_eq!(classes(Some("8.4.1")), Some(1));
        assert_eq!(classes(Some("8.4")), None);
        assert_eq!(classes(None), None);
        let versions = |wanted| mysql.versions(Some(wanted)).expect("versions");
        assert!(versions("8.0.1").are_deprecated && !versions("8.0").are_deprecated);
        assert!(versions("8.0.2").have_no_classes && !versions("8.0").have_no_classes);
    }
}

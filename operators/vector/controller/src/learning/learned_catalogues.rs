//! Content of the `ConfigMap` with learned catalogues.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use flate2::read::GzDecoder;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use lockstep_controller::MAX_CONFIG_MAP_BYTES;
use lockstep_vector_api::{Catalogue, VectorVersion};
use serde::{Deserialize, Serialize};

/// Annotation of the `ConfigMap`: for each learned version, the image and the time of its last use.
const LEARNED: &str = "lockstep.dev/learned-catalogues";

/// Maximum size of a catalogue, in bytes. That of Vector 0.57 has 290 KiB.
const MAX_CATALOGUE_BYTES: u64 = 16 << 20;

/// Catalogues that were learned, without those that users have added.
#[derive(Debug, Default)]
pub(crate) struct LearnedCatalogues {
    entries: BTreeMap<VectorVersion, LearnedEntry>,
    /// Size of what others have added, in bytes.
    foreign_bytes: usize,
}

/// Learned catalogue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LearnedEntry {
    pub(crate) content: Vec<u8>,
    pub(crate) origin: Origin,
}

/// Image that printed the schema, and the last time that a workload ran its version when a catalogue was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Origin {
    pub(crate) image: String,
    pub(crate) last_used: Timestamp,
}

/// There is no space for another catalogue.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error(
    "the ConfigMap has no space for another catalogue, as workloads run all the others; move some of them to the ConfigMap of the policy"
)]
pub(crate) struct NoSpace;

impl LearnedCatalogues {
    /// Reads the present `ConfigMap`.
    pub(crate) fn new(config_map: Option<ConfigMap>) -> Self {
        let Some(config_map) = config_map else {
            return Self::default();
        };
        let annotations = config_map.metadata.annotations.unwrap_or_default();
        let origins = annotations.get(LEARNED);
        let mut origins: BTreeMap<VectorVersion, Origin> = origins
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let texts = config_map.data.unwrap_or_default();
        let mut foreign_bytes = texts.iter().map(|(key, text)| key.len() + text.len()).sum();
        let mut entries = BTreeMap::new();
        for (key, ByteString(content)) in config_map.binary_data.unwrap_or_default() {
            match VectorVersion::parse(&key).filter(|it| key == self::key(*it)) {
                Some(version) if origins.contains_key(&version) => {
                    let origin = origins.remove(&version);
                    entries
                        .extend(origin.map(|origin| (version, LearnedEntry { content, origin })));
                }
                _ => foreign_bytes += key.len() + content.len(),
            }
        }
        Self {
            entries,
            foreign_bytes,
        }
    }

    /// Returns true if a version was learned, by a release of this program that writes catalogues as this one reads them.
    pub(crate) fn has(&self, version: VectorVersion) -> bool {
        let entry = self.entries.get(&version);
        entry.is_some_and(|entry| is_readable(&entry.content))
    }

    /// Adds a catalogue. Those of versions that no workload runs are removed if there is no space, that which was not used
    /// for longest first. Returns the removed versions.
    pub(crate) fn insert(
        &mut self,
        version: VectorVersion,
        entry: LearnedEntry,
        in_use: &BTreeSet<VectorVersion>,
    ) -> Result<Vec<VectorVersion>, NoSpace> {
        let now = entry.origin.last_used;
        for (_, used) in self
            .entries
            .iter_mut()
            .filter(|(it, _)| in_use.contains(it))
        {
            used.origin.last_used = now;
        }
        self.entries.insert(version, entry);
        let mut removed = Vec::new();
        while self.bytes() > MAX_CONFIG_MAP_BYTES {
            let unused = self.entries.iter();
            let unused = unused.filter(|(it, _)| **it != version && !in_use.contains(it));
            let oldest = unused.min_by_key(|(_, entry)| entry.origin.last_used);
            let oldest = *oldest.ok_or(NoSpace)?.0;
            self.entries.remove(&oldest);
            removed.push(oldest);
        }
        Ok(removed)
    }

    fn bytes(&self) -> usize {
        let entries = self.entries.iter();
        let own = entries.map(|(version, entry)| key(*version).len() + entry.content.len());
        self.foreign_bytes + own.sum::<usize>()
    }

    /// Returns the `ConfigMap` for server-side apply, with the learned catalogues only.
    pub(crate) fn to_config_map(&self) -> ConfigMap {
        let origins = self.entries.iter();
        let origins: BTreeMap<_, _> = origins.map(|(it, entry)| (it, &entry.origin)).collect();
        let origins = serde_json::to_string(&origins).unwrap_or_default();
        let contents = self.entries.iter();
        let contents =
            contents.map(|(version, entry)| (key(*version), ByteString(entry.content.clone())));
        ConfigMap {
            metadata: ObjectMeta {
                annotations: Some(BTreeMap::from([(LEARNED.to_owned(), origins)])),
                ..ObjectMeta::default()
            },
            binary_data: Some(contents.collect()),
            ..ConfigMap::default()
        }
    }
}

fn key(version: VectorVersion) -> String {
    format!("{version}.json.gz")
}

fn is_readable(content: &[u8]) -> bool {
    let mut text = String::new();
    let read = GzDecoder::new(content).take(MAX_CATALOGUE_BYTES);
    let mut read = read;
    read.read_to_string(&mut text).is_ok() && Catalogue::load(&text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learning::learned_catalogue::tests::version;

    fn entry(bytes: usize, seconds: i64) -> LearnedEntry {
        LearnedEntry {
            content: vec![1; bytes],
            origin: Origin {
                image: "vector:0.1.0".to_owned(),
                last_used: Timestamp::from_second(seconds).expect("a time"),
            },
        }
    }

    fn versions(catalogues: &LearnedCatalogues) -> Vec<String> {
        catalogues.entries.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_written_is_read_again_and_additions_of_users_are_not_written() {
        let mut catalogues = LearnedCatalogues::default();
        let learned = entry(10, 1);
        let removed = catalogues.insert(version("0.48"), learned, &BTreeSet::new());
        assert_eq!(removed, Ok(Vec::new()));
        let mut stored = catalogues.to_config_map();
        let data = stored.binary_data.get_or_insert_default();
        data.insert("0.40.json.gz".to_owned(), ByteString(vec![2; 20]));
        let again = LearnedCatalogues::new(Some(stored));
        assert_eq!(again.entries, catalogues.entries);
        assert_eq!(again.foreign_bytes, "0.40.json.gz".len() + 20);
        let written = again.to_config_map().binary_data;
        let written: Vec<_> = written.into_iter().flatten().map(|(key, _)| key).collect();
        assert_eq!(written, ["0.48.json.gz"]);
    }

    #[test]
    fn of_the_versions_that_no_workload_runs_the_least_recently_used_go() {
        let none = BTreeSet::new();
        let mut catalogues = LearnedCatalogues::default();
        for (name, seconds) in [("0.40", 3), ("0.41", 1), ("0.42", 2)] {
            let removed = catalogues.insert(version(name), entry(300_000, seconds), &none);
            assert_eq!(removed, Ok(Vec::new()));
        }
        let in_use = BTreeSet::from([version("0.41"), version("0.50")]);
        let removed = catalogues.insert(version("0.50"), entry(300_000, 4), &in_use);
        assert_eq!(removed, Ok(vec![version("0.42")]));
        assert_eq!(versions(&catalogues), ["0.40", "0.41", "0.50"]);
        // The version in use counts as used now.
        let removed = catalogues.insert(version("0.51"), entry(300_000, 5), &none);
        assert_eq!(removed, Ok(vec![version("0.40")]));
        let in_use = ["0.41", "0.50", "0.51", "0.52"].map(version).into();
        let removed = catalogues.insert(version("0.52"), entry(300_000, 6), &in_use);
        assert_eq!(removed, Err(NoSpace));
    }

    #[test]
    fn a_catalogue_of_another_release_of_this_program_is_learned_again() {
        let mut catalogues = LearnedCatalogues::default();
        let none = BTreeSet::new();
        assert!(!catalogues.has(version("0.57")));
        let removed = catalogues.insert(version("0.57"), entry(10, 1), &none);
        assert_eq!(removed, Ok(Vec::new()));
        assert!(!catalogues.has(version("0.57")), "it is no catalogue");
        let shipped = include_str!("../../../config/catalogue/0.57.json");
        let content = crate::gzip::compressed(shipped.as_bytes());
        let valid = LearnedEntry {
            content,
            ..entry(0, 2)
        };
        let removed = catalogues.insert(version("0.57"), valid, &none);
        assert_eq!(removed, Ok(Vec::new()));
        assert!(catalogues.has(version("0.57")));
    }
}

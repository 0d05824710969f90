//! Content and text of a catalogue.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::bounds::Bounds;
use crate::classes::ClassSet;
use crate::version::VersionName;

/// Version of the format. A catalogue of another format is not read.
pub const FORMAT: u32 = 1;

/// Offers of RDS.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Catalogue {
    format: u32,
    /// Source of the data.
    pub origin: Origin,
    /// Offers by engine.
    pub engines: BTreeMap<String, EngineOffers>,
}

/// Source of the data of a catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Origin {
    /// Source, such as a package and its version.
    pub source: String,
    /// AWS account, if the data is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// AWS region, if the data is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

impl Origin {
    /// Returns the origin of answers of RDS, of an account and region if they are known.
    #[must_use]
    pub fn of_answers(account: Option<String>, region: Option<String>) -> Self {
        Self {
            source: "RDS".to_owned(),
            account,
            region,
        }
    }
}

/// Offers of an engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EngineOffers {
    /// Day of the data of the engine, such as `2026-11-26`.
    pub date: String,
    /// Versions, in ascending order.
    pub versions: BTreeMap<VersionName, VersionOffer>,
    /// Sets of classes with which versions are offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<Vec<ClassOffer>>,
    /// Classes that each region offers, if the catalogue is about several regions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub regions: BTreeMap<String, ClassSet>,
}

/// Engine version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VersionOffer {
    /// If true, RDS creates no new instances with the version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
    /// Versions of the same major version to which an instance can be upgraded, separated by spaces. Unknown if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor_upgrades: Option<String>,
    /// Other major versions to which an instance can be upgraded, separated by spaces. Unknown if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major_upgrades: Option<String>,
    /// Index of the set of classes. Unknown if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<usize>,
}

impl VersionOffer {
    /// Returns all versions to which an instance can be upgraded, if they are known.
    #[must_use]
    pub fn targets(&self) -> Option<Vec<&str>> {
        let (minor, major) = (&self.minor_upgrades, &self.major_upgrades);
        let all = minor.iter().chain(major);
        let all = all.flat_map(|it| it.split_whitespace());
        (minor.is_some() || major.is_some()).then(|| all.collect())
    }
}

/// Classes with the same storage and capabilities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClassOffer {
    /// Classes.
    pub classes: ClassSet,
    /// Storage by its type. Unknown if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<BTreeMap<String, StorageOffer>>,
    /// Capabilities. Unknown if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<BTreeSet<Capability>>,
}

/// Bounds of a storage type. One that is missing is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StorageOffer {
    /// Size in GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_gib: Option<Bounds>,
    /// Provisioned IOPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<Bounds>,
    /// Provisioned IOPS for each GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops_per_gib: Option<Bounds>,
    /// Throughput in MiB per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_mibps: Option<Bounds>,
    /// Throughput in MiB per second for each of the IOPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_per_iops: Option<Bounds>,
    /// If true, RDS can increase the storage automatically.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub autoscaling: bool,
}

/// Capability of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Capability {
    /// Dedicated log volume.
    DedicatedLogVolume,
    /// Enhanced Monitoring.
    EnhancedMonitoring,
    /// Authentication with IAM.
    IamAuthentication,
    /// Standby in another availability zone.
    MultiAz,
    /// Performance Insights.
    PerformanceInsights,
    /// Encryption of the storage.
    StorageEncryption,
}

/// Reason why a text is no catalogue.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The text has another structure.
    #[error("is not a catalogue of RDS: {0}; write it with `lockstep rds catalogue`")]
    Structure(#[from] serde_json::Error),
    /// The text has the format of another release.
    #[error(
        "has format {0}, and this release reads format {FORMAT}; write it with `lockstep rds catalogue` again"
    )]
    Format(u32),
    /// A version refers to a set of classes that does not exist.
    #[error(
        "has a version {0} with classes that are missing; write it with `lockstep rds catalogue` again"
    )]
    Offer(String),
}

impl Catalogue {
    /// Creates a catalogue.
    #[must_use]
    pub fn new(origin: Origin, engines: BTreeMap<String, EngineOffers>) -> Self {
        Self {
            format: FORMAT,
            origin,
            engines,
        }
    }

    /// Returns the catalogue of all regions that is compiled into the program. It is read when it is first needed.
    ///
    /// # Panics
    ///
    /// Never: a test reads it.
    #[must_use]
    pub fn shipped() -> &'static Arc<Self> {
        static SHIPPED: LazyLock<Arc<Catalogue>> = LazyLock::new(|| {
            let text = include_str!("../shipped.json");
            Arc::new(Catalogue::load(text).expect("the shipped catalogue is valid"))
        });
        &SHIPPED
    }

    /// Reads a catalogue.
    ///
    /// # Errors
    ///
    /// The text is no catalogue of this format.
    pub fn load(text: &str) -> Result<Self, LoadError> {
        #[derive(Deserialize)]
        struct Header {
            format: u32,
        }
        let header: Header = serde_json::from_str(text)?;
        if header.format != FORMAT {
            return Err(LoadError::Format(header.format));
        }
        let catalogue: Self = serde_json::from_str(text)?;
        for engine in catalogue.engines.values() {
            let is_missing =
                |it: &VersionOffer| it.offer.is_some_and(|at| at >= engine.offers.len());
            if let Some((name, _)) = engine.versions.iter().find(|(_, it)| is_missing(it)) {
                return Err(LoadError::Offer(name.as_str().to_owned()));
            }
        }
        Ok(catalogue)
    }

    /// Returns the canonical text.
    ///
    /// # Panics
    ///
    /// Never: all keys are texts.
    #[must_use]
    pub fn text(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("a catalogue is representable as JSON") + "\n"
    }
}

impl EngineOffers {
    /// Returns the classes with their storage and capabilities with which a version is offered, if they are known.
    #[must_use]
    pub fn offer_of(&self, version: &VersionOffer) -> Option<&[ClassOffer]> {
        self.offers.get(version.offer?).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_catalogue_is_canonical_and_names_its_source() {
        let text = include_str!("../shipped.json");
        let shipped = Catalogue::load(text).expect("a catalogue");
        assert_eq!(shipped.text(), text);
        assert!(shipped.origin.source.starts_with("cfn-lint "));
        for (name, engine) in &shipped.engines {
            let versions = engine.versions.values();
            let (old, current): (Vec<_>, Vec<_>) = versions.partition(|it| it.deprecated);
            assert!(current.iter().any(|it| it.offer.is_some()), "{name}");
            assert!(old.iter().all(|it| it.offer.is_none()), "{name}");
            let classes = &engine.regions["eu-central-1"];
            assert!(classes.contains("db.m7g.large") && !classes.contains("db.m7g.micro"));
            // Sets are compared and searched as their texts.
            for set in engine.regions.values() {
                assert_eq!(*set, set.iter().collect());
            }
        }
    }

    #[test]
    fn what_is_no_catalogue_is_an_error_that_says_what_to_do() {
        for (text, expected) in [
            ("{", "is not a catalogue of RDS"),
            (
                r#"{"format": 2}"#,
                "has format 2, and this release reads format 1",
            ),
            (
                r#"{"format": 1, "origin": {"source": "a"}, "engines": {"mysql": {"date": "2026-01-01", "versions": {"8.4.6": {"offer": 0}}}}}"#,
                "has a version 8.4.6 with classes that are missing",
            ),
        ] {
            let error = Catalogue::load(text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{error}");
            assert!(error.contains("lockstep rds catalogue"), "{error}");
        }
    }
}

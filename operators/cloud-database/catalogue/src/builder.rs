//! Answers of RDS → catalogue.

use std::collections::{BTreeMap, BTreeSet};

use crate::answers::{EngineVersion, EngineVersions, OrderableOption, OrderableOptions};
use crate::bounds::Bounds;
use crate::catalogue::{
    Capability, Catalogue, ClassOffer, EngineOffers, Origin, StorageOffer, VersionOffer,
};
use crate::version::VersionName;

/// Builder of a catalogue from the answers of RDS, page by page, in any order.
pub struct CatalogueBuilder {
    origin: Origin,
    date: String,
    engines: BTreeMap<String, EngineBuilder>,
}

#[derive(Default)]
struct EngineBuilder {
    versions: BTreeMap<VersionName, VersionOffer>,
    options: BTreeMap<VersionName, BTreeMap<String, ClassOptions>>,
}

/// Options of a class.
#[derive(Default, PartialEq)]
struct ClassOptions {
    storage: BTreeMap<String, StorageOffer>,
    capabilities: BTreeSet<Capability>,
}

impl CatalogueBuilder {
    /// Creates a builder of a catalogue with the data of a day, such as `2026-11-26`.
    pub fn new(origin: Origin, date: impl Into<String>) -> Self {
        Self {
            origin,
            date: date.into(),
            engines: BTreeMap::new(),
        }
    }

    /// Adds engine versions.
    pub fn add_versions(&mut self, answer: EngineVersions) {
        for version in answer.versions {
            let engine = self.engines.entry(version.engine.clone()).or_default();
            let (name, offer) = offered(version);
            engine.versions.insert(name, offer);
        }
    }

    /// Adds options. One of a version that is not [added](Self::add_versions) is left out of the catalogue.
    pub fn add_options(&mut self, answer: OrderableOptions) {
        for option in answer.options {
            let engine = self.engines.entry(option.engine.clone()).or_default();
            let version = VersionName::new(option.engine_version.clone());
            let classes = engine.options.entry(version).or_default();
            let class = classes.entry(option.class.clone()).or_default();
            class.capabilities.extend(capabilities(&option));
            let storage = storage(&option);
            class.storage.insert(option.storage_type, storage);
        }
    }

    /// Returns the catalogue. An engine without versions is left out.
    #[must_use]
    pub fn finish(self) -> Catalogue {
        let Self {
            origin,
            date,
            engines,
        } = self;
        let engines = engines.into_iter();
        let engines = engines.filter(|(_, engine)| !engine.versions.is_empty());
        let engines = engines.map(|(name, engine)| (name, engine.finish(&date)));
        let engines = engines.collect();
        Catalogue::new(origin, engines)
    }
}

impl EngineBuilder {
    fn finish(mut self, date: &str) -> EngineOffers {
        let mut offers: Vec<Vec<ClassOffer>> = Vec::new();
        let has_options = !self.options.is_empty();
        for (version, offered) in &mut self.versions {
            if !has_options {
                continue;
            }
            let options = self.options.remove(version).unwrap_or_default();
            let offer = grouped(options);
            let known = offers.iter().position(|known| *known == offer);
            offered.offer = Some(known.unwrap_or_else(|| {
                offers.push(offer);
                offers.len() - 1
            }));
        }
        EngineOffers {
            date: date.to_owned(),
            versions: self.versions,
            offers,
            regions: BTreeMap::new(),
        }
    }
}

/// Returns the classes in groups with the same options, in the order of their first classes.
fn grouped(options: BTreeMap<String, ClassOptions>) -> Vec<ClassOffer> {
    let mut groups: Vec<(ClassOptions, Vec<String>)> = Vec::new();
    for (class, options) in options {
        match groups.iter_mut().find(|(known, _)| *known == options) {
            Some((_, classes)) => classes.push(class),
            None => groups.push((options, vec![class])),
        }
    }
    let groups = groups.into_iter().map(|(options, classes)| ClassOffer {
        classes: classes.into_iter().collect(),
        storage: Some(options.storage),
        capabilities: Some(options.capabilities),
    });
    let mut groups: Vec<_> = groups.filter(|group| !group.classes.is_empty()).collect();
    groups.sort_by(|a, b| a.classes.cmp(&b.classes));
    groups
}

fn offered(version: EngineVersion) -> (VersionName, VersionOffer) {
    let EngineVersion {
        engine,
        engine_version,
        status,
        targets,
    } = version;
    let targets = |is_major: bool| {
        let targets = targets.iter().filter(|target| {
            let other = target.engine.as_ref().is_some_and(|it| *it != engine);
            !other && target.is_major_version_upgrade == is_major
        });
        let names: BTreeSet<_> = targets
            .map(|target| VersionName::new(target.engine_version.clone()))
            .collect();
        let names: Vec<_> = names.iter().map(VersionName::as_str).collect();
        Some(names.join(" "))
    };
    let offer = VersionOffer {
        deprecated: status.as_deref() == Some("deprecated"),
        minor_upgrades: targets(false),
        major_upgrades: targets(true),
        offer: None,
    };
    (VersionName::new(engine_version), offer)
}

fn storage(option: &OrderableOption) -> StorageOffer {
    StorageOffer {
        size_gib: Bounds::between(option.min_storage_size, option.max_storage_size),
        iops: Bounds::between(
            option.min_iops_per_db_instance,
            option.max_iops_per_db_instance,
        ),
        iops_per_gib: Bounds::between(option.min_iops_per_gib, option.max_iops_per_gib),
        throughput_mibps: Bounds::between(
            option.min_storage_throughput_per_db_instance,
            option.max_storage_throughput_per_db_instance,
        ),
        throughput_per_iops: Bounds::between(
            option.min_storage_throughput_per_iops,
            option.max_storage_throughput_per_iops,
        ),
        autoscaling: option.supports_storage_autoscaling.unwrap_or_default(),
    }
}

fn capabilities(option: &OrderableOption) -> impl Iterator<Item = Capability> {
    let all = [
        (
            Capability::DedicatedLogVolume,
            option.supports_dedicated_log_volume,
        ),
        (
            Capability::EnhancedMonitoring,
            option.supports_enhanced_monitoring,
        ),
        (
            Capability::IamAuthentication,
            option.supports_iam_database_authentication,
        ),
        (Capability::MultiAz, option.multi_az_capable),
        (
            Capability::PerformanceInsights,
            option.supports_performance_insights,
        ),
        (
            Capability::StorageEncryption,
            option.supports_storage_encryption,
        ),
    ];
    let supported = all.into_iter().filter(|(_, is_supported)| *is_supported);
    supported.map(|(capability, _)| capability)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSIONS: &str = r#"{"DBEngineVersions": [
        {"Engine": "postgres", "EngineVersion": "16.10", "Status": "available", "ValidUpgradeTarget": [
            {"Engine": "postgres", "EngineVersion": "17.6", "IsMajorVersionUpgrade": true},
            {"Engine": "postgres", "EngineVersion": "16.11", "IsMajorVersionUpgrade": false},
            {"Engine": "aurora-postgresql", "EngineVersion": "16.12", "IsMajorVersionUpgrade": false}]},
        {"Engine": "postgres", "EngineVersion": "16.9", "Status": "deprecated"},
        {"Engine": "postgres", "EngineVersion": "17.6", "Status": "available"}]}"#;

    fn option(version: &str, class: &str, storage: &str) -> OrderableOption {
        OrderableOption {
            engine: "postgres".to_owned(),
            engine_version: version.to_owned(),
            class: class.to_owned(),
            storage_type: storage.to_owned(),
            min_storage_size: Some(20.0),
            max_storage_size: Some(65_536.0),
            max_iops_per_gib: Some(0.5),
            multi_az_capable: true,
            ..OrderableOption::default()
        }
    }

    fn text(options: Vec<OrderableOption>) -> String {
        let mut builder = CatalogueBuilder::new(Origin::of_answers(None, None), "2026-11-26");
        for option in options {
            let options = vec![option];
            builder.add_options(OrderableOptions { options });
        }
        builder.add_versions(serde_json::from_str(VERSIONS).expect("an answer"));
        builder.finish().text()
    }

    #[test]
    fn the_same_answers_in_another_order_give_the_same_text() {
        let options = || {
            let versions = ["16.10", "17.6", "1.0"].into_iter();
            let options = versions.flat_map(|version| {
                ["db.m7g.large", "db.t4g.micro"].map(|class| option(version, class, "gp3"))
            });
            let mut options: Vec<_> = options.collect();
            options[1].max_storage_size = Some(16_384.0);
            options
        };
        let found = text(options());
        let mut reversed = options();
        reversed.reverse();
        assert_eq!(found, text(reversed));
        let catalogue = Catalogue::load(&found).expect("a catalogue");
        assert_eq!(catalogue.text(), found);
        let engine = &catalogue.engines["postgres"];
        let versions: Vec<_> = engine.versions.iter().collect();
        let names: Vec<_> = versions.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["16.9", "16.10", "17.6"]);
        // No class is offered with a deprecated version, two groups with the first one, and one with the last one.
        let offers = |at: usize| engine.offer_of(versions[at].1).expect("classes");
        let groups = [0, 1, 2].map(|at| offers(at).len());
        assert_eq!(groups, [0, 2, 1]);
        let storage = offers(2)[0].storage.as_ref().expect("storage");
        let bounds = storage["gp3"].size_gib.expect("bounds").to_string();
        assert_eq!(bounds, "20..65536");
        let (_, old) = versions[1];
        assert_eq!(old.minor_upgrades.as_deref(), Some("16.11"));
        assert_eq!(old.major_upgrades.as_deref(), Some("17.6"));
        assert_eq!(versions[0].1.targets(), Some(Vec::new()));
    }
}

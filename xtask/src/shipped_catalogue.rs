//! Public data → the shipped catalogue.
//!
//! The package cfn-lint has the engine versions and instance classes of RDS, which its authors update from the API of AWS. It
//! has neither upgrade targets nor the bounds of storage types.

use std::collections::{BTreeMap, BTreeSet};

use std::path::{Path, PathBuf};
use std::{fs, io};

use rds_catalogue::{
    Catalogue, ClassOffer, ClassSet, EngineOffers, Origin, VersionName, VersionOffer,
};
use serde::Deserialize;
use serde_json::Value;

/// Engines of the kind `CloudDatabase`.
const ENGINES: [&str; 3] = ["postgres", "mysql", "mariadb"];

/// Reason why the shipped catalogue was not written.
#[derive(Debug, thiserror::Error)]
pub enum ShippedCatalogueError {
    /// A file could not be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    /// A file of the package has another structure.
    #[error("the files of cfn-lint have another structure: {0}")]
    Structure(#[from] serde_json::Error),
}

/// Writes the shipped catalogue from the directory of the unpacked package cfn-lint. `version` is that of the package, and
/// `date` the day on which it was published.
///
/// # Errors
///
/// A file cannot be read or written, or has another structure.
pub fn write(
    package: &Path,
    version: &str,
    date: &str,
    output: &Path,
) -> Result<(), ShippedCatalogueError> {
    let folder = package.join("cfnlint/data/schemas/extensions/aws_rds_dbinstance");
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).map_err(|error| ShippedCatalogueError::File(path, error))
    };
    let origin = Origin {
        source: format!("cfn-lint {version}"),
        ..Origin::default()
    };
    let files = PublicData {
        versions: &read("engine_version.json")?,
        deprecated_versions: &read("engine_version_deprecated.json")?,
        classes_by_region: &read("dbinstanceclass_enum.json")?,
        classes_by_version: &read("db_instance_class.json")?,
    };
    let catalogue = of_public_data(origin, date, &ENGINES, &files)?;
    fs::write(output, catalogue.text())
        .map_err(|error| ShippedCatalogueError::File(output.to_owned(), error))
}

/// Files of the package cfn-lint, below `cfnlint/data/schemas/extensions/aws_rds_dbinstance`.
#[derive(Clone, Copy)]
struct PublicData<'a> {
    /// `engine_version.json`: the versions of each engine.
    versions: &'a str,
    /// `engine_version_deprecated.json`: those that cannot be created any more.
    deprecated_versions: &'a str,
    /// `dbinstanceclass_enum.json`: the classes of each engine in each region.
    classes_by_region: &'a str,
    /// `db_instance_class.json`: the classes of each version.
    classes_by_version: &'a str,
}

/// JSON schema of alternatives: if the properties have these values, others must have those.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Alternatives {
    all_of: Vec<Alternative>,
}

#[derive(Deserialize)]
struct Alternative {
    #[serde(rename = "if")]
    condition: Condition,
    #[serde(default)]
    then: Value,
}

#[derive(Deserialize)]
struct Condition {
    properties: BTreeMap<String, Value>,
}

impl Alternative {
    /// Returns the engine that the alternative is about.
    fn engine(&self) -> Option<&str> {
        self.condition.properties.get("Engine")?["const"].as_str()
    }
}

/// Returns the catalogue of some engines from public data.
fn of_public_data(
    origin: Origin,
    date: &str,
    engines: &[&str],
    files: &PublicData<'_>,
) -> Result<Catalogue, serde_json::Error> {
    let versions: Alternatives = serde_json::from_str(files.versions)?;
    let deprecated: Alternatives = serde_json::from_str(files.deprecated_versions)?;
    let by_region: BTreeMap<String, Alternatives> = serde_json::from_str(files.classes_by_region)?;
    let by_version: Alternatives = serde_json::from_str(files.classes_by_version)?;
    let engines = engines.iter().map(|engine| {
        let regions = regions(engine, &by_region);
        let mut offers = EngineOffers {
            date: date.to_owned(),
            versions: self::versions(engine, &versions, &deprecated),
            offers: Vec::new(),
            regions,
        };
        add_classes(engine, &mut offers, &by_version);
        ((*engine).to_owned(), offers)
    });
    let engines = engines.collect();
    Ok(Catalogue::new(origin, engines))
}

fn versions(
    engine: &str,
    all: &Alternatives,
    deprecated: &Alternatives,
) -> BTreeMap<VersionName, VersionOffer> {
    let of_engine = |it: &&Alternative| it.engine() == Some(engine);
    let deprecated: BTreeSet<_> = deprecated
        .all_of
        .iter()
        .filter(of_engine)
        .flat_map(|it| names(&it.condition.properties["EngineVersion"]["enum"]))
        .collect();
    let all = all.all_of.iter().filter(of_engine);
    let all = all.flat_map(|it| names(&it.then["properties"]["EngineVersion"]["enum"]));
    let all: BTreeSet<VersionName> = all.map(VersionName::new).collect();
    // The list also has major versions, such as 17, which are no versions of an instance.
    let is_version = |it: &&VersionName| {
        let components = if engine == "postgres" { 2 } else { 3 };
        it.as_str().split('.').count() >= components
    };
    let all = all.iter().filter(is_version).map(|name| {
        let offer = VersionOffer {
            deprecated: deprecated.contains(name.as_str()),
            ..VersionOffer::default()
        };
        (name.clone(), offer)
    });
    all.collect()
}

/// Returns the classes that each region offers.
fn regions(engine: &str, by_region: &BTreeMap<String, Alternatives>) -> BTreeMap<String, ClassSet> {
    let regions = by_region.iter().map(|(region, alternatives)| {
        let of_engine = alternatives.all_of.iter();
        let of_engine = of_engine.filter(|it| it.engine() == Some(engine));
        let classes =
            of_engine.flat_map(|it| names(&it.then["properties"]["DBInstanceClass"]["enum"]));
        (region.clone(), classes.collect())
    });
    regions.collect()
}

/// Adds the classes of the versions that can be created. The data has them by the first two components of a version, for all
/// engines with such a version together.
fn add_classes(engine: &str, offers: &mut EngineOffers, by_version: &Alternatives) {
    let of_engine = offers.regions.values();
    let of_engine: ClassSet = of_engine.flat_map(ClassSet::iter).collect();
    let EngineOffers {
        versions, offers, ..
    } = offers;
    for (name, version) in versions.iter_mut().filter(|(_, it)| !it.deprecated) {
        let start: Vec<_> = name.as_str().split('.').take(2).collect();
        let pattern = format!("^({0}\\..+|{0})$", start.join("\\."));
        let found = by_version.all_of.iter().find(|it| {
            let properties = &it.condition.properties;
            it.engine() == Some(engine) && properties["EngineVersion"]["pattern"] == *pattern
        });
        let Some(found) = found else {
            continue;
        };
        let classes = names(&found.then["properties"]["DBInstanceClass"]["enum"]);
        let classes = classes.into_iter().collect::<ClassSet>();
        let offer = vec![ClassOffer {
            classes: classes.intersection(&of_engine),
            storage: None,
            capabilities: None,
        }];
        let known = offers.iter().position(|known| *known == offer);
        version.offer = Some(known.unwrap_or_else(|| {
            offers.push(offer);
            offers.len() - 1
        }));
    }
}

fn names(list: &Value) -> Vec<String> {
    let names = list.as_array().into_iter().flatten();
    names
        .filter_map(|it| it.as_str().map(str::to_owned))
        .collect()
}

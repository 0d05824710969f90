//! Engine versions, their upgrade paths, and instance classes: an excerpt of those that RDS offers.

use crate::protocol::fault::Fault;

/// Versions in ascending order, by engine. The last version of a major version is its default.
const VERSIONS: &[(&str, &[&str])] = &[
    (
        "postgres",
        &[
            "13.20", "13.22", "14.17", "14.18", "14.19", "15.12", "15.13", "15.14", "16.3", "16.4",
            "16.8", "16.9", "16.10", "17.2", "17.4", "17.5", "17.6", "18.1",
        ],
    ),
    (
        "mysql",
        &[
            "5.7.44-rds.20240808",
            "5.7.44-rds.20250213",
            "8.0.39",
            "8.0.40",
            "8.0.41",
            "8.0.42",
            "8.4.3",
            "8.4.5",
            "8.4.6",
        ],
    ),
    (
        "mariadb",
        &[
            "10.6.20", "10.6.22", "10.11.10", "10.11.13", "11.4.4", "11.4.7", "11.8.3",
        ],
    ),
];

/// Families of instance classes.
const FAMILIES: &[&str] = &[
    "t2", "t3", "t4g", "m4", "m5", "m5d", "m6g", "m6gd", "m6i", "m6id", "m7g", "m7i", "m8g", "r4",
    "r5", "r5b", "r6g", "r6gd", "r6i", "r6id", "r7g", "r7i", "r8g", "x2g", "x2iedn",
];

/// Families that RDS no longer offers for the versions of this catalogue, except the oldest ones.
const PREVIOUS_GENERATION: &[&str] = &["t2", "m4", "r4"];

/// Major versions that the previous generation of classes still runs.
const PREVIOUS_VERSIONS: &[(&str, &str)] = &[("mysql", "5.7")];

/// Sizes of instance classes. Those of the burstable families end with `2xlarge`, and the others begin with `large`.
const SIZES: &[&str] = &[
    "micro", "small", "medium", "large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge",
    "16xlarge", "24xlarge", "32xlarge",
];

/// Engine versions that can be created.
#[derive(Clone, Debug)]
pub(crate) struct Catalogue {
    versions: Vec<(String, Vec<String>)>,
    /// Engines and versions that no new instance can have.
    deprecated: Vec<(String, String)>,
}

impl Default for Catalogue {
    fn default() -> Self {
        let versions = VERSIONS.iter().map(|(engine, versions)| {
            let versions = versions.iter().map(|version| (*version).to_owned());
            ((*engine).to_owned(), versions.collect())
        });
        Self {
            versions: versions.collect(),
            deprecated: Vec::new(),
        }
    }
}

/// Returns the numbers in a version.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|it: char| !it.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

impl Catalogue {
    /// Adds a version in the order of the numbers in it, if it is new.
    pub(crate) fn add_version(&mut self, engine: &str, version: &str) {
        let known = self.versions.iter_mut().find(|(name, _)| name == engine);
        let (_, versions) = known.expect("an engine of the catalogue");
        if versions.iter().any(|other| other == version) {
            return;
        }
        let later = versions.partition_point(|other| numbers(other) <= numbers(version));
        versions.insert(later, version.to_owned());
    }

    /// Deprecates a version: it is neither offered for new instances nor chosen for a major version any more.
    pub(crate) fn deprecate(&mut self, engine: &str, version: &str) {
        let (engine, version) = (engine.to_owned(), version.to_owned());
        self.deprecated.push((engine, version));
    }

    /// Returns true if no new instance can have a version.
    pub(crate) fn is_deprecated(&self, engine: &str, version: &str) -> bool {
        let mut deprecated = self.deprecated.iter();
        deprecated.any(|(of, known)| of == engine && known == version)
    }

    /// Returns all engines.
    pub(crate) fn engines(&self) -> impl Iterator<Item = &str> {
        self.versions.iter().map(|(engine, _)| engine.as_str())
    }

    /// Returns the versions of an engine.
    pub(crate) fn versions(&self, engine: &str) -> &[String] {
        let known = self.versions.iter().find(|(name, _)| name == engine);
        known.map_or(&[], |(_, versions)| versions)
    }

    pub(crate) fn require_engine(&self, engine: &str) -> Result<(), Fault> {
        if self.engines().any(|known| known == engine) {
            return Ok(());
        }
        Err(Fault::value(format!("Invalid DB engine: {engine}")))
    }

    /// Returns the version that RDS chooses for a version that may be only a major one.
    pub(crate) fn resolve(&self, engine: &str, version: Option<&str>) -> Result<String, Fault> {
        let versions = self.versions(engine);
        let found = match version {
            None => self.default_version(engine),
            Some(exact) if versions.iter().any(|known| known == exact) => Some(exact),
            Some(wanted) => self.default_of_major(engine, wanted),
        };
        found.map(String::from).ok_or_else(|| {
            let version = version.unwrap_or_default();
            Fault::combination(format!("Cannot find version {version} for {engine}"))
        })
    }

    /// Returns the version that RDS chooses without any given one: the default of the last major version but one.
    fn default_version(&self, engine: &str) -> Option<&str> {
        let versions = self.versions(engine);
        let last = major(engine, versions.last()?);
        let before = versions.iter().rev();
        let mut before = before.filter(|version| major(engine, version) != last);
        before.next().map(String::as_str)
    }

    pub(crate) fn default_of_major(&self, engine: &str, wanted: &str) -> Option<&str> {
        let versions = self.versions(engine).iter().rev();
        let mut versions = versions.filter(|version| {
            major(engine, version) == wanted && !self.is_deprecated(engine, version)
        });
        versions.next().map(String::as_str)
    }

    /// Returns the versions to which an instance can be upgraded.
    pub(crate) fn targets(&self, engine: &str, version: &str) -> Vec<&str> {
        let versions = self.versions(engine);
        let later = versions
            .iter()
            .skip_while(|known| *known != version)
            .skip(1);
        let from = major(engine, version);
        let next = later
            .clone()
            .map(|version| major(engine, version))
            .find(|major| *major != from);
        // MySQL upgrades to the next major version only.
        let is_target = |to: &&String| {
            let to = major(engine, to);
            engine != "mysql" || to == from || Some(to) == next
        };
        later.filter(is_target).map(String::as_str).collect()
    }
}

/// Returns the major version: the first component for `PostgreSQL`, and the first two for the other engines.
pub(crate) fn major<'a>(engine: &str, version: &'a str) -> &'a str {
    let components = if engine == "postgres" { 1 } else { 2 };
    let dots = version.match_indices('.');
    let end = dots.map(|(position, _)| position).nth(components - 1);
    &version[..end.unwrap_or(version.len())]
}

/// Returns the license of an engine.
pub(crate) fn license(engine: &str) -> &'static str {
    if engine == "postgres" {
        "postgresql-license"
    } else {
        "general-public-license"
    }
}

/// Returns the port on which an engine listens by default.
pub(crate) fn default_port(engine: &str) -> i64 {
    if engine == "postgres" { 5432 } else { 3306 }
}

/// Returns all instance classes of an engine version.
pub(crate) fn classes(engine: &str, version: &str) -> Vec<String> {
    let families = FAMILIES.iter();
    let classes =
        families.flat_map(|family| SIZES.iter().map(move |size| format!("db.{family}.{size}")));
    classes
        .filter(|class| require_class(engine, version, class).is_ok())
        .collect()
}

/// Returns an error if an instance class does not exist or does not run an engine version.
pub(crate) fn require_class(engine: &str, version: &str, class: &str) -> Result<(), Fault> {
    let parts: Vec<_> = class.split('.').collect();
    let known = match parts.as_slice() {
        ["db", family, size] if FAMILIES.contains(family) => {
            let position = SIZES.iter().position(|known| known == size);
            let burstable = family.starts_with('t');
            position.filter(|at| if burstable { *at <= 5 } else { *at >= 3 })
        }
        _ => None,
    };
    if known.is_none() {
        return Err(Fault::value(format!("Invalid DB Instance class: {class}")));
    }
    let major = major(engine, version);
    if PREVIOUS_GENERATION.contains(&parts[1]) && !PREVIOUS_VERSIONS.contains(&(engine, major)) {
        let license = license(engine);
        return Err(Fault::combination(format!(
            "RDS does not support creating a DB instance with the following combination: DBInstanceClass={class}, Engine={engine}, EngineVersion={version}, LicenseModel={license}. For supported combinations of instance class and database engine version, see the documentation."
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_major_version_is_resolved_to_its_latest_minor_version() {
        let catalogue = Catalogue::default();
        let resolve = |engine: &str, version: Option<&str>| catalogue.resolve(engine, version);
        assert_eq!(resolve("postgres", Some("16")).as_deref(), Ok("16.10"));
        assert_eq!(resolve("postgres", Some("16.4")).as_deref(), Ok("16.4"));
        assert_eq!(resolve("postgres", None).as_deref(), Ok("17.6"));
        assert_eq!(resolve("mysql", Some("8.0")).as_deref(), Ok("8.0.42"));
        for (engine, version) in [("mysql", "8"), ("mariadb", "11"), ("postgres", "16.1")] {
            let error = resolve(engine, Some(version)).expect_err("an error");
            assert_eq!(error.code, "InvalidParameterCombination", "{error:?}");
        }
    }

    #[test]
    fn mysql_is_upgraded_one_major_version_at_a_time_and_no_engine_is_downgraded() {
        let catalogue = Catalogue::default();
        let targets = catalogue.targets("mysql", "5.7.44-rds.20250213");
        assert!(targets.contains(&"8.0.42"), "{targets:?}");
        assert!(!targets.contains(&"8.4.6"), "{targets:?}");
        let targets = catalogue.targets("postgres", "16.4");
        assert!(targets.contains(&"16.10") && targets.contains(&"18.1"));
        assert!(!targets.contains(&"16.3"), "{targets:?}");
    }

    #[test]
    fn a_class_must_exist_and_run_the_engine_version() {
        let code =
            |class: &str| require_class("postgres", "16.4", class).map_err(|error| error.code);
        assert_eq!(code("db.t4g.micro"), Ok(()));
        assert_eq!(code("db.r6g.32xlarge"), Ok(()));
        let invalid = || Err("InvalidParameterValue".to_owned());
        for class in [
            "db.t4g.huge",
            "db.m5.micro",
            "db.t3.4xlarge",
            "t4g.micro",
            "db.z9.large",
        ] {
            assert_eq!(code(class), invalid(), "{class}");
        }
        assert_eq!(
            code("db.t2.micro"),
            Err("InvalidParameterCombination".to_owned())
        );
        assert_eq!(
            require_class("mysql", "5.7.44-rds.20250213", "db.t2.micro"),
            Ok(())
        );
    }
}

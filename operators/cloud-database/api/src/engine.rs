//! Database engines and their properties.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Database engine of RDS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Engine {
    /// PostgreSQL.
    Postgres,
    /// MySQL.
    Mysql,
    /// MariaDB.
    Mariadb,
}

impl Engine {
    pub(crate) const ALL: [Self; 3] = [Self::Postgres, Self::Mysql, Self::Mariadb];

    /// Returns the name of the engine in RDS.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
            Self::Mariadb => "mariadb",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.as_str() == name)
    }

    /// Returns the default port of the engine.
    pub(crate) fn default_port(self) -> i32 {
        match self {
            Self::Postgres => 5432,
            Self::Mysql | Self::Mariadb => 3306,
        }
    }

    /// Returns the default major version of the engine. RDS chooses the minor version.
    pub(crate) fn default_version(self) -> &'static str {
        match self {
            Self::Postgres => "17",
            Self::Mysql => "8.4",
            Self::Mariadb => "11.4",
        }
    }

    /// Returns the number of components of a major version: one for PostgreSQL since version 10, and otherwise two.
    pub(crate) fn major_components(self, version: &str) -> usize {
        let first = version.split(['.', '-']).next().unwrap_or_default();
        let first: u32 = first.parse().unwrap_or_default();
        if self == Self::Postgres && first >= 10 {
            1
        } else {
            2
        }
    }

    /// Returns the major version that a version belongs to.
    #[must_use]
    pub fn major_version(self, version: &str) -> &str {
        let mut dots = version.match_indices('.').map(|(at, _)| at);
        let end = dots.nth(self.major_components(version) - 1);
        let major = &version[..end.unwrap_or(version.len())];
        major.split('-').next().unwrap_or_default()
    }

    /// Returns true if a version names more than a major version.
    #[must_use]
    pub fn is_minor_version(self, version: &str) -> bool {
        self.major_version(version) != version
    }

    /// Returns true if a change from one version to another is an upgrade to another major version.
    #[must_use]
    pub fn is_major_upgrade(self, from: &str, to: &str) -> bool {
        let (from, to) = (self.major_version(from), self.major_version(to));
        compare_versions(from, to) == Ordering::Less
    }

    /// Returns the names of the logs that the engine can export (`CreateDBInstance`, `EnableCloudwatchLogsExports`).
    pub(crate) fn log_exports(self) -> &'static [&'static str] {
        match self {
            Self::Postgres => &["postgresql", "upgrade", "iam-db-auth-error"],
            Self::Mysql | Self::Mariadb => &[
                "audit",
                "error",
                "general",
                "slowquery",
                "iam-db-auth-error",
            ],
        }
    }

    /// Returns the maximum length of a password in RDS, in characters (`CreateDBInstance`, `MasterUserPassword`).
    pub(crate) fn max_password_length(self) -> usize {
        match self {
            Self::Postgres => 128,
            Self::Mysql | Self::Mariadb => 41,
        }
    }
}

/// Enrolment of an instance in RDS Extended Support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum EngineLifecycleSupport {
    /// The instance is enrolled: it can run a major version after the end of its standard support, at a charge.
    #[serde(rename = "open-source-rds-extended-support")]
    Extended,
    /// The instance is not enrolled: RDS upgrades it at the end of the standard support.
    #[serde(rename = "open-source-rds-extended-support-disabled")]
    Disabled,
}

impl EngineLifecycleSupport {
    /// Returns the name in RDS.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Extended => "open-source-rds-extended-support",
            Self::Disabled => "open-source-rds-extended-support-disabled",
        }
    }
}

/// Returns true if the version `actual` matches `wanted`: all components of `wanted` must be equal, so `14` matches
/// `14.10`, but `14.1` does not.
#[must_use]
pub fn version_matches(wanted: &str, actual: &str) -> bool {
    let mut actual = actual.split('.');
    wanted
        .split('.')
        .all(|component| actual.next() == Some(component))
}

/// Compares two versions by the numeric components that both have.
#[must_use]
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    let components = |version: &str| -> Vec<u64> {
        version
            .split(['.', '-'])
            .map_while(|component| component.parse().ok())
            .collect()
    };
    components(a)
        .into_iter()
        .zip(components(b))
        .map(|(a, b)| a.cmp(&b))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_match_by_component_and_not_by_prefix() {
        assert!(version_matches("14", "14.10"));
        assert!(version_matches("14.1", "14.1"));
        assert!(!version_matches("14.1", "14.10"));
        assert!(!version_matches("8.0", "8"));
    }

    #[test]
    fn the_major_version_has_the_components_of_its_engine() {
        let major = |engine: Engine, version| engine.major_version(version);
        assert_eq!(major(Engine::Postgres, "17.2"), "17");
        assert_eq!(major(Engine::Postgres, "17-R1"), "17");
        assert_eq!(major(Engine::Postgres, "9.6.24"), "9.6");
        assert_eq!(major(Engine::Mysql, "5.7.44-rds.20240408"), "5.7");
        assert_eq!(major(Engine::Mariadb, "11.4"), "11.4");
        assert!(Engine::Mysql.is_minor_version("8.4.3"));
        assert!(!Engine::Mysql.is_minor_version("8.4"));
        assert!(Engine::Mysql.is_major_upgrade("8.0.40", "8.4"));
        assert!(!Engine::Postgres.is_major_upgrade("16.4", "16.10"));
        assert!(!Engine::Postgres.is_major_upgrade("17.2", "16"));
    }

    #[test]
    fn versions_are_compared_by_the_numeric_components_that_both_have() {
        assert_eq!(compare_versions("9.6", "14"), Ordering::Less);
        assert_eq!(compare_versions("14.10", "14.9"), Ordering::Greater);
        assert_eq!(compare_versions("14", "14.9"), Ordering::Equal);
    }
}

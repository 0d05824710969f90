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
        [Self::Postgres, Self::Mysql, Self::Mariadb]
            .into_iter()
            .find(|engine| engine.as_str() == name)
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

    /// Returns the maximum length of a password in RDS, in characters (`CreateDBInstance`, `MasterUserPassword`).
    pub(crate) fn max_password_length(self) -> usize {
        match self {
            Self::Postgres => 128,
            Self::Mysql | Self::Mariadb => 41,
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
    fn versions_are_compared_by_the_numeric_components_that_both_have() {
        assert_eq!(compare_versions("9.6", "14"), Ordering::Less);
        assert_eq!(compare_versions("14.10", "14.9"), Ordering::Greater);
        assert_eq!(compare_versions("14", "14.9"), Ordering::Equal);
    }
}

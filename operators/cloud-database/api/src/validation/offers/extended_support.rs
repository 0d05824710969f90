//! Ends of the standard support of major versions. Later, RDS charges for Extended Support of an instance unless that was
//! disabled.

use crate::engine::{Engine, EngineLifecycleSupport};
use crate::spec::CloudDatabaseSpec;

/// Major versions with the last days of their standard support:
/// <https://docs.aws.amazon.com/AmazonRDS/latest/PostgreSQLReleaseNotes/postgresql-release-calendar.html> and
/// <https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/MySQL.Concepts.VersionMgmt.html>.
const ENDS: &[(Engine, &str, &str)] = &[
    (Engine::Mysql, "5.7", "2024-02-29"),
    (Engine::Mysql, "8.0", "2026-07-31"),
    (Engine::Mysql, "8.4", "2029-07-31"),
    (Engine::Postgres, "11", "2024-02-29"),
    (Engine::Postgres, "12", "2025-02-28"),
    (Engine::Postgres, "13", "2026-02-28"),
    (Engine::Postgres, "14", "2027-02-28"),
    (Engine::Postgres, "15", "2028-02-29"),
    (Engine::Postgres, "16", "2029-02-28"),
    (Engine::Postgres, "17", "2030-02-28"),
];

/// Returns the problem of a version whose standard support has ended on a day, such as `2026-11-26`. RDS creates a new instance
/// with it only if Extended Support is not disabled.
pub(super) fn problem(spec: &CloudDatabaseSpec, is_new: bool, today: &str) -> Option<String> {
    let is_disabled = match spec.engine_lifecycle_support {
        None => false,
        Some(EngineLifecycleSupport::Disabled) if is_new => true,
        Some(_) => return None,
    };
    let version = spec.engine_version.as_deref()?;
    let (engine, major) = (spec.engine, spec.engine.major_version(version));
    let mut ends = ENDS.iter();
    let (_, _, end) = ends.find(|it| (it.0, it.1) == (engine, major))?;
    (*end < today).then(|| {
        let consequence = if is_disabled {
            "RDS creates no instance with it while `engineLifecycleSupport` disables Extended Support"
        } else {
            "RDS charges for Extended Support"
        };
        format!(
            "is a version of {engine} {major}, whose standard support ended on {end}: {consequence}; choose a later major version, or set `engineLifecycleSupport` to 'open-source-rds-extended-support' to accept the costs",
            engine = engine.as_str()
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_version_is_reported_from_the_day_after_its_standard_support() {
        let found = |engine: &str, version: &str, today: &str| {
            let spec = json!({
                "engine": engine, "engineVersion": version, "instanceClass": "db.t4g.micro",
                "storage": {"sizeGib": 20}, "credentials": {"username": "app", "secretName": "s"},
            });
            let spec = serde_json::from_value(spec).expect("a spec");
            problem(&spec, true, today).is_some()
        };
        assert!(!found("mysql", "8.0.40", "2026-07-31"));
        assert!(found("mysql", "8.0.40", "2026-08-01"));
        assert!(found("mysql", "8.0", "2026-08-01"));
        assert!(!found("mysql", "8.4.6", "2026-08-01"));
        assert!(found("postgres", "13.22", "2026-11-27"));
        assert!(!found("postgres", "14", "2026-11-27"));
        assert!(!found("mariadb", "10.6", "2036-11-27"));
    }
}

//! Rules on engine versions that cannot exist.

use lockstep_shared_validation::{Diagnostics, Rule, RuleContext, Severity};

use crate::engine::Engine;
use crate::spec::CloudDatabase;

const VERSIONS: &str =
    "https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_DescribeDBEngineVersions.html";

pub(super) fn rules() -> Vec<Rule<CloudDatabase>> {
    vec![Rule {
        id: "engine-version-form",
        description: "The engine version must have the components of a version of its engine.",
        severity: Severity::Error,
        reference: VERSIONS,
        fields: &["spec.engine", "spec.engineVersion"],
        validate: form,
    }]
}

fn form(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let spec = &context.object.spec;
    // A changed engine is an error of its own, and the version that was kept is one of the other engine.
    if context
        .old
        .is_some_and(|old| old.spec.engine != spec.engine)
    {
        return;
    }
    if let Some(version) = &spec.engine_version
        && let Some(detail) = problem(spec.engine, version)
    {
        diagnostics.invalid("spec.engineVersion", version.as_str(), detail);
    }
}

/// Returns what is wrong with a version. A version is one of a release, or a major version: that of MySQL and MariaDB has
/// two components, such as 8.4, and that of PostgreSQL has one since version 10. A release has one component more, and
/// RDS adds a suffix such as `-R1` or `-rds.20240408` to some. Components are numbers, after which some releases of MySQL
/// have a letter, such as 5.6.21b.
fn problem(engine: Engine, version: &str) -> Option<String> {
    let numbers = version.split('-').next().unwrap_or_default();
    let components: Vec<_> = numbers.split('.').collect();
    // The schema reports what does not begin with a number, and empty components.
    let _: u32 = components.first()?.parse().ok()?;
    let name = engine.as_str();
    let in_major = engine.major_components(version);
    let example = match (engine, in_major) {
        (Engine::Postgres, 2) => "9.6",
        _ => engine.default_version(),
    };
    let is_malformed = |it: &&str| {
        it.starts_with(|c: char| c.is_ascii_alphabetic()) || it.len() > 1 && it.starts_with('0')
    };
    if components.iter().any(is_malformed) {
        Some(format!(
            "is no version of {name}: its components are numbers without leading zeros, as in {example}"
        ))
    } else if components.len() < in_major {
        Some(format!(
            "is no version of {name}: its major versions have two components, such as {example}"
        ))
    } else if components.len() > in_major + 1 {
        let major = components.get(..in_major)?.join(".");
        let release = components.get(in_major)?;
        Some(format!(
            "has more components than a version of {name}, such as {example}.2; set '{major}.{release}' or '{major}'"
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_components_of_their_engine() {
        for (engine, valid, invalid) in [
            (
                Engine::Postgres,
                &["17", "17.2", "17.2-R1", "10", "9.6", "9.6.24", "17.2-R2.1"][..],
                &["17.2.1", "9", "9.6.24.1", "17.x", "17.02", "017"][..],
            ),
            (
                Engine::Mysql,
                &["8.4", "8.0.40", "5.7.44-rds.20240408", "5.6.21b", "9.0"],
                &["8", "8-R1", "8.4.3.1", "8.0.x", "8.00.40", "08.0"],
            ),
            (
                Engine::Mariadb,
                &["11.4", "10.11.9", "10.6.10-R1"],
                &["11", "10.11.9.1", "11.4.a"],
            ),
        ] {
            for version in valid {
                assert_eq!(problem(engine, version), None, "{version}");
            }
            for version in invalid {
                assert!(problem(engine, version).is_some(), "{version}");
            }
        }
    }
}

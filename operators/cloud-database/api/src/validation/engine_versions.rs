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

/// Returns what is wrong with a version. A major version of MySQL and MariaDB has two components, such as 8.4, and one of
/// PostgreSQL has one since version 10.
fn problem(engine: Engine, version: &str) -> Option<String> {
    let numbers = version.split('-').next().unwrap_or_default();
    let components: Vec<_> = numbers.split('.').collect();
    let major: u32 = components.first()?.parse().ok()?;
    let name = engine.as_str();
    match engine {
        Engine::Postgres if major >= 10 && components.len() > 2 => Some(format!(
            "has more components than a version of {name}, such as 17.2; set '{}.{}' or '{major}'",
            components.first()?,
            components.get(1)?
        )),
        Engine::Mysql | Engine::Mariadb if components.len() < 2 => Some(format!(
            "is no version of {name}: its major versions have two components, such as {}",
            engine.default_version()
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_components_of_their_engine() {
        let is_valid = |engine, version| problem(engine, version).is_none();
        for version in ["17", "17.2", "17.2-R1", "9.6.24"] {
            assert!(is_valid(Engine::Postgres, version), "{version}");
        }
        assert!(!is_valid(Engine::Postgres, "17.2.1"));
        for version in ["8.4", "8.0.40", "5.7.44-rds.20240408"] {
            assert!(is_valid(Engine::Mysql, version), "{version}");
        }
        assert!(!is_valid(Engine::Mysql, "8"));
        assert!(!is_valid(Engine::Mariadb, "11"));
    }
}

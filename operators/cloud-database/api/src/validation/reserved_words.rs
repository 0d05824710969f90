//! Warnings about names that only later versions of an engine reserve. AWS has published neither a list nor an error, so that they
//! deny nothing.

use std::cmp::Ordering;

use lockstep_shared_validation::{Diagnostics, Rule, RuleContext, Severity};

use crate::engine::{Engine, compare_versions};
use crate::reserved_names;
use crate::spec::CloudDatabase;

/// List of the words of the last version, with the versions that have added some.
const WORDS: &str = "https://dev.mysql.com/doc/refman/8.4/en/keywords.html";

pub(super) fn rules() -> Vec<Rule<CloudDatabase>> {
    vec![Rule {
        id: "name-reserved-by-version",
        description: "Names should not be words that the engine version reserves.",
        severity: Severity::Warning,
        reference: WORDS,
        fields: &[
            "spec.credentials.username",
            "spec.databaseName",
            "spec.engine",
            "spec.engineVersion",
        ],
        validate: not_reserved,
    }]
}

fn not_reserved(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let spec = &context.object.spec;
    // RDS sets both names at creation only.
    if spec.engine != Engine::Mysql || context.old.is_some() {
        return;
    }
    let names = [
        ("spec.credentials.username", &spec.credentials.username),
        ("spec.databaseName", &spec.database_name),
    ];
    for (field, name) in names {
        let Some(name) = name else {
            continue;
        };
        let Some(since) = reserved_names::reserved_by_mysql_since(name) else {
            continue;
        };
        // Without a version, RDS takes one of the last series.
        let version = spec.engine_version.as_deref();
        if version.is_none_or(|version| compare_versions(version, since) != Ordering::Less) {
            let detail = format!("is reserved by MySQL since {since}, so that RDS may reject it");
            diagnostics.invalid(field, name.as_str(), detail);
        }
    }
}

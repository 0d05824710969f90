//! Rules on the name of the database that is created with an instance.

use lockstep_shared_validation::{Diagnostics, Rule, RuleContext, Severity};

use crate::engine::Engine;
use crate::references::CREATE;
use crate::reserved_names;
use crate::spec::CloudDatabase;

/// Maximum length of the name of a PostgreSQL database. MySQL and MariaDB allow one character more, as the schema does, which
/// reports longer names.
const LONGEST_IN_POSTGRES: usize = 63;

const FIELDS: &[&str] = &["spec.databaseName", "spec.engine"];

pub(super) fn rules() -> Vec<Rule<CloudDatabase>> {
    vec![
        Rule {
            id: "database-name-length",
            description: "The name of a PostgreSQL database must have at most 63 characters.",
            severity: Severity::Error,
            reference: CREATE,
            fields: FIELDS,
            validate: length,
        },
        Rule {
            id: "database-name-reserved",
            description: "The database name must not be a word that the engine reserves.",
            severity: Severity::Error,
            reference: CREATE,
            fields: FIELDS,
            validate: reserved,
        },
    ]
}

fn length(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let spec = &context.object.spec;
    if let Some(name) = &spec.database_name
        && spec.engine == Engine::Postgres
        && name.len() == LONGEST_IN_POSTGRES + 1
    {
        let detail = format!("must have at most {LONGEST_IN_POSTGRES} characters for postgres");
        diagnostics.invalid("spec.databaseName", name.as_str(), detail);
    }
}

fn reserved(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let spec = &context.object.spec;
    if let Some(name) = &spec.database_name
        && reserved_names::is_reserved_database(spec.engine, name)
    {
        let detail = format!(
            "is reserved by {} or RDS; choose another name",
            spec.engine.as_str()
        );
        diagnostics.invalid("spec.databaseName", name.as_str(), detail);
    }
}

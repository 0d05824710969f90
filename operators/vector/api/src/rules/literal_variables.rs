//! Rule for variables that Vector leaves as they are written.

use lockstep_shared_validation::{Diagnostics, Rule, RuleContext, Severity};

use crate::rules::cached_validation::{CachedValidation, push};
use crate::types::pipeline::Pipeline;

pub(crate) fn rule<K: Pipeline>(fields: &'static [&'static str]) -> Rule<K> {
    Rule {
        id: "literal-variables",
        description: "No option of a source or sink contains an environment variable that Vector leaves as it is written.",
        severity: Severity::Warning,
        reference: "https://vector.dev/docs/reference/environment_variables/#environment-variable-interpolation",
        fields,
        validate: literal_variables,
    }
}

fn literal_variables<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    for problem in CachedValidation::of(context).literal_variables() {
        push(&problem, diagnostics);
    }
}

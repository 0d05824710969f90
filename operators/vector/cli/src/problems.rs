//! Problems of a configuration, as all commands report them.

use std::collections::BTreeSet;

use lockstep_vector_api::{
    Catalogue, Check, Diagnostic, Interpolation, OptOut, ProgramScope, find_literal_variables,
    validate_config, validate_secrets, validate_start_up,
};
use serde_json::Value;

use crate::environment;

/// Returns the problems of a configuration. If `with_start` is true, they include those that prevent Vector from
/// starting.
pub(crate) fn problems(catalogue: &Catalogue, config: &Value, with_start: bool) -> Vec<Diagnostic> {
    // Variables were replaced while the files were read, or Vector does not replace them.
    let interpolation = Interpolation::Off;
    let programs = if with_start {
        ProgramScope::Start
    } else {
        ProgramScope::Load
    };
    let none = BTreeSet::new();
    let mut problems = validate_config(catalogue, config, &none, &environment::OF_VECTOR, programs);
    // The author of the configuration of a whole Vector may use its secrets in programs.
    problems.retain(|problem| problem.check != Check::ProgramSecrets);
    if with_start {
        problems.extend(validate_start_up(
            catalogue,
            config,
            OptOut::Author,
            interpolation,
        ));
        problems.extend(validate_secrets(catalogue, config));
    }
    problems.extend(find_literal_variables(config));
    problems
}

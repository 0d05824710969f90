//! Start-up validation: configurations that `vector validate --no-environment` accepts but with which Vector does not
//! start.
//!
//! An agent or aggregator runs the pipelines of all namespaces in one process, so a single configuration of this
//! kind keeps all of them from running. Of the reasons why Vector does not start, this covers template
//! confinement.

use serde_json::Value;

use crate::catalogue::Catalogue;
use crate::component::{ComponentKind, components};
use crate::confinement;
use crate::confinement::OptOut;
use crate::diagnostic::{Diagnostic, DiagnosticList};

/// Validates a configuration for the errors that only the start of Vector reports.
///
/// A pipeline must be free of these errors and of those of [`validate_config`](crate::validate_config()). The opt-out
/// selects the advice in the messages.
#[must_use]
pub fn validate_start_up(
    catalogue: &Catalogue,
    config: &Value,
    opt_out: OptOut,
) -> Vec<Diagnostic> {
    let mut problems = DiagnosticList::default();
    let components = config.as_object().into_iter().flat_map(components);
    for sink in components.filter(|component| component.family == ComponentKind::Sink) {
        confinement::validate(catalogue, &sink, opt_out, &mut problems);
    }
    problems.into_sorted()
}

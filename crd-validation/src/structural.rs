//! Structural layer: validates an object by the schema as the API server does.
//!
//! The order of the checks, the conditions under which checks are skipped, and the messages are those of
//! <https://pkg.go.dev/k8s.io/kube-openapi/pkg/validation/validate>.

mod embedded_resource;
mod list_type;
mod number;
mod outcome;
mod scale_subresource;
mod validate;

use crate::correlation::Correlation;
use crate::layer::{LayerContext, ValidationLayer};
use crate::report::Report;

/// Validator for the structural schema.
pub(crate) struct Structural;

impl ValidationLayer for Structural {
    fn validate(&self, case: &LayerContext<'_>, report: &mut Report<'_>) {
        let correlation = case
            .old
            .map(|old| Correlation::new(case.schema, case.object, old));
        validate::root(case, correlation, report);
        scale_subresource::validate(case, report);
        embedded_resource::validate(case, report);
        list_type::validate(case, report);
    }
}

//! Errors of function calls.

use vrl::diagnostic::{Label, Span};
use vrl::prelude::{DiagnosticMessage, ExpressionError};

/// Returns an error for a function call.
pub(crate) fn wrong(
    message: impl Into<String>,
    label: &str,
    span: Span,
) -> Box<dyn DiagnosticMessage> {
    Box::new(ExpressionError::Error {
        message: message.into(),
        labels: vec![Label::primary(label, span)],
        notes: Vec::new(),
    })
}

//! Interface of the layers: their input, and the function that each implements.

use serde_json::Value;

use crate::cel::CelValidator;
use crate::report::Report;
use crate::schema::Schema;
use crate::schema::scale::Scale;

/// Validator of one layer.
pub(crate) trait ValidationLayer {
    /// Adds all errors of the object to the report.
    fn validate(&self, case: &LayerContext<'_>, report: &mut Report<'_>);
}

/// Input of a layer.
pub(crate) struct LayerContext<'a> {
    pub(crate) schema: &'a Schema,
    /// CEL rules of the schema; `None` if it has none.
    pub(crate) cel: Option<&'a CelValidator>,
    /// If true, the status is a subresource: it is updated separately from the object.
    pub(crate) has_status_subresource: bool,
    /// Values on which the scale subresource depends, if the kind has one.
    pub(crate) scale: Option<&'a Scale>,
    /// The object, with defaults filled.
    pub(crate) object: &'a Value,
    /// The object that is replaced, with defaults filled. Errors that it has too are ratcheted.
    pub(crate) old: Option<&'a Value>,
    /// The object with which transition rules compare.
    pub(crate) before: Option<&'a Value>,
    /// If true, the caller needs to know only whether there is any error, not which.
    pub(crate) is_enough_to_know: bool,
}

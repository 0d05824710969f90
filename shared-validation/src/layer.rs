//! Interface of a layer that a kind adds to its CRD.

use serde_json::Value;

use crate::operation::Operation;
use crate::policy::Policy;
use crate::report::Report;

/// Validator of one layer.
pub(crate) trait ValidationLayer: Send + Sync {
    /// Adds all errors of the object to the report.
    fn validate(&self, case: &LayerContext<'_>, report: &mut Report<'_>);
}

/// Input of a layer.
pub(crate) struct LayerContext<'a> {
    pub(crate) operation: Operation,
    /// The object, with defaults filled.
    pub(crate) object: &'a Value,
    /// The object that is replaced, with defaults filled. Errors that it has too are ratcheted.
    pub(crate) old: Option<&'a Value>,
    /// The object with which transition rules compare.
    pub(crate) before: Option<&'a Value>,
    /// Policy that sets the actions of Rust rules.
    pub(crate) policy: Option<&'a Policy>,
    /// Related objects that rules may read.
    pub(crate) related: Option<&'a Value>,
}

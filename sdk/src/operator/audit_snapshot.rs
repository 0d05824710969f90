//! Related objects of the objects that `audit` validates.

use serde_json::Value;

/// Snapshot of objects in a cluster, from which `audit` takes what the rules of a kind receive as [related
/// objects](lockstep_shared_validation::RuleContext::related). It replaces
/// [`Reconciler::related_for_validation`](lockstep_controller::Reconciler::related_for_validation), which needs a
/// running controller.
///
/// # Expected flow
///
/// First, all objects of the included kinds are added. Then the related objects of each validated object are read.
///
/// ```
/// use lockstep_sdk::AuditSnapshot;
/// use serde_json::{Value, json};
///
/// /// Names of all hosts, so that a rule finds one that occurs twice.
/// #[derive(Default)]
/// struct Hosts(Vec<Value>);
///
/// impl AuditSnapshot for Hosts {
///     fn includes(&self, kind: &str) -> bool {
///         kind == "Website"
///     }
///
///     fn add(&mut self, object: &Value) {
///         self.0.push(object["spec"]["host"].clone());
///     }
///
///     fn related(&self, _object: &Value) -> Value {
///         json!({"hosts": self.0})
///     }
/// }
/// ```
pub trait AuditSnapshot {
    /// Returns true if objects of this kind belong in the snapshot.
    fn includes(&self, kind: &str) -> bool;

    /// Adds an object.
    fn add(&mut self, object: &Value);

    /// Returns what the rules receive for an object as related objects, or null.
    fn related(&self, object: &Value) -> Value;
}

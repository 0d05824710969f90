//! Objects whose reconciliation a user has paused.

use kube::Resource;

use crate::predicate::UpdateEvent;

/// Annotation that pauses an object, with the value `true`.
pub(crate) const ANNOTATION: &str = "lockstep.dev/paused";

/// Returns true if an object is paused.
pub(crate) fn is_paused(object: &impl Resource) -> bool {
    let annotations = object.meta().annotations.as_ref();
    annotations.is_some_and(|all| all.get(ANNOTATION).is_some_and(|value| value == "true"))
}

/// Returns true if an object has just been paused or resumed.
pub(crate) fn pause_changed<T: Resource>(change: &UpdateEvent<'_, T>) -> bool {
    change.changed(|object| is_paused(object))
}

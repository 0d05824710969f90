//! Objects that somebody wants left alone for a while.

use kube::Resource;

use crate::predicate::UpdateEvent;

/// The annotation that makes an object one, with the value `true`.
pub(crate) const ANNOTATION: &str = "lockstep.dev/paused";

/// Whether an object is to be left alone.
pub(crate) fn is_paused(object: &impl Resource) -> bool {
    let annotations = object.meta().annotations.as_ref();
    annotations.is_some_and(|all| all.get(ANNOTATION).is_some_and(|value| value == "true"))
}

/// Whether somebody has just asked for that, or for its end.
pub(crate) fn pause_changed<T: Resource>(change: &UpdateEvent<'_, T>) -> bool {
    change.changed(|object| is_paused(object))
}

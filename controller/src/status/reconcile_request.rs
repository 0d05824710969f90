//! Reconciliations that a user has requested with an annotation.

use std::collections::HashMap;

use kube::Resource;
use parking_lot::Mutex;

use crate::predicate::UpdateEvent;

/// Annotation that requests a reconciliation whenever its value changes.
pub(crate) const ANNOTATION: &str = "lockstep.dev/reconcile-requested-at";

/// Status field with the value of the annotation at the last reconciliation.
pub(crate) const HANDLED: &str = "lastHandledReconcileAt";

/// Returns the value of the annotation.
fn value(object: &impl Resource) -> Option<&str> {
    let annotations = object.meta().annotations.as_ref();
    annotations?.get(ANNOTATION).map(String::as_str)
}

/// Returns true if a reconciliation has just been requested.
pub(crate) fn is_requested<T: Resource>(change: &UpdateEvent<'_, T>) -> bool {
    change.changed(|object| value(object).map(String::from))
        && change.after.is_some_and(|after| value(&**after).is_some())
}

/// Requests that this process has seen, by the UIDs of their objects. The status alone does not tell them: a CRD of an
/// earlier release does not have the field, and some kinds have no status.
#[derive(Default)]
pub(crate) struct ReconcileRequests {
    by_uid: Mutex<HashMap<String, Seen>>,
}

#[derive(Default)]
struct Seen {
    value: String,
    is_handled: bool,
}

/// Request that is to be handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReconcileRequest {
    pub(crate) value: String,
    /// If true, this is the first attempt to handle it.
    pub(crate) is_new: bool,
}

impl ReconcileRequests {
    /// Returns the request of an object, unless it has been handled. `handled` is the value in the status.
    pub(crate) fn open(
        &self,
        uid: &str,
        object: &impl Resource,
        handled: Option<&str>,
    ) -> Option<ReconcileRequest> {
        let value = value(object).filter(|value| Some(*value) != handled)?;
        let mut by_uid = self.by_uid.lock();
        let seen = by_uid.entry(uid.to_owned()).or_default();
        let is_new = seen.value != value;
        if is_new {
            *seen = Seen {
                value: value.to_owned(),
                is_handled: false,
            };
        }
        (!seen.is_handled).then(|| ReconcileRequest {
            value: value.to_owned(),
            is_new,
        })
    }

    /// Records that a request of an object has been handled.
    pub(crate) fn complete(&self, uid: &str, request: &ReconcileRequest) {
        let seen = Seen {
            value: request.value.clone(),
            is_handled: true,
        };
        self.by_uid.lock().insert(uid.to_owned(), seen);
    }

    /// Removes the requests of an object.
    pub(crate) fn forget(&self, uid: &str) {
        self.by_uid.lock().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::Secret;
    use serde_json::json;

    use super::*;

    fn object(requested: Option<&str>) -> Secret {
        let annotations = requested.map(|value| json!({ANNOTATION: value}));
        let object = json!({"metadata": {"name": "a", "annotations": annotations}});
        serde_json::from_value(object).expect("a Secret")
    }

    #[test]
    fn a_new_value_requests_a_reconciliation_and_its_removal_does_not() {
        let requests = |before: Option<&str>, after: Option<&str>| {
            let (before, after) = (Arc::new(object(before)), Arc::new(object(after)));
            is_requested(&UpdateEvent {
                before: Some(&before),
                after: Some(&after),
            })
        };
        assert!(requests(None, Some("1")));
        assert!(requests(Some("1"), Some("2")));
        assert!(!requests(Some("1"), Some("1")));
        assert!(!requests(Some("1"), None));
    }

    #[test]
    fn a_request_is_open_until_it_is_handled_and_new_once() {
        let requests = ReconcileRequests::default();
        let open = |value: &str, handled: Option<&str>| {
            let request = requests.open("1", &object(Some(value)), handled);
            request.map(|request| request.is_new)
        };
        assert_eq!(open("a", None), Some(true));
        assert_eq!(open("a", None), Some(false), "it failed before");
        assert_eq!(open("a", Some("a")), None, "the status has it");
        assert_eq!(open("b", Some("a")), Some(true));
        let handled = ReconcileRequest {
            value: "b".to_owned(),
            is_new: true,
        };
        requests.complete("1", &handled);
        assert_eq!(open("b", None), None, "the status cannot be written");
        assert_eq!(open("c", None), Some(true));
        requests.forget("1");
        assert_eq!(open("c", None), Some(true));
        assert_eq!(requests.open("1", &object(None), None), None);
    }
}

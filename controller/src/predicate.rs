//! Predicates: functions that decide which changes of an object trigger a reconciliation.
//!
//! ```
//! use k8s_openapi::api::core::v1::Secret;
//! use lockstep_controller::{Reference, Watch, predicate};
//!
//! // A rotated certificate is of interest, and a note of an administrator is not.
//! let watch = Watch::new::<Secret>(|_| vec![Reference::Name("certificate".to_owned())])
//!     .metadata_only()
//!     .filter(|change| predicate::annotation_changed(&["example.com/serial"], change));
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Resource;

/// Change of an object. A new object has no state before, a deleted one no state after.
#[derive(Debug)]
pub struct UpdateEvent<'a, T> {
    /// State when it was last seen.
    pub before: Option<&'a Arc<T>>,
    /// Current state.
    pub after: Option<&'a Arc<T>>,
}

impl<T: Resource> UpdateEvent<'_, T> {
    /// Returns true if the object was created or deleted, or if the value that `of` returns has changed.
    pub fn changed<V: PartialEq>(&self, of: impl Fn(&T) -> V) -> bool {
        match (self.before, self.after) {
            (Some(before), Some(after)) => of(before) != of(after),
            _ => true,
        }
    }
}

/// Passes every change except those of a status that is a subresource, and of metadata other than finalizers:
/// changes of the spec, the start of a deletion, and its progress.
pub fn generation_or_finalizers_changed<T: Resource>(change: &UpdateEvent<'_, T>) -> bool {
    change.changed(|object| {
        let meta = object.meta();
        (
            meta.uid.clone(),
            meta.generation,
            meta.deletion_timestamp.is_some(),
            meta.finalizers.clone(),
        )
    })
}

/// Passes a change of any of these annotations.
pub fn annotation_changed<T: Resource>(names: &[&str], change: &UpdateEvent<'_, T>) -> bool {
    change.changed(|object| picked(object.meta().annotations.as_ref(), names))
}

/// Passes a change of any of these labels.
pub fn label_changed<T: Resource>(names: &[&str], change: &UpdateEvent<'_, T>) -> bool {
    change.changed(|object| picked(object.meta().labels.as_ref(), names))
}

fn picked(all: Option<&BTreeMap<String, String>>, names: &[&str]) -> Vec<Option<String>> {
    let values = names.iter().map(|name| all?.get(*name).cloned());
    values.collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;
    use serde_json::{Value, json};

    use super::*;

    fn secret(metadata: Value) -> Secret {
        let mut metadata = metadata;
        metadata["name"] = json!("a");
        serde_json::from_value(json!({"metadata": metadata})).expect("a Secret")
    }

    fn passes(
        predicate: fn(&UpdateEvent<'_, Secret>) -> bool,
        before: Value,
        after: Value,
    ) -> bool {
        let (before, after) = (Arc::new(secret(before)), Arc::new(secret(after)));
        predicate(&UpdateEvent {
            before: Some(&before),
            after: Some(&after),
        })
    }

    #[test]
    fn changes_of_spec_deletion_and_finalizers_pass_and_other_metadata_does_not() {
        let passes = |before, after| passes(generation_or_finalizers_changed, before, after);
        let deleted = "2026-01-05T10:00:00Z";
        let base =
            || json!({"uid": "1", "generation": 1, "finalizers": ["f"], "resourceVersion": "1"});
        let with = |name: &str, value: Value| {
            let mut metadata = base();
            metadata[name] = value;
            metadata
        };
        for (name, value, expected) in [
            ("resourceVersion", json!("2"), false),
            ("annotations", json!({"a": "b"}), false),
            ("labels", json!({"a": "b"}), false),
            ("generation", json!(2), true),
            ("deletionTimestamp", json!(deleted), true),
            ("finalizers", json!([]), true),
            ("finalizers", json!(["f", "g"]), true),
            ("uid", json!("2"), true),
        ] {
            let printed = value.to_string();
            assert_eq!(
                passes(base(), with(name, value)),
                expected,
                "{name} {printed}"
            );
        }
    }

    #[test]
    fn creation_and_deletion_always_pass() {
        let object = Arc::new(secret(json!({})));
        for (before, after) in [(None, Some(&object)), (Some(&object), None)] {
            assert!(generation_or_finalizers_changed(&UpdateEvent {
                before,
                after
            }));
        }
    }
}

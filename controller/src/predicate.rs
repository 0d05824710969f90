//! Which changes of an object are worth a round.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Resource;

/// An object before and after something happened to it. One that is new has no before, one that is gone
/// no after.
#[derive(Debug)]
pub struct UpdateEvent<'a, T> {
    /// As it was last seen.
    pub before: Option<&'a Arc<T>>,
    /// As it is now.
    pub after: Option<&'a Arc<T>>,
}

impl<T: Resource> UpdateEvent<'_, T> {
    /// Whether it came, went, or differs in what is looked at.
    pub fn changed<V: PartialEq>(&self, of: impl Fn(&T) -> V) -> bool {
        match (self.before, self.after) {
            (Some(before), Some(after)) => of(before) != of(after),
            _ => true,
        }
    }
}

/// Every change but those of a status that is a subresource, and of metadata other than finalizers: what
/// an author asks for, the begin of a deletion, and how far it got.
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

/// A change of any of these annotations.
pub fn annotation_changed<T: Resource>(names: &[&str], change: &UpdateEvent<'_, T>) -> bool {
    change.changed(|object| picked(object.meta().annotations.as_ref(), names))
}

/// A change of any of these labels.
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
    fn what_an_author_asks_for_is_told_from_what_a_controller_reports() {
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
    fn what_comes_and_what_goes_is_always_worth_a_round() {
        let object = Arc::new(secret(json!({})));
        for (before, after) in [(None, Some(&object)), (Some(&object), None)] {
            assert!(generation_or_finalizers_changed(&UpdateEvent {
                before,
                after
            }));
        }
    }
}

//! Other owners of resources in the external system, and what they have where an object wants its own.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::chaos::expectations::{contains, is_unchanged};
use crate::chaos::violation::{Property, Violation};
use crate::chaos::workload::Workload;

/// UID of an object of another cluster.
const FOREIGN_UID: &str = "00000000-0000-4000-8000-000000000000";

impl Workload {
    /// Puts what an object will want into the external system, for another owner.
    pub(super) async fn occupy(&mut self, name: &str, spec: &Value) {
        let object = |uid: &str| {
            let mut object = self.object(name, Some(spec));
            object["metadata"]["uid"] = uid.into();
            (self.trial.expectations.external)(&object)
        };
        let (foreign, own) = (object(FOREIGN_UID), object("another"));
        let Some(content) = foreign.iter().find(|it| !own.contains(it)) else {
            // The system does not know who owns a resource.
            return;
        };
        let before = self.trial.resources().await;
        let id = format!("foreign-{}", self.occupations);
        self.occupations += 1;
        let content = content.clone();
        self.trial.set_resource(&id, Some(content.clone())).await;
        let mut after = self.trial.resources().await;
        let stored = foreign_resource(&before, &after, &id, &content);
        let Some((id, stored)) = stored.and_then(|id| after.remove_entry(&id)) else {
            return;
        };
        self.note(name, &format!("another owner: has {stored}"));
        // The system may have fields of its own, such as a state that changes with time.
        self.foreign.insert(id.clone(), content);
        let wanted = self.wanted.entry(name.to_owned()).or_default();
        wanted.occupied_by.push(id);
    }

    /// Removes what another owner has where an object wants its own.
    pub(super) async fn vacate(&mut self, name: &str, id: &str) {
        self.note(name, &format!("another owner: removes {id}"));
        let expected = self.foreign.remove(id).unwrap_or_default();
        let found = self.trial.resources().await.remove(id);
        if !is_unchanged(found.as_ref(), &expected) {
            let violation = Violation::new(
                Property::ExternalState,
                name,
                format!("the resource of another owner is unchanged: {expected}"),
                found.unwrap_or_default().to_string(),
            );
            self.trial.violate(violation);
        }
        self.trial.disturb(name, id, None).await;
        let wanted = self.wanted.entry(name.to_owned()).or_default();
        wanted.occupied_by.retain(|it| it != id);
    }

    /// Removes all resources of others.
    pub(crate) async fn vacate_all(&mut self) {
        let all = self.wanted.iter();
        let occupied = all.flat_map(|(name, wanted)| {
            wanted
                .occupied_by
                .iter()
                .map(|id| (name.clone(), id.clone()))
        });
        for (name, id) in occupied.collect::<Vec<_>>() {
            self.vacate(&name, &id).await;
        }
    }
}

/// Returns the id of the resource that another owner has just set. Meanwhile, the operator may have changed other resources:
/// only one with the content that was set is the other owner's. A system that identifies resources by their contents uses
/// another id than the one that was asked for.
///
/// If no resource has the content any more, it is the one with the id that was asked for: its owner is not respected.
fn foreign_resource(
    before: &BTreeMap<String, Value>,
    after: &BTreeMap<String, Value>,
    id: &str,
    content: &Value,
) -> Option<String> {
    let is_new = |id: &str, stored: &Value| before.get(id) != Some(stored);
    let set = after
        .iter()
        .find(|(id, stored)| is_new(id, stored) && contains(stored, content));
    let set = set.map(|(id, _)| id.clone());
    set.or_else(|| after.contains_key(id).then(|| id.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resources<const N: usize>(all: [(&str, Value); N]) -> BTreeMap<String, Value> {
        let all = all.into_iter();
        all.map(|(id, content)| (id.to_owned(), content)).collect()
    }

    #[test]
    fn what_the_operator_changes_meanwhile_is_not_of_another_owner() {
        let content = json!({"name": "delta", "owner": FOREIGN_UID});
        let stored = json!({"name": "delta", "owner": FOREIGN_UID, "created": 1});
        let before = resources([("alpha", json!({"name": "alpha", "owner": "1", "size": 1}))]);
        let found = |after: BTreeMap<String, Value>| {
            foreign_resource(&before, &after, "foreign-0", &content)
        };
        let changed = ("alpha", json!({"name": "alpha", "owner": "1", "size": 2}));
        let new = ("bravo", json!({"name": "bravo", "owner": "2"}));
        let after = resources([changed.clone(), new.clone(), ("delta", stored)]);
        assert_eq!(found(after).as_deref(), Some("delta"));
        // The operator has taken it over already.
        let taken = ("foreign-0", json!({"name": "delta", "owner": "4"}));
        let after = resources([changed.clone(), new.clone(), taken]);
        assert_eq!(found(after).as_deref(), Some("foreign-0"));
        // A system without owners ignores it.
        assert_eq!(found(resources([changed, new])), None);
    }

    #[test]
    fn a_resource_that_was_there_before_is_not_the_new_one() {
        let content = json!({"owner": FOREIGN_UID});
        let before = resources([("a", content.clone())]);
        let after = resources([("a", content.clone()), ("z", content.clone())]);
        let found = foreign_resource(&before, &after, "foreign-1", &content);
        assert_eq!(found.as_deref(), Some("z"));
    }
}

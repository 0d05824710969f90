//! The children that there are, by whose they are.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use kube::ResourceExt;
use kube::api::DynamicObject;

use super::OWNER_LABEL;
use super::owner::label;
use crate::predicate::Change;

/// Where a child is: the place of its type in the operator's list, its namespace, and its name.
pub(crate) type Place = (usize, String, String);

/// The children of one owner.
pub(crate) type Children = BTreeMap<Place, Arc<DynamicObject>>;

/// The children of every owner, as the watches have brought them.
#[derive(Default)]
pub(crate) struct Observed {
    by_owner: Mutex<HashMap<String, Children>>,
}

impl Observed {
    /// Takes what has become of a child, and says whose it is or was.
    pub(crate) fn saw(&self, type_: usize, change: &Change<'_, DynamicObject>) -> Vec<String> {
        let mut owners = Vec::new();
        let mut by_owner = self.by_owner.lock().unwrap_or_else(PoisonError::into_inner);
        let place = |child: &DynamicObject| {
            let namespace = child.namespace().unwrap_or_default();
            (type_, namespace, child.name_any())
        };
        if let Some(before) = change.before
            && let Some(owner) = label(before, OWNER_LABEL)
            && let Some(children) = by_owner.get_mut(owner)
        {
            children.remove(&place(before));
            if children.is_empty() {
                by_owner.remove(owner);
            }
            owners.push(owner.to_owned());
        }
        if let Some(after) = change.after
            && let Some(owner) = label(after, OWNER_LABEL)
        {
            let children = by_owner.entry(owner.to_owned()).or_default();
            children.insert(place(after), Arc::clone(after));
            if owners.first().is_none_or(|before| before != owner) {
                owners.push(owner.to_owned());
            }
        }
        owners
    }

    /// The children of an owner.
    pub(crate) fn of(&self, uid: &str) -> Children {
        let by_owner = self.by_owner.lock().unwrap_or_else(PoisonError::into_inner);
        by_owner.get(uid).cloned().unwrap_or_default()
    }
}

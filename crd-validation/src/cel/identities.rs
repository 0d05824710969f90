//! Identities of the items of a list of type `set` or `map`.

use ::cel::ExecutionError;
use ::cel::common::value::Val;

use crate::cel::map_key::{Identified, Identity, Positions};

/// Identities of the items of a list, in its order.
#[derive(Clone, Debug)]
pub(crate) struct Identities {
    pub(super) by: Identified,
    pub(super) own: Vec<Identity>,
}

impl Identities {
    /// Returns the identities of a list, if its items have any.
    pub(crate) fn of(list: &dyn Val) -> Option<&Self> {
        list.as_any()?.downcast_ref()
    }

    /// Returns the positions of the items by key.
    pub(super) fn positions(&self) -> Result<Positions<'_>, ExecutionError> {
        let mut positions = Positions::default();
        for (position, identity) in self.own.iter().enumerate() {
            positions.put(identity, position)?;
        }
        Ok(positions)
    }

    /// Returns the identities of another list. A list of type `map` from the data keeps the identities of its
    /// data; in all other cases, they are computed from the CEL values.
    pub(super) fn of_others(&self, list: &dyn Val, items: &[&dyn Val]) -> Vec<Identity> {
        match (&self.by, Self::of(list)) {
            (Identified::By(_), Some(others)) => others.own.clone(),
            _ => items.iter().map(|item| self.by.made(*item)).collect(),
        }
    }
}

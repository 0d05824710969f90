//! Modifications of an instance: lists of changes of its settings.

pub(crate) mod accepted_changes;
pub(crate) mod outcomes;
pub(crate) mod requested;
pub(crate) mod unaccepted_changes;

use crate::aws::rds_client::request::Request;
use crate::settings::{self, Call, Change, Setting, is_changed};

/// Modification to request from RDS: the changes of the settings that differ, in the order of the table of settings.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Modification(Vec<Change>);

impl Modification {
    /// Returns the modification that changes one setting.
    pub(crate) fn with<S: Setting>(value: S::Value) -> Self {
        Self(vec![Change::new::<S>(value)])
    }

    /// Changes a setting to this value, or no longer.
    pub(crate) fn set<S: Setting>(&mut self, value: Option<S::Value>) {
        self.0.retain(|change| change.field != S::FIELD);
        self.0.extend(value.map(Change::new::<S>));
        self.sort();
    }

    /// Returns the value to which a setting is changed.
    pub(crate) fn get<S: Setting>(&self) -> Option<&S::Value> {
        self.0.iter().find_map(Change::value::<S>)
    }

    /// Returns true if a setting is changed.
    pub(crate) fn has<S: Setting>(&self) -> bool {
        is_changed::<S>(&self.0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if it changes a setting with this call.
    pub(crate) fn needs(&self, call: Call) -> bool {
        self.0.iter().any(|change| change.call == call)
    }

    /// Returns the spec fields that differ, for messages.
    pub(crate) fn fields(&self) -> Vec<&'static str> {
        self.0.iter().map(|change| change.field).collect()
    }

    /// Returns the parts that are requested separately from the start.
    pub(crate) fn requests(&self) -> [Self; 4] {
        let calls = [Call::Access, Call::Storage, Call::Rest, Call::Tags];
        calls.map(|call| {
            let changes = self.0.iter().filter(|change| change.call == call);
            changes.cloned().collect()
        })
    }

    /// Returns the groups, of which each can be requested alone.
    pub(crate) fn groups(&self) -> Vec<Self> {
        let mut groups: Vec<(&str, Self)> = Vec::new();
        for change in &self.0 {
            let with = change.goes_with(&self.0);
            match groups.iter_mut().find(|(name, _)| *name == with) {
                Some((_, group)) => group.0.push(change.clone()),
                None => groups.push((with, Self(vec![change.clone()]))),
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// Returns one modification with the changes of these.
    pub(crate) fn from_parts(parts: impl IntoIterator<Item = Self>) -> Self {
        parts.into_iter().flat_map(|part| part.0).collect()
    }

    /// Returns the request with all changes.
    pub(crate) fn put(&self, request: Request) -> Request {
        let changes = self.0.iter();
        changes.fold(request, |request, change| change.put(request))
    }

    fn sort(&mut self) {
        self.0.sort_by_key(|change| settings::place(change.field));
    }
}

impl FromIterator<Change> for Modification {
    fn from_iter<T: IntoIterator<Item = Change>>(changes: T) -> Self {
        let mut all = Self(changes.into_iter().collect());
        all.sort();
        all
    }
}

#[cfg(test)]
mod tests;

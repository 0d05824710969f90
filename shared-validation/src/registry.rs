//! Registry of validators, by API group and kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::validator::Validator;

/// Registry of the rulesets of all kinds.
#[derive(Clone, Default)]
pub struct ValidatorRegistry {
    by_kind: BTreeMap<(String, String), Arc<dyn Validator>>,
}

impl ValidatorRegistry {
    /// Registers a kind. A later registration for the same group and kind replaces an earlier one.
    #[must_use]
    pub fn register(mut self, ruleset: Arc<dyn Validator>) -> Self {
        self.by_kind.insert(
            (ruleset.group().to_owned(), ruleset.kind().to_owned()),
            ruleset,
        );
        self
    }

    /// Returns the ruleset of a group and kind.
    #[must_use]
    pub fn get(&self, group: &str, kind: &str) -> Option<&Arc<dyn Validator>> {
        self.by_kind.get(&(group.to_owned(), kind.to_owned()))
    }

    /// Returns all rulesets, sorted by group and kind.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Validator>> {
        self.by_kind.values()
    }
}

//! Every kind that is judged here, by group and kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ruleset::Validator;

/// The rulesets of all registered kinds.
#[derive(Clone, Default)]
pub struct ValidatorRegistry {
    by_kind: BTreeMap<(String, String), Arc<dyn Validator>>,
}

impl ValidatorRegistry {
    /// Adds a kind. The last one registered for a group and kind stands.
    #[must_use]
    pub fn register(mut self, ruleset: Arc<dyn Validator>) -> Self {
        self.by_kind.insert(
            (ruleset.group().to_owned(), ruleset.kind().to_owned()),
            ruleset,
        );
        self
    }

    /// The ruleset of a group and kind.
    #[must_use]
    pub fn get(&self, group: &str, kind: &str) -> Option<&Arc<dyn Validator>> {
        self.by_kind.get(&(group.to_owned(), kind.to_owned()))
    }

    /// All rulesets, by group and kind.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Validator>> {
        self.by_kind.values()
    }
}

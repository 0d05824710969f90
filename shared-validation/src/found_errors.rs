//! Errors that one run of a rule finds. What is kept of them is bounded; which of them deny is known of all.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crd_validation::{Bounded, FieldError, RatchetedViolations, identity};

/// Errors of a rule, apart from those that are ratcheted.
#[derive(Default)]
pub(crate) struct FoundErrors {
    known: KnownErrors,
    /// Errors that are not ratcheted.
    pub(crate) new: Bounded<FieldError>,
    /// Errors that are ratcheted.
    pub(crate) ratcheted: Bounded<FieldError>,
}

/// Errors of a rule that are known without its present run.
#[derive(Default)]
pub(crate) struct KnownErrors {
    /// Errors of the old object. They are ratcheted.
    pub(crate) old: Option<Fingerprints>,
    /// Errors of the object without related objects, if the rule has read any.
    pub(crate) alone: Option<Fingerprints>,
    pub(crate) ratcheting: Option<Ratcheting>,
}

/// Identity of the errors of a run of a rule across validations, besides their paths.
pub(crate) struct Ratcheting {
    pub(crate) rule: &'static str,
    /// Fingerprint of the fields that the rule reads.
    pub(crate) inputs: u64,
    /// Errors of the object that were ratcheted in an earlier validation.
    pub(crate) known: Option<Arc<RatchetedViolations>>,
}

impl Ratcheting {
    fn identity(&self, error: &FieldError) -> u64 {
        identity(self.rule, &error.path, self.inputs)
    }

    fn was_ratcheted(&self, error: &FieldError) -> bool {
        let known = self.known.as_ref();
        known.is_some_and(|known| known.contains(self.rule, &error.path, self.inputs))
    }
}

impl FoundErrors {
    pub(crate) fn new(known: KnownErrors) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }

    /// Returns true if the rule has found no error.
    pub(crate) fn is_empty(&self) -> bool {
        self.new.is_empty() && self.ratcheted.is_empty()
    }

    pub(crate) fn add(&mut self, error: FieldError) {
        let KnownErrors {
            old, ratcheting, ..
        } = &self.known;
        // A conflict with related objects lasts only as long as these objects exist.
        if self.is_of_related(&error) {
            return self.new.push(error);
        }
        let was_there = old.as_ref().is_some_and(|old| old.has(&error));
        let ratcheting = ratcheting.as_ref();
        let identity = ratcheting.map(|ratcheting| ratcheting.identity(&error));
        if was_there || ratcheting.is_some_and(|ratcheting| ratcheting.was_ratcheted(&error)) {
            self.ratcheted.push_identified(error, identity);
        } else {
            self.new.push_identified(error, identity);
        }
    }

    /// Returns true if the error is a conflict with related objects: the object alone does not have it.
    pub(crate) fn is_of_related(&self, error: &FieldError) -> bool {
        let alone = self.known.alone.as_ref();
        alone.is_some_and(|alone| !alone.has(error))
    }
}

/// Property of an error by which it is recognized.
#[derive(Clone, Copy)]
pub(crate) enum Identity {
    /// Type and path.
    TypeAndPath,
    /// Everything.
    Whole,
}

/// Fingerprints of any number of errors, of eight bytes each.
pub(crate) struct Fingerprints {
    identity: Identity,
    found: HashSet<u64>,
}

impl Fingerprints {
    pub(crate) fn new(identity: Identity) -> Self {
        Self {
            identity,
            found: HashSet::new(),
        }
    }

    pub(crate) fn add(&mut self, error: &FieldError) {
        self.found.insert(self.fingerprint(error));
    }

    fn has(&self, error: &FieldError) -> bool {
        !self.found.is_empty() && self.found.contains(&self.fingerprint(error))
    }

    fn fingerprint(&self, error: &FieldError) -> u64 {
        let mut hasher = DefaultHasher::new();
        (error.error_type, &error.path).hash(&mut hasher);
        if let Identity::Whole = self.identity {
            (error.body(), &error.span, &error.hints).hash(&mut hasher);
        }
        hasher.finish()
    }
}

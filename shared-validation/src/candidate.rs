//! What is judged.

use serde_json::Value;

use crate::accepted::LastValidated;
use crate::field_path::FieldPath;
use crate::policy::Policy;
use crate::sighting::CrdMatch;

/// What is being done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The object is new.
    Create,
    /// The object replaces another.
    Update,
}

/// What an unknown field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownFields {
    /// Nothing: the API server has pruned the object.
    Ignore,
    /// An error, as under `fieldValidation=Strict`.
    Deny,
}

/// What is judged: an object, what it was, and what is being done to it.
#[derive(Clone, Copy, Debug)]
pub struct ValidationRequest<'a> {
    /// What is being done.
    pub operation: Operation,
    /// The object as written.
    pub object: &'a Value,
    /// The object that it replaces.
    pub old: Option<&'a Value>,
    /// The last values known to be accepted; transitions are judged against them rather than
    /// against `old`, so that an unguarded bad edit can be repaired.
    pub last_validated: Option<&'a LastValidated>,
    /// What an unknown field is.
    pub unknown_fields: UnknownFields,
    /// Fields that stand more than once in the text that the object was read from.
    pub duplicate_keys: &'a [FieldPath],
    /// What violations of Rust rules do; without one, what the rules say themselves.
    pub policy: Option<&'a Policy>,
    /// What rules may know of other objects; without it, they judge the object by itself.
    pub related: Option<&'a Value>,
    /// What the API server judges by.
    pub crd_match: CrdMatch,
}

impl<'a> ValidationRequest<'a> {
    /// A new object.
    #[must_use]
    pub fn create(object: &'a Value) -> Self {
        Self {
            operation: Operation::Create,
            object,
            old: None,
            last_validated: None,
            unknown_fields: UnknownFields::Ignore,
            duplicate_keys: &[],
            policy: None,
            related: None,
            crd_match: CrdMatch::Unknown,
        }
    }

    /// An object that replaces `old`.
    #[must_use]
    pub fn update(object: &'a Value, old: &'a Value) -> Self {
        Self {
            operation: Operation::Update,
            old: Some(old),
            ..Self::create(object)
        }
    }

    /// An object that replaces `old`, if there is one, judged for transitions against what was last
    /// accepted of it.
    #[must_use]
    pub fn for_update(
        object: &'a Value,
        old: Option<&'a Value>,
        accepted: Option<&'a LastValidated>,
    ) -> Self {
        match old {
            Some(old) => Self::update(object, old).with_last_validated(accepted),
            None => Self::create(object),
        }
    }

    /// The same, judged for transitions against what was last accepted.
    #[must_use]
    pub fn with_last_validated(self, accepted: Option<&'a LastValidated>) -> Self {
        Self {
            last_validated: accepted,
            ..self
        }
    }

    /// The same, with unknown fields refused.
    #[must_use]
    pub fn deny_unknown_fields(self) -> Self {
        Self {
            unknown_fields: UnknownFields::Deny,
            ..self
        }
    }

    /// The same, under a policy.
    #[must_use]
    pub fn with_policy(self, policy: &'a Policy) -> Self {
        Self {
            policy: Some(policy),
            ..self
        }
    }

    /// The same, among others of which rules may know this. Null tells nothing.
    #[must_use]
    pub fn with_related(self, others: &'a Value) -> Self {
        Self {
            related: Some(others).filter(|others| !others.is_null()),
            ..self
        }
    }

    /// The same, where the cluster has this CRD.
    #[must_use]
    pub fn with_crd_match(self, crd: CrdMatch) -> Self {
        Self {
            crd_match: crd,
            ..self
        }
    }

    /// The same, with fields that stand more than once refused.
    #[must_use]
    pub fn with_duplicate_keys(self, duplicates: &'a [FieldPath]) -> Self {
        Self {
            duplicate_keys: duplicates,
            ..self
        }
    }

    /// Whether this only changes the metadata of an object that is being deleted. Such a change is
    /// never judged: a finalizer can always be removed.
    pub(crate) fn only_finalizes(&self) -> bool {
        let Some(old) = self.old else { return false };
        // Of the old object: only the API server sets it, whatever an author writes.
        let deleted = old
            .pointer("/metadata/deletionTimestamp")
            .is_some_and(|t| !t.is_null());
        deleted && without_metadata(self.object).eq(without_metadata(old))
    }
}

fn without_metadata(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let fields = object.as_object().into_iter().flatten();
    fields.filter(|(name, _)| *name != "metadata")
}

//! Validation request.

use serde_json::Value;

use crate::accepted::Accepted;
use crate::field_path::FieldPath;
use crate::policy::Policy;
use crate::sighting::ClusterCrd;

/// Operation on the object, as in an `AdmissionRequest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The object is created.
    Create,
    /// The object replaces an existing object.
    Update,
}

/// Treatment of unknown fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownFields {
    /// Unknown fields are ignored. Use this if the API server has already pruned the object.
    Ignore,
    /// Unknown fields are errors, as with `fieldValidation=Strict`.
    Refuse,
}

/// Validation request: an object, the object it replaces, and the context of the operation.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Operation on the object.
    pub operation: Operation,
    /// The object as received, before defaults are filled.
    pub object: &'a Value,
    /// The stored object that is replaced; `None` for a new object.
    pub old: Option<&'a Value>,
    /// Last validated values of the transition fields. If set, transition rules compare with them instead of
    /// `old`, so that an invalid change that was stored while the webhook was down can be reverted.
    pub accepted: Option<&'a Accepted>,
    /// Treatment of unknown fields.
    pub unknown_fields: UnknownFields,
    /// Duplicate fields in the text from which the object was parsed.
    pub duplicates: &'a [FieldPath],
    /// Policy that sets the actions of Rust rules. Without a policy, the severity of each rule applies.
    pub policy: Option<&'a Policy>,
    /// Related objects that rules may read. Without them, rules validate the object alone.
    pub others: Option<&'a Value>,
    /// CRD status: how the CRD in the cluster compares with the compiled one.
    pub crd: ClusterCrd,
}

impl<'a> Candidate<'a> {
    /// Creates a request for a new object.
    #[must_use]
    pub fn create(object: &'a Value) -> Self {
        Self {
            operation: Operation::Create,
            object,
            old: None,
            accepted: None,
            unknown_fields: UnknownFields::Ignore,
            duplicates: &[],
            policy: None,
            others: None,
            crd: ClusterCrd::Unknown,
        }
    }

    /// Creates a request for an object that replaces `old`.
    #[must_use]
    pub fn update(object: &'a Value, old: &'a Value) -> Self {
        Self {
            operation: Operation::Update,
            old: Some(old),
            ..Self::create(object)
        }
    }

    /// Creates an update request if `old` is set and a create request otherwise. Transition rules of an update
    /// compare with the last validated values if there are any.
    #[must_use]
    pub fn replacing(
        object: &'a Value,
        old: Option<&'a Value>,
        accepted: Option<&'a Accepted>,
    ) -> Self {
        match old {
            Some(old) => Self::update(object, old).since(accepted),
            None => Self::create(object),
        }
    }

    /// Sets the last validated values, with which transition rules compare.
    #[must_use]
    pub fn since(self, accepted: Option<&'a Accepted>) -> Self {
        Self { accepted, ..self }
    }

    /// Makes unknown fields an error.
    #[must_use]
    pub fn strict(self) -> Self {
        Self {
            unknown_fields: UnknownFields::Refuse,
            ..self
        }
    }

    /// Sets the policy.
    #[must_use]
    pub fn under(self, policy: &'a Policy) -> Self {
        Self {
            policy: Some(policy),
            ..self
        }
    }

    /// Sets the related objects that rules may read. `null` is ignored.
    #[must_use]
    pub fn among(self, others: &'a Value) -> Self {
        Self {
            others: Some(others).filter(|others| !others.is_null()),
            ..self
        }
    }

    /// Sets the CRD status.
    #[must_use]
    pub fn beside(self, crd: ClusterCrd) -> Self {
        Self { crd, ..self }
    }

    /// Sets the duplicate fields, which are reported as errors.
    #[must_use]
    pub fn repeating(self, duplicates: &'a [FieldPath]) -> Self {
        Self { duplicates, ..self }
    }

    /// Returns true if the request changes only the metadata of an object that is being deleted. Such a request
    /// is never validated, so that a finalizer can always be removed.
    pub(crate) fn only_finalizes(&self) -> bool {
        let Some(old) = self.old else { return false };
        // The timestamp is read from the old object: only the API server can set it there.
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

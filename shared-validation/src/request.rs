//! Validation request.

use crd_validation::FieldPath;
use serde_json::Value;

use crate::crd_match::CrdMatch;
use crate::last_validated::LastValidated;
use crate::operation::Operation;
use crate::policy::Policy;

pub use crd_validation::UnknownFields;

/// Validation request: an object, the object it replaces, and the context of the operation.
///
/// ```
/// use lockstep_shared_validation::{Ruleset, ValidationRequest, Validator};
/// use serde_json::json;
/// # use lockstep_shared_validation::{Rule, Severity, ValidatedResource};
/// # #[derive(serde::Deserialize)]
/// # struct User { spec: Spec }
/// # #[derive(serde::Deserialize)]
/// # struct Spec { name: String }
/// # impl ValidatedResource for User {
/// #     const GROUP: &'static str = "example.com";
/// #     const VERSION: &'static str = "v1";
/// #     const KIND: &'static str = "User";
/// #     fn crd() -> serde_json::Value {
/// #         let spec = json!({"type": "object", "properties": {"name": {"type": "string"}}});
/// #         let schema = json!({"type": "object", "properties": {"spec": spec}});
/// #         json!({"spec": {
/// #             "group": "example.com", "scope": "Namespaced", "names": {"kind": "User", "plural": "users"},
/// #             "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}],
/// #         }})
/// #     }
/// #     fn example() -> serde_json::Value { json!({"spec": {"name": "ada"}}) }
/// #     fn rules() -> Vec<Rule<Self>> {
/// #         vec![Rule {
/// #             id: "reserved-name",
/// #             description: "The name must not be `admin`.",
/// #             severity: Severity::Error,
/// #             reference: "https://example.com/reserved-names",
/// #             fields: &["spec.name"],
/// #             validate: |context, diagnostics| {
/// #                 if context.object.spec.name == "admin" {
/// #                     diagnostics.invalid("spec.name", "admin", "is reserved");
/// #                 }
/// #             },
/// #         }]
/// #     }
/// # }
///
/// let ruleset = Ruleset::<User>::compile()?;
/// let stored = json!({"spec": {"name": "admin"}});
/// assert!(!ruleset.validate(&ValidationRequest::create(&stored)).is_valid());
///
/// // An update that does not introduce the error gets a warning.
/// let labelled = json!({"metadata": {"labels": {"team": "a"}}, "spec": {"name": "admin"}});
/// let result = ruleset.validate(&ValidationRequest::update(&labelled, &stored));
/// assert!(result.is_valid());
/// assert_eq!(result.warnings.len(), 1);
/// # Ok::<(), lockstep_shared_validation::CompileError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ValidationRequest<'a> {
    /// Operation on the object.
    pub operation: Operation,
    /// The object as received, before defaults are filled.
    pub object: &'a Value,
    /// The stored object that is replaced; `None` for a new object.
    pub old: Option<&'a Value>,
    /// Last validated values of the transition fields. If set, transition rules compare with them instead of
    /// `old`, so that an invalid change that was stored while the webhook was down can be reverted.
    pub last_validated: Option<&'a LastValidated>,
    /// Treatment of unknown fields.
    pub unknown_fields: UnknownFields,
    /// Duplicate fields in the text from which the object was parsed.
    pub duplicate_keys: &'a [FieldPath],
    /// Policy that sets the actions of Rust rules. Without a policy, the severity of each rule applies.
    pub policy: Option<&'a Policy>,
    /// Related objects that rules may read. Without them, rules validate the object alone.
    pub related: Option<&'a Value>,
    /// CRD status: how the CRD in the cluster compares with the compiled one.
    pub crd_match: CrdMatch,
}

impl<'a> ValidationRequest<'a> {
    /// Creates a request for a new object.
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
    pub fn for_update(
        object: &'a Value,
        old: Option<&'a Value>,
        last_validated: Option<&'a LastValidated>,
    ) -> Self {
        match old {
            Some(old) => Self::update(object, old).with_last_validated(last_validated),
            None => Self::create(object),
        }
    }

    /// Sets the last validated values, with which transition rules compare.
    #[must_use]
    pub fn with_last_validated(self, last_validated: Option<&'a LastValidated>) -> Self {
        Self {
            last_validated,
            ..self
        }
    }

    /// Makes unknown fields an error.
    #[must_use]
    pub fn deny_unknown_fields(self) -> Self {
        Self {
            unknown_fields: UnknownFields::Deny,
            ..self
        }
    }

    /// Sets the policy.
    #[must_use]
    pub fn with_policy(self, policy: &'a Policy) -> Self {
        Self {
            policy: Some(policy),
            ..self
        }
    }

    /// Sets the related objects that rules may read. `null` is ignored.
    #[must_use]
    pub fn with_related(self, others: &'a Value) -> Self {
        Self {
            related: Some(others).filter(|others| !others.is_null()),
            ..self
        }
    }

    /// Sets the CRD status.
    #[must_use]
    pub fn with_crd_match(self, crd: CrdMatch) -> Self {
        Self {
            crd_match: crd,
            ..self
        }
    }

    /// Sets the duplicate fields, which are reported as errors.
    #[must_use]
    pub fn with_duplicate_keys(self, duplicates: &'a [FieldPath]) -> Self {
        Self {
            duplicate_keys: duplicates,
            ..self
        }
    }

    /// Returns the part of the request that concerns the CRD.
    pub(crate) fn of_crd(&self) -> crd_validation::Request<'a> {
        crd_validation::Request {
            object: self.object,
            old: self.old,
            unknown_fields: self.unknown_fields,
            duplicate_keys: self.duplicate_keys,
        }
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

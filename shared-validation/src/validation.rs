//! Validation of a request by the CRD and the rules of its kind, in the order of all steps.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crd_validation::CrdValidator;
use crd_validation::json::{has_floats, reread};
use json_patch::Patch;
use serde_json::Value;

use crate::crd_match::CrdMatch;
use crate::defaults::{self, DynamicDefault};
use crate::layer::{LayerContext, ValidationLayer};
use crate::report::Report;
use crate::request::{UnknownFields, ValidationRequest};
use crate::result::ValidationResult;

/// CRD of a kind and the additions of the kind to it.
pub(crate) struct Validation<'a> {
    pub(crate) crd: &'a CrdValidator,
    pub(crate) dynamic_defaults: &'a [DynamicDefault],
    pub(crate) transition_fields: &'a BTreeSet<String>,
    pub(crate) rust_rules: Option<&'a dyn ValidationLayer>,
}

impl Validation<'_> {
    /// Returns an object as the API server has it after reading it from storage: pruned and with defaults
    /// filled.
    fn with_defaults(&self, object: &Value) -> Value {
        let mut filled = self.crd.with_defaults(object);
        defaults::fill_dynamic(&mut filled, None, self.dynamic_defaults, &mut Vec::new());
        filled
    }

    /// Returns the default patch that [`validate`](Self::validate) would return, without validating the object.
    pub(crate) fn default_patch(&self, request: &ValidationRequest<'_>) -> Patch {
        if request.only_finalizes() {
            return Patch::default();
        }
        let mut object = request.object.clone();
        let mut operations = self.crd.fill_defaults(&mut object);
        if defaults::lacks_dynamic(&object, self.dynamic_defaults) {
            let old = request.old.map(|old| self.with_defaults(old));
            let before = self.old_object(request, &object, old.as_ref());
            defaults::fill_dynamic(
                &mut object,
                before.as_deref(),
                self.dynamic_defaults,
                &mut operations,
            );
        }
        Patch(operations)
    }

    /// Validates a request with all layers of the kind.
    pub(crate) fn validate(&self, request: &ValidationRequest<'_>) -> ValidationResult {
        let mut object = request.object.clone();
        let known = request
            .last_validated
            .map(|last_validated| &last_validated.ratcheted);
        let mut found = crd_validation::Report::new(known);
        if request.only_finalizes() {
            if request.unknown_fields == UnknownFields::Deny {
                self.crd.validate_metadata(&request.of_crd(), &mut found);
            }
            return Report::new(found, None).into_result(object, vec![]);
        }
        self.crd.remove_ignored_fields(&mut object);
        let old = request.old.map(|old| self.with_defaults(old));
        let mut operations = self.crd.fill_defaults(&mut object);
        let before = self.old_object(request, &object, old.as_ref());
        let fills = defaults::fill_dynamic(
            &mut object,
            before.as_deref(),
            self.dynamic_defaults,
            &mut operations,
        );
        let stored = if fills && has_floats(&object) {
            Cow::Owned(reread(&object))
        } else {
            Cow::Borrowed(&object)
        };
        let (old, before) = (old.as_ref(), before.as_deref());
        self.crd.validate_as_received(&request.of_crd(), &mut found);
        // The API server has not validated defaults that were filled only now.
        if fills || !self.has_just_been_validated(request, old) {
            self.crd
                .validate_with_defaults(&stored, old, before, &mut found);
        }
        let mut report = Report::new(found, known);
        if request.crd_match == CrdMatch::Different {
            report.downgrade_errors_to_warnings();
        }
        if let Some(rules) = self.rust_rules {
            let case = LayerContext {
                operation: request.operation,
                object: &stored,
                old,
                before,
                policy: request.policy,
                related: request.related,
            };
            rules.validate(&case, &mut report);
        }
        report.into_result(object, operations)
    }

    /// Returns true if the API server has just evaluated the schema and the CEL rules, with the same old values
    /// for transition rules as here.
    fn has_just_been_validated(
        &self,
        request: &ValidationRequest<'_>,
        old: Option<&Value>,
    ) -> bool {
        let is_as_accepted = request.last_validated.is_none_or(|last_validated| {
            old.is_some_and(|old| last_validated.agrees(old, self.transition_fields))
        });
        request.crd_match == CrdMatch::Same && is_as_accepted
    }

    /// Returns the object with which transition rules compare. All objects have their defaults filled.
    fn old_object<'a>(
        &self,
        request: &ValidationRequest<'_>,
        object: &Value,
        old: Option<&'a Value>,
    ) -> Option<Cow<'a, Value>> {
        match request.last_validated {
            // Usually the last validated values equal the stored ones.
            Some(last_validated)
                if old.is_some_and(|old| last_validated.agrees(old, self.transition_fields)) =>
            {
                old.map(Cow::Borrowed)
            }
            Some(last_validated) => {
                let base = old.unwrap_or(object);
                let mut before = last_validated.overlay(base, self.transition_fields);
                if last_validated.has_been_valid() {
                    // A field that was absent may have a default by now. The API server fills it into the old
                    // object, too.
                    self.crd.fill_defaults(&mut before);
                }
                Some(Cow::Owned(before))
            }
            None => old.map(Cow::Borrowed),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::last_validated::LastValidated;

    /// An object was validated without `spec.mode`. A later release gives the field a default.
    #[test]
    fn a_default_of_a_later_release_is_no_change_of_a_field_that_was_absent() {
        let rule = json!({
            "rule": "has(self.mode) == has(oldSelf.mode) && (!has(self.mode) || self.mode == oldSelf.mode)",
            "message": "is immutable", "fieldPath": ".mode",
        });
        let mode = json!({"type": "string", "maxLength": 8, "default": "a"});
        let spec = json!({
            "type": "object", "properties": {"mode": mode}, "x-kubernetes-validations": [rule],
        });
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let crd = json!({"spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}],
        }});
        let crd = CrdValidator::compile(&crd, "v1").expect("a CRD");
        let fields = crd.transition_fields();
        assert_eq!(fields, ["spec.mode".to_owned()].into());
        let validation = Validation {
            crd: &crd,
            dynamic_defaults: &[],
            transition_fields: &fields,
            rust_rules: None,
        };
        let object = |spec: Value| {
            json!({
                "apiVersion": "example.com/v1", "kind": "Thing",
                "metadata": {"name": "a", "namespace": "b", "generation": 1}, "spec": spec,
            })
        };
        let last_validated = LastValidated::from_object(&object(json!({})), &fields);
        for (spec, is_valid) in [
            (json!({}), true),
            (json!({"mode": "a"}), true),
            (json!({"mode": "b"}), false),
        ] {
            let object = object(spec);
            let request = ValidationRequest::create(&object);
            let request = request.with_last_validated(Some(&last_validated));
            let result = validation.validate(&request);
            assert_eq!(result.is_valid(), is_valid, "{}", result.message());
        }
    }
}

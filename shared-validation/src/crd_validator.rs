//! Validation of one version of a CRD, and the order of all validation steps.

use std::borrow::Cow;
use std::collections::BTreeSet;

use json_patch::Patch;
use serde_json::Value;

use crate::cel::{Cel, CelRule, CelValidator};
use crate::compile_error::CompileError;
use crate::crd_status::CrdMatch;
use crate::defaults::{self, DynamicDefault};
use crate::field_error::{BadValue, FieldError};
use crate::field_path::Cursor;
use crate::layer::{LayerContext, ValidationLayer};
use crate::metadata;
use crate::raw::Tree;
use crate::report::Report;
use crate::request::{Operation, UnknownFields, ValidationRequest};
use crate::result::ValidationResult;
use crate::rule_info;
use crate::rule_info::RuleInfo;
use crate::schema::projection::Projection;
use crate::schema::{Schema, join};
use crate::structural::{Scale, Structural};
use crate::unknown_fields;
use crate::validator::Validator;

/// Validator for one version of a kind, based only on its CRD: the structural schema and the CEL rules.
///
/// Kinds with Rust rules use [`Ruleset`](crate::Ruleset); all other CRDs use this type.
pub struct CrdValidator {
    crd: Value,
    group: String,
    version: String,
    kind: String,
    is_namespaced: bool,
    has_status_subresource: bool,
    pub(crate) scale: Option<Scale>,
    no_fields: BTreeSet<String>,
    /// Projection of an object to the parts that the CRD validates.
    brief: Projection,
    /// Projection of the object that is replaced.
    brief_before: Projection,
    pub(crate) schema: Schema,
    /// CEL rules of the schema; `None` if it has none.
    pub(crate) cel: Option<CelValidator>,
}

/// Additions of a kind to its CRD.
pub(crate) struct ExtraLayers<'a> {
    pub(crate) dynamic_defaults: &'a [DynamicDefault],
    pub(crate) transition_fields: &'a BTreeSet<String>,
    pub(crate) rust_rules: Option<&'a dyn ValidationLayer>,
}

impl CrdValidator {
    /// Compiles one version of a CRD.
    ///
    /// # Errors
    ///
    /// If the CRD has no such version, or uses something that the API server would evaluate differently.
    pub fn compile(crd: &Value, version: &str) -> Result<Self, CompileError> {
        let schema = Schema::of_crd(crd, version)?;
        let cel = CelValidator::compile(&schema, "")?;
        let text = |pointer: &str| {
            crd.pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
        let definition = versions
            .into_iter()
            .flatten()
            .find(|one| one["name"] == version);
        let has_status_subresource =
            definition.is_some_and(|one| !one["subresources"]["status"].is_null());
        let scale = definition.and_then(Scale::of);
        let has_own_status = has_status_subresource && scale.is_none();
        Ok(Self {
            crd: crd.clone(),
            group: text("/spec/group").to_owned(),
            version: version.to_owned(),
            kind: text("/spec/names/kind").to_owned(),
            is_namespaced: text("/spec/scope") != "Cluster",
            has_status_subresource,
            scale,
            no_fields: BTreeSet::new(),
            brief: Projection::of_object(&schema, has_own_status),
            brief_before: Projection::of_replaced(&schema, has_own_status),
            schema,
            cel,
        })
    }

    /// Compiles all served versions of a CRD.
    ///
    /// # Errors
    ///
    /// The errors of [`compile`](Self::compile); also if no version is served.
    pub fn compile_served(crd: &Value) -> Result<Vec<Self>, CompileError> {
        let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
        let served = versions
            .into_iter()
            .flatten()
            .filter(|version| version["served"] != false);
        let names: Vec<_> = served
            .filter_map(|version| version["name"].as_str())
            .collect();
        if names.is_empty() {
            return Err(CompileError::NoSchema {
                version: "any".to_owned(),
            });
        }
        names
            .into_iter()
            .map(|name| Self::compile(crd, name))
            .collect()
    }

    /// Returns the scalar fields that transition rules compare with their old values.
    pub(crate) fn compared_fields(&self) -> BTreeSet<String> {
        let mut fields = BTreeSet::new();
        let mut add = |name: &str, node: &Schema, rule: &CelRule| {
            if !rule.uses_old_self {
                return;
            }
            if node.is_scalar() {
                fields.insert(name.to_owned());
            } else if let Some(field) = &rule.field_path
                && node.properties.get(field).is_some_and(Schema::is_scalar)
            {
                // The rule is attached to an object, and `fieldPath` names the field that it compares.
                fields.insert(join(name, field));
            }
        };
        if let Some(cel) = &self.cel {
            cel.visit_named(&self.schema, "", &mut add);
        }
        fields
    }

    /// Returns true if the objects are namespaced.
    pub(crate) fn is_namespaced(&self) -> bool {
        self.is_namespaced
    }

    /// Returns an object as the API server has it after reading it from storage: pruned and with defaults
    /// filled.
    fn with_defaults(&self, object: &Value, beyond: &ExtraLayers<'_>) -> Value {
        let mut filled = object.clone();
        unknown_fields::prune(&mut filled, &self.schema);
        let mut operations =
            defaults::fill_static(&mut filled, &self.schema, self.has_status_subresource);
        defaults::fill_dynamic(&mut filled, None, beyond.dynamic_defaults, &mut operations);
        filled
    }

    /// Returns the parts of an object that the CRD validates, or `None` if a static default is missing.
    fn unchanged_by_defaults(&self, object: &Tree<'_>, brief: &Projection) -> Option<Value> {
        let mut object = brief.copy(object)?;
        let operations =
            defaults::fill_static(&mut object, &self.schema, self.has_status_subresource);
        operations.is_empty().then_some(object)
    }

    /// Returns true if an object has all defaults that the CRD declares.
    pub(crate) fn has_all_defaults(&self, object: &Tree<'_>) -> bool {
        self.unchanged_by_defaults(object, &self.brief).is_some()
    }

    /// Returns true if the CRD reports no error for an object and the one it replaces, and neither lacks a
    /// default. `false` does not mean that the object is invalid; only [`validate_with`](Self::judge) can decide that.
    pub(crate) fn is_trivially_valid(&self, object: &Tree<'_>, old: Option<&Tree<'_>>) -> bool {
        let Some(object) = self.unchanged_by_defaults(object, &self.brief) else {
            return false;
        };
        let mut stored = None;
        if let Some(old) = old {
            let Some(mut old) = self.unchanged_by_defaults(old, &self.brief_before) else {
                return false;
            };
            if unknown_fields::prune(&mut old, &self.schema) {
                return false;
            }
            stored = Some(old);
        }
        let old = stored.as_ref();
        let case = LayerContext {
            operation: match old {
                Some(_) => Operation::Update,
                None => Operation::Create,
            },
            schema: &self.schema,
            cel: self.cel.as_ref(),
            has_status_subresource: self.has_status_subresource,
            scale: self.scale.as_ref(),
            object: &object,
            // This path does not report errors, so ratcheting is not needed.
            old: old.filter(|_| self.scale.is_some()),
            before: old,
            policy: None,
            related: None,
            is_enough_to_know: true,
        };
        let mut report = Report::default();
        Structural.validate(&case, &mut report);
        if report.is_empty() {
            Cel.validate(&case, &mut report);
        }
        report.is_empty()
    }

    /// Returns the default patch that [`validate_with`](Self::judge) would return, without validating the object.
    pub(crate) fn default_patch(
        &self,
        request: &ValidationRequest<'_>,
        beyond: &ExtraLayers<'_>,
    ) -> Patch {
        if request.only_finalizes() {
            return Patch::default();
        }
        let mut object = request.object.clone();
        let mut operations =
            defaults::fill_static(&mut object, &self.schema, self.has_status_subresource);
        if defaults::lacks_dynamic(&object, beyond.dynamic_defaults) {
            let old = request.old.map(|old| self.with_defaults(old, beyond));
            let before = old_object(request, &object, old.as_ref(), beyond);
            defaults::fill_dynamic(
                &mut object,
                before.as_deref(),
                beyond.dynamic_defaults,
                &mut operations,
            );
        }
        Patch(operations)
    }

    /// Validates a request with all layers of the kind.
    pub(crate) fn validate_with(
        &self,
        request: &ValidationRequest<'_>,
        beyond: &ExtraLayers<'_>,
    ) -> ValidationResult {
        let mut object = request.object.clone();
        if request.only_finalizes() {
            let mut report = Report::default();
            if request.unknown_fields == UnknownFields::Deny {
                self.validate_raw_metadata(request, &mut report);
            }
            return report.into_result(object, vec![]);
        }
        let old = request.old.map(|old| self.with_defaults(old, beyond));
        let mut operations =
            defaults::fill_static(&mut object, &self.schema, self.has_status_subresource);
        let before = old_object(request, &object, old.as_ref(), beyond);
        let fills = defaults::fill_dynamic(
            &mut object,
            before.as_deref(),
            beyond.dynamic_defaults,
            &mut operations,
        );
        let stored = if fills && defaults::has_floats(&object) {
            Cow::Owned(defaults::reread(&object))
        } else {
            Cow::Borrowed(&object)
        };
        let case = LayerContext {
            operation: request.operation,
            schema: &self.schema,
            cel: self.cel.as_ref(),
            has_status_subresource: self.has_status_subresource,
            scale: self.scale.as_ref(),
            object: &stored,
            old: old.as_ref(),
            before: before.as_deref(),
            policy: request.policy,
            related: request.related,
            is_enough_to_know: false,
        };
        let known = request
            .last_validated
            .map_or(&[][..], |accepted| &accepted.ratcheted);
        let mut report = Report::new(known);
        for path in request.duplicate_keys {
            let error = FieldError {
                bad_value: BadValue::Omitted,
                detail: "the field is set more than once; keep only one".to_owned(),
                ..FieldError::duplicate(path.clone(), Value::Null)
            };
            report.deny("repeated", Cursor::Printed(path.as_str()), error);
        }
        if request.unknown_fields == UnknownFields::Deny {
            self.validate_raw(request, &mut report);
        }
        // The API server has not validated defaults that were filled only now.
        if fills || !must_be_validated(request, old.as_ref(), beyond) {
            Structural.validate(&case, &mut report);
            if !report.blocks_cel() {
                Cel.validate(&case, &mut report);
            }
        }
        if request.crd_match == CrdMatch::Different {
            report.downgrade_errors_to_warnings();
        }
        if let Some(typed) = beyond.rust_rules {
            typed.validate(&case, &mut report);
        }
        report.into_result(object, operations)
    }

    /// Validates what the API server checks before it evaluates the schema. Users can get these errors; the
    /// webhook and the controller never receive such objects.
    fn validate_raw(&self, request: &ValidationRequest<'_>, report: &mut Report<'_>) {
        let object = request.object;
        unknown_fields::report(object, &self.schema, report);
        let api_version = if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        };
        for (name, expected) in [("apiVersion", api_version.as_str()), ("kind", &self.kind)] {
            let written = object.get(name).and_then(Value::as_str).unwrap_or_default();
            if written != expected {
                let at = Cursor::Root.child(name);
                let error =
                    FieldError::invalid(at.to_path(), written, format!("must be {expected}"));
                report.deny("type", at, error);
            }
        }
        self.validate_raw_metadata(request, report);
    }

    fn validate_raw_metadata(&self, request: &ValidationRequest<'_>, report: &mut Report<'_>) {
        metadata::validate(request.object, self.is_namespaced, report);
        if let Some(old) = request.old {
            metadata::judge_change(request.object, old, report);
        }
    }
}

/// Returns true if the API server has just evaluated the schema and the CEL rules, with the same old values for
/// transition rules as here.
fn must_be_validated(
    request: &ValidationRequest<'_>,
    old: Option<&Value>,
    beyond: &ExtraLayers<'_>,
) -> bool {
    let is_as_accepted = request.last_validated.is_none_or(|accepted| {
        old.is_some_and(|old| accepted.agrees(old, beyond.transition_fields))
    });
    request.crd_match == CrdMatch::Same && is_as_accepted
}

/// Returns the object with which transition rules compare. All objects have their defaults filled.
fn old_object<'a>(
    request: &ValidationRequest<'_>,
    object: &Value,
    old: Option<&'a Value>,
    beyond: &ExtraLayers<'_>,
) -> Option<Cow<'a, Value>> {
    match request.last_validated {
        // Usually the last validated values equal the stored ones.
        Some(accepted) if old.is_some_and(|old| accepted.agrees(old, beyond.transition_fields)) => {
            old.map(Cow::Borrowed)
        }
        Some(accepted) => {
            let base = old.unwrap_or(object);
            Some(Cow::Owned(accepted.overlay(base, beyond.transition_fields)))
        }
        None => old.map(Cow::Borrowed),
    }
}

impl Validator for CrdValidator {
    fn group(&self) -> &str {
        &self.group
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn kind(&self) -> &str {
        &self.kind
    }

    fn crd(&self) -> &Value {
        &self.crd
    }

    fn rules(&self) -> Vec<RuleInfo> {
        rule_info::of_version(&self.schema, self.cel.as_ref(), self.scale.as_ref(), &[])
    }

    fn transition_fields(&self) -> &BTreeSet<String> {
        &self.no_fields
    }

    fn validate(&self, request: &ValidationRequest<'_>) -> ValidationResult {
        self.validate_with(
            request,
            &ExtraLayers {
                dynamic_defaults: &[],
                transition_fields: &self.no_fields,
                rust_rules: None,
            },
        )
    }
}

//! Validation of objects by one version of a CRD, and the order of all validation steps.

use std::collections::BTreeSet;

use json_patch::PatchOperation;
use serde_json::Value;

use crate::cel::{Cel, CelRule, CelValidator};
use crate::compile_error::CompileError;
use crate::defaults;
use crate::field::error::{BadValue, FieldError};
use crate::field::path::{Cursor, FieldPath};
use crate::json::numbers::{has_floats, reread};
use crate::json::raw::Tree;
use crate::layer::{LayerContext, ValidationLayer};
use crate::metadata;
use crate::report::Report;
use crate::request::{Request, UnknownFields};
use crate::result::ValidationResult;
use crate::rules::{self, CrdRule};
use crate::schema::projection::Projection;
use crate::schema::scale::Scale;
use crate::schema::{Schema, join};
use crate::structural::Structural;
use crate::unknown_fields;

/// Validator of the objects of one version of a CRD: the structural schema and the CEL rules.
///
/// # Expected flow
///
/// [`validate`](Self::validate) does everything that the API server does with an object. A crate that adds rules of
/// its own calls the steps itself: [`fill_defaults`](Self::fill_defaults),
/// [`validate_as_received`](Self::validate_as_received), then
/// [`validate_with_defaults`](Self::validate_with_defaults).
///
/// # Examples
///
/// ```
/// use crd_validation::{CrdValidator, Request};
/// use serde_json::json;
///
/// let crd = json!({
///     "spec": {
///         "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
///         "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": {
///             "type": "object",
///             "properties": {"spec": {"type": "object", "properties": {
///                 "size": {"type": "integer", "minimum": 1, "default": 3},
///             }}},
///         }}}],
///     },
/// });
/// let validator = CrdValidator::compile(&crd, "v1")?;
///
/// let widget = json!({"spec": {}});
/// let result = validator.validate(&Request::create(&widget));
/// assert!(result.is_valid());
/// assert_eq!(result.object["spec"]["size"], 3);
///
/// let widget = json!({"spec": {"size": 0}});
/// let result = validator.validate(&Request::create(&widget));
/// assert_eq!(
///     result.message(),
///     "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
/// );
/// # Ok::<(), crd_validation::CompileError>(())
/// ```
pub struct CrdValidator {
    crd: Value,
    group: String,
    version: String,
    kind: String,
    is_namespaced: bool,
    has_status_subresource: bool,
    scale: Option<Scale>,
    /// Projection of an object to the parts that the CRD validates.
    projection: Projection,
    /// Projection of the object that is replaced.
    old_projection: Projection,
    schema: Schema,
    /// CEL rules of the schema; `None` if it has none.
    cel: Option<CelValidator>,
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
            projection: Projection::of_object(&schema, has_own_status),
            old_projection: Projection::of_replaced(&schema, has_own_status),
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

    /// Returns the API group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Returns the API version that is validated.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the `CustomResourceDefinition`.
    #[must_use]
    pub fn crd(&self) -> &Value {
        &self.crd
    }

    /// Returns the rules of the schema and the CEL rules, sorted by layer and id.
    #[must_use]
    pub fn rules(&self) -> Vec<CrdRule> {
        rules::of_version(&self.schema, self.cel.as_ref(), self.scale.as_ref())
    }

    /// Returns true if a CEL rule is attached to the root of the schema and not to a field.
    #[must_use]
    pub fn has_root_rules(&self) -> bool {
        !self.schema.validations.is_empty()
    }

    /// Returns the scalar fields that transition rules compare with their old values, as dotted paths.
    #[must_use]
    pub fn transition_fields(&self) -> BTreeSet<String> {
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
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        self.is_namespaced
    }

    /// Returns an object as the API server has it after reading it from storage: pruned and with defaults
    /// filled.
    #[must_use]
    pub fn with_defaults(&self, object: &Value) -> Value {
        // The API server writes `1.0` to storage as `1`, so it reads an integer. An object from a file may differ.
        let mut filled = if has_floats(object) {
            reread(object)
        } else {
            object.clone()
        };
        unknown_fields::prune(&mut filled, &self.schema);
        self.fill_defaults(&mut filled);
        filled
    }

    /// Removes what the API server ignores: the namespace of a cluster-scoped object.
    pub fn remove_ignored_fields(&self, object: &mut Value) {
        if !self.is_namespaced {
            metadata::clear_namespace(object);
        }
    }

    /// Fills the defaults that the CRD declares, and returns the changes.
    pub fn fill_defaults(&self, object: &mut Value) -> Vec<PatchOperation> {
        defaults::fill_static(object, &self.schema, self.has_status_subresource)
    }

    /// Returns the parts of an object that the CRD validates, or `None` if a static default is missing.
    fn unchanged_by_defaults(&self, object: &Tree<'_>, projection: &Projection) -> Option<Value> {
        let mut object = projection.copy(object)?;
        let operations = self.fill_defaults(&mut object);
        operations.is_empty().then_some(object)
    }

    /// Returns true if an object has all defaults that the CRD declares.
    #[must_use]
    pub fn has_all_defaults(&self, object: &Tree<'_>) -> bool {
        self.unchanged_by_defaults(object, &self.projection)
            .is_some()
    }

    /// Returns true if the CRD reports no error for an object and the one it replaces, and neither lacks a
    /// default. `false` does not mean that the object is invalid; only [`validate`](Self::validate) can decide that.
    #[must_use]
    pub fn is_trivially_valid(&self, object: &Tree<'_>, old: Option<&Tree<'_>>) -> bool {
        let Some(object) = self.unchanged_by_defaults(object, &self.projection) else {
            return false;
        };
        let mut stored = None;
        if let Some(old) = old {
            let Some(mut old) = self.unchanged_by_defaults(old, &self.old_projection) else {
                return false;
            };
            if unknown_fields::prune(&mut old, &self.schema) {
                return false;
            }
            stored = Some(old);
        }
        let old = stored.as_ref();
        let case = LayerContext {
            schema: &self.schema,
            cel: self.cel.as_ref(),
            has_status_subresource: self.has_status_subresource,
            scale: self.scale.as_ref(),
            object: &object,
            // This path does not report errors, so ratcheting is not needed.
            old: old.filter(|_| self.scale.is_some()),
            before: old,
            is_enough_to_know: true,
        };
        let mut report = Report::default();
        Structural.validate(&case, &mut report);
        if report.is_empty() {
            Cel.validate(&case, &mut report);
        }
        report.is_empty()
    }

    /// Fills the defaults of an object and validates it, as the API server does on a write.
    #[must_use]
    pub fn validate(&self, request: &Request<'_>) -> ValidationResult {
        let mut object = request.object.clone();
        self.remove_ignored_fields(&mut object);
        let old = request.old.map(|old| self.with_defaults(old));
        let operations = self.fill_defaults(&mut object);
        let mut report = Report::default();
        self.validate_as_received(request, &mut report);
        self.validate_with_defaults(&object, old.as_ref(), old.as_ref(), &mut report);
        report.into_result(object, operations)
    }

    /// Validates what the API server checks before it evaluates the schema: duplicate fields and, if unknown fields
    /// are denied, everything that its decoder and the rules for metadata reject.
    pub fn validate_as_received(&self, request: &Request<'_>, report: &mut Report<'_>) {
        duplicates(request.duplicate_keys, report);
        if request.unknown_fields == UnknownFields::Deny {
            self.validate_raw(request.object, report);
            self.validate_metadata(request, report);
        }
    }

    /// Validates an object whose defaults are filled by the schema and, if the schema finds no error that prevents it,
    /// by the CEL rules.
    ///
    /// Errors that `old` has too are ratcheted. Transition rules compare with `before`, usually the same object.
    pub fn validate_with_defaults(
        &self,
        object: &Value,
        old: Option<&Value>,
        before: Option<&Value>,
        report: &mut Report<'_>,
    ) {
        let case = LayerContext {
            schema: &self.schema,
            cel: self.cel.as_ref(),
            has_status_subresource: self.has_status_subresource,
            scale: self.scale.as_ref(),
            object,
            old,
            before,
            is_enough_to_know: false,
        };
        Structural.validate(&case, report);
        if !report.blocks_cel() {
            Cel.validate(&case, report);
        }
    }

    /// Validates what the API server checks before it evaluates the schema. Users can get these errors; a
    /// webhook and a controller never receive such objects.
    fn validate_raw(&self, object: &Value, report: &mut Report<'_>) {
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
    }

    /// Validates the metadata as a client sends it.
    pub fn validate_metadata(&self, request: &Request<'_>, report: &mut Report<'_>) {
        metadata::validate(request.object, self.is_namespaced, report);
        if let Some(old) = request.old {
            metadata::validate_change(request.object, old, report);
        }
    }
}

fn duplicates(paths: &[FieldPath], report: &mut Report<'_>) {
    for path in paths {
        let error = FieldError {
            bad_value: BadValue::Omitted,
            detail: "the field is set more than once; keep only one".to_owned(),
            ..FieldError::duplicate(path.clone(), Value::Null)
        };
        report.deny("repeated", Cursor::Printed(path.as_str()), error);
    }
}

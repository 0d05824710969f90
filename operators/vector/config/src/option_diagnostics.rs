//! Errors for schema findings: the field, its value, and the allowed values.

use std::borrow::Cow;
use std::collections::BTreeSet;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use lockstep_shared_validation::{BadValue, FieldError, FieldPath, did_you_mean};
use serde_json::Value;

use crate::catalogue::{Catalogue, Entry};
use crate::component::{Component, ComponentKind};
use crate::diagnostic::{Check, DiagnosticList, max_kept};
use crate::option_path::below;
use crate::option_words::{Owner, dotted, limit, one_of, plain, type_of, words};
use crate::options::Options;
use crate::unknown_type;

/// Words in the names of options whose values are not printed.
const SECRET: [&str; 7] = [
    "password",
    "passphrase",
    "secret",
    "token",
    "key",
    "credential",
    "auth",
];

/// Validates the options of a component.
pub(crate) fn validate(
    catalogue: &Catalogue,
    component: &Component<'_>,
    problems: &mut DiagnosticList,
) {
    let path = FieldPath::new(component.path());
    let noun = component.family.noun();
    if !component.value.is_object() {
        let detail = format!("a {noun} must be a mapping with a `type` and its options");
        let error = mistyped(path, component.value, &detail);
        return problems.add(Check::Options, error);
    }
    let kind = match component.option("type") {
        Some(Value::String(kind)) => kind,
        None => {
            let detail = format!(
                "set the type of the {noun}, such as `{}`",
                example(component)
            );
            return problems.add(
                Check::Options,
                FieldError::required(path.child("type"), detail),
            );
        }
        Some(other) => {
            let error = mistyped(path.child("type"), other, "must be a string");
            return problems.add(Check::Options, error);
        }
    };
    let Some(entry) = catalogue.entry(component.family, kind) else {
        let detail = unknown_type::describe(catalogue, component.family, kind);
        let error = FieldError::invalid(path.child("type"), kind.as_str(), detail);
        return problems.add(Check::Options, error);
    };
    let value = renamed(entry, component.value, &path, problems);
    let owner = Owner::Component(component.family, kind);
    validate_value(catalogue.options(entry), &value, &path, owner, problems);
}

/// Returns the options with aliases replaced by the names of the catalogue, and reports options that are set under both
/// names.
fn renamed<'a>(
    entry: &Entry,
    value: &'a Value,
    path: &FieldPath,
    problems: &mut DiagnosticList,
) -> Cow<'a, Value> {
    let mut value = Cow::Borrowed(value);
    for (alias, name) in &entry.aliases {
        if value.get(alias).is_none() {
            continue;
        }
        if value.get(name).is_some() {
            let detail =
                format!("is another name of `{name}`, which is also set; remove one of them");
            let error = FieldError::forbidden(path.child(alias), detail);
            problems.add(Check::Options, error);
        }
        if let Some(fields) = value.to_mut().as_object_mut()
            && let Some(option) = fields.remove(alias)
        {
            fields.entry(name.clone()).or_insert(option);
        }
    }
    value
}

/// Validates the global options.
pub(crate) fn validate_globals(
    catalogue: &Catalogue,
    config: &Value,
    problems: &mut DiagnosticList,
) {
    validate_value(
        catalogue.globals(),
        config,
        &FieldPath::root(),
        Owner::Vector,
        problems,
    );
}

fn example(component: &Component<'_>) -> &'static str {
    match component.family {
        ComponentKind::Source => "kubernetes_logs",
        ComponentKind::Transform => "remap",
        ComponentKind::Sink => "loki",
    }
}

fn validate_value(
    options: &Options,
    value: &Value,
    path: &FieldPath,
    owner: Owner<'_>,
    problems: &mut DiagnosticList,
) {
    if options.is_valid(value) {
        return;
    }
    let renderer = ErrorRenderer {
        options,
        value,
        path,
        owner,
    };
    let render = |error: ValidationError<'_>| {
        let mut found = Vec::new();
        renderer.all(&error, &mut found);
        found
    };
    let rejected = options.errors(value).flat_map(render);
    let rejected: Vec<_> = unique(rejected.map(|found| found.error));
    let at: BTreeSet<_> = rejected.iter().map(|error| error.path.clone()).collect();
    let ignored = options.warnings(value).flat_map(render);
    let ignored = ignored
        .filter(|found| found.is_unknown_name)
        .map(|found| found.error)
        .filter(|error| !at.contains(&error.path));
    for mut error in unique(ignored) {
        error.detail.push_str("; Vector ignores it");
        problems.add(Check::Ignored, error);
    }
    for error in rejected {
        problems.add(Check::Options, error);
    }
}

/// Removes duplicates and limits the number of errors. With one more than are reported, it is known that there are more.
fn unique(errors: impl Iterator<Item = FieldError>) -> Vec<FieldError> {
    let mut seen = BTreeSet::new();
    let once = errors.filter(|error| seen.insert((error.path.clone(), error.detail.clone())));
    once.take(max_kept()).collect()
}

struct Found {
    error: FieldError,
    is_unknown_name: bool,
}

/// Converts schema findings to errors.
struct ErrorRenderer<'a> {
    options: &'a Options,
    value: &'a Value,
    path: &'a FieldPath,
    owner: Owner<'a>,
}

impl ErrorRenderer<'_> {
    fn all(&self, error: &ValidationError<'_>, out: &mut Vec<Found>) {
        let location: Vec<_> = error.instance_path().iter().collect();
        let path = self.path_of(error.instance_path());
        let instance: &Value = error.instance();
        let mut add = |error: FieldError| {
            out.push(Found {
                error,
                is_unknown_name: false,
            });
        };
        let invalid = |detail: String| {
            if is_secret(&location) || !is_scalar(instance) {
                FieldError::invalid_hidden(path.clone(), detail)
            } else {
                FieldError::invalid(path.clone(), instance.clone(), detail)
            }
        };
        match error.kind() {
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                add(FieldError::required(
                    below(&path, name),
                    format!("`{}` requires this option", self.owner),
                ));
            }
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                let known = self.options.names(self.value, &location);
                // Up to the maximum may be rejected already, and are not listed again.
                for name in unexpected.iter().take(max_kept().saturating_mul(2)) {
                    let detail = self.unknown_option(&location, name, &known);
                    let error = FieldError::forbidden(below(&path, name), detail);
                    out.push(Found {
                        error,
                        is_unknown_name: true,
                    });
                }
            }
            ValidationErrorKind::Type { kind } => {
                let detail = format!("must be {}", words(kind));
                if is_secret(&location) || !is_scalar(instance) {
                    let found = type_of(instance);
                    add(invalid(format!("{detail}, not {found}")));
                } else {
                    let detail = match self.corrected(&location, kind, instance) {
                        Some(example) => format!("{detail}, such as `{example}`"),
                        None => detail,
                    };
                    add(FieldError::type_invalid(
                        path.clone(),
                        instance.clone(),
                        detail,
                    ));
                }
            }
            ValidationErrorKind::Enum { options } => {
                let names = options.as_array().into_iter().flatten();
                let names: Vec<_> = names.map(plain).collect();
                let mut error = FieldError::not_supported(path.clone(), instance.clone(), &names);
                if let Some(advice) = self.owner.removed_value(&dotted(&location, None), instance) {
                    error.detail = format!("{advice}; {}", error.detail);
                } else if let Some(text) = instance.as_str() {
                    error.detail += &did_you_mean(text, names.iter().map(String::as_str));
                }
                add(if is_secret(&location) {
                    hidden(error)
                } else {
                    hidden_unless_scalar(error, instance)
                });
            }
            ValidationErrorKind::FalseSchema => {
                let detail = "is not read, because an option before it has a value of another type";
                add(FieldError::forbidden(path.clone(), detail));
            }
            ValidationErrorKind::PropertyNames { error: name } => {
                let text = name.instance().as_str().unwrap_or_default();
                if let ValidationErrorKind::Custom { message } = name.kind() {
                    let path = below(&path, text);
                    add(FieldError::invalid(path, text, message.clone()));
                }
            }
            ValidationErrorKind::Custom { message } => add(invalid(message.clone())),
            ValidationErrorKind::AnyOf { context } => self.any_of(error, context, out),
            other => add(invalid(limit(other).unwrap_or_else(|| {
                format!(
                    "is not a value that `{}` accepts here; see its options in the documentation of Vector",
                    self.owner
                )
            }))),
        }
    }

    /// Describes an option that the owner does not have.
    fn unknown_option(
        &self,
        location: &[LocationSegment<'_>],
        name: &str,
        known: &BTreeSet<String>,
    ) -> String {
        if let Some(advice) = self.owner.removed_option(&dotted(location, Some(name))) {
            return format!("`{}` has no such option any more: it {advice}", self.owner);
        }
        let others = known.iter().filter(|other| *other != name);
        let question = did_you_mean(name, others.map(String::as_str));
        format!("`{}` has no such option{question}", self.owner)
    }

    /// Returns what the author of a scalar most likely intended: a list of this item, or a mapping in which it is the
    /// value of the tag.
    fn corrected(
        &self,
        location: &[LocationSegment<'_>],
        kind: &TypeKind,
        instance: &Value,
    ) -> Option<String> {
        let TypeKind::Single(kind) = kind else {
            return None;
        };
        match kind.to_string().as_str() {
            "array" => Some(format!("[{instance}]")),
            "object" => {
                let variant = instance.as_str()?;
                let options = self.options;
                let tag = options.tag_of_variant(self.value, location, variant)?;
                Some(format!("{{{tag}: {variant}}}"))
            }
            _ => None,
        }
    }

    /// Reports the errors of the alternative that the author most likely intended.
    fn any_of(
        &self,
        error: &ValidationError<'_>,
        context: &[Vec<ValidationError<'static>>],
        out: &mut Vec<Found>,
    ) {
        let here = error.instance_path().iter().count();
        let fits = |form: &&Vec<ValidationError<'static>>| {
            !form.iter().any(|error| {
                let is_here = error.instance_path().iter().count() == here;
                is_here && is_of_another_type(error)
            })
        };
        let best = context.iter().filter(fits).min_by_key(|form| form.len());
        if let Some(form) = best {
            return form.iter().for_each(|error| self.all(error, out));
        }
        let mut kinds = Vec::new();
        for error in context.iter().flatten() {
            match error.kind() {
                ValidationErrorKind::Type { kind } => kinds.push(words(kind)),
                ValidationErrorKind::Enum { options } => kinds.push(one_of(options)),
                _ => {}
            }
        }
        kinds.dedup();
        let detail = format!("must be {}", kinds.join(", or "));
        let path = self.path_of(error.instance_path());
        let found = type_of(error.instance());
        let error = FieldError::invalid_hidden(path, format!("{detail}, not {found}"));
        out.push(Found {
            error,
            is_unknown_name: false,
        });
    }

    fn path_of(&self, location: &Location) -> FieldPath {
        let mut path = self.path.clone();
        for segment in location {
            path = match segment {
                LocationSegment::Property(name) => below(&path, &name),
                LocationSegment::Index(index) => path.index(index),
            };
        }
        path
    }
}

/// Returns an error for a value of an unexpected type.
pub(crate) fn mistyped(path: FieldPath, value: &Value, detail: &str) -> FieldError {
    let error = FieldError::type_invalid(path, value.clone(), detail);
    hidden_unless_scalar(error, value)
}

/// Hides a value that is a list or a mapping, because a part of it may be secret.
fn hidden_unless_scalar(error: FieldError, value: &Value) -> FieldError {
    if is_scalar(value) {
        error
    } else {
        hidden(error)
    }
}

fn hidden(error: FieldError) -> FieldError {
    FieldError {
        bad_value: BadValue::Omitted,
        ..error
    }
}

/// Returns true if the value has an unexpected type.
fn is_of_another_type(error: &ValidationError<'_>) -> bool {
    match error.kind() {
        ValidationErrorKind::Type { .. } => true,
        ValidationErrorKind::Enum { options } => {
            let found = type_of(error.instance());
            let mut options = options.as_array().into_iter().flatten();
            options.all(|option| type_of(option) != found)
        }
        _ => false,
    }
}

fn is_secret(location: &[LocationSegment<'_>]) -> bool {
    location.iter().any(|segment| match segment {
        LocationSegment::Property(name) => SECRET.iter().any(|word| name.contains(word)),
        LocationSegment::Index(_) => false,
    })
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

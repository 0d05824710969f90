//! Text → documents → validation results: the check of one source.

use std::collections::HashSet;

use lockstep_shared_validation::{
    Policy, ValidationRequest, ValidationResult, Violation, report_all,
};
use serde_json::Value;

use crate::check::apply;
use crate::check::crd_lookup::CrdLookup;
use crate::check::diagnostic::{
    CheckedDocument, Diagnostic, FileReport, Level, ParseError, on_one_line,
};
use crate::check::diff;
use crate::check::diff::has_status_subresource;
use crate::check::inputs::Source;
use crate::check::stored_status::with_stored_status;
use crate::check::yaml::document;
use crate::check::yaml::document::Document;

/// Settings for the validation of every document.
pub(crate) struct Checker {
    pub(crate) kinds: CrdLookup,
    pub(crate) policy: Policy,
    pub(crate) old: OldObject,
    /// If true, an object of an unknown kind is an error.
    pub(crate) fails_on_unknown_kind: bool,
    /// If true, a diff shows how the cluster would store each valid object.
    pub(crate) shows_defaulted: bool,
    /// If true, the number of errors that are shown of an object has no maximum.
    pub(crate) shows_all_errors: bool,
}

/// Previous state of the objects.
pub(crate) enum OldObject {
    /// Absent: the objects are created.
    None,
    /// The previous state of the only object.
    File(Value),
    /// The objects stored in a cluster, by apiVersion, kind, namespace and name.
    Cluster(ObjectSource),
}

/// Function that gets the stored object that another object would replace.
pub(crate) type ObjectSource = Box<dyn Fn(&Value) -> Result<Option<Value>, String> + Send + Sync>;

impl Checker {
    /// Reads a source and validates every object in it.
    pub(crate) fn check(&self, source: &Source) -> FileReport {
        let mut report = FileReport {
            name: source.name.clone(),
            text: String::new(),
            documents: Vec::new(),
            problems: Vec::new(),
            skipped: 0,
        };
        match source.read() {
            Ok(text) => report.text = text,
            Err(message) => {
                report.problems.push(ParseError {
                    location: None,
                    message,
                });
                return report;
            }
        }
        let read = document::read(&report.text);
        let mut is_empty = true;
        for document in read {
            match document {
                Ok(document) => is_empty &= !self.check_document(&document, &mut report),
                Err(problem) => {
                    is_empty = false;
                    report.problems.push(problem);
                }
            }
        }
        if is_empty {
            report.problems.push(ParseError {
                location: None,
                message: "contains no object".to_owned(),
            });
        }
        report
    }

    /// Validates a document, or each item of a list of objects. Returns true if the document was not empty.
    fn check_document(&self, document: &Document, report: &mut FileReport) -> bool {
        let object = document.to_value();
        // A file may begin or end with a separator, and one of several templates may render to nothing.
        if object.is_null() {
            return false;
        }
        if !object.is_object() {
            let message =
                "an object was expected here: a mapping with apiVersion and kind".to_owned();
            let location = Some(document.locate("", &report.text));
            report.problems.push(ParseError { location, message });
            return true;
        }
        let kind = object["kind"].as_str().unwrap_or_default();
        if kind.ends_with("List") && object["items"].is_array() {
            for item in document.items() {
                self.check_document(&item, report);
            }
        } else {
            self.check_object(document, &object, report);
        }
        true
    }

    fn check_object(&self, document: &Document, object: &Value, report: &mut FileReport) {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default();
        let mut problem = |field: &str, message: String| {
            let location = Some(document.locate(field, &report.text));
            let message = on_one_line(&message);
            report.problems.push(ParseError { location, message });
        };
        let found = match self.kinds.find(api_version, kind) {
            Ok(found) => found,
            Err(error) => return problem("kind", error),
        };
        let Some(ruleset) = found else {
            let served = self.kinds.versions(api_version, kind);
            if !served.is_empty() {
                let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
                let served = served.join(" or ");
                return problem(
                    "apiVersion",
                    format!("apiVersion: `{version}` is not served; use {group}/{served}"),
                );
            }
            if let Some((field, message)) = self.kinds.suggestion(api_version, kind) {
                return problem(field, message);
            }
            // A kind or an apiVersion alone is no file of another program.
            if object["metadata"].is_object() && api_version.is_empty() != kind.is_empty() {
                let field = if kind.is_empty() {
                    "kind"
                } else {
                    "apiVersion"
                };
                let message = format!("{field}: it is missing; a Kubernetes object has both");
                return problem("", message);
            }
            if self.fails_on_unknown_kind {
                return problem(
                    "kind",
                    format!("unknown kind `{kind}` in `{api_version}`; provide its CRD with --crd"),
                );
            }
            report.skipped += 1;
            return;
        };
        let old = match &self.old {
            OldObject::None => Ok(None),
            OldObject::File(old) => match identity_difference(old, object) {
                Some(difference) => Err(format!(
                    "--old-object is a different object: its {difference}"
                )),
                None => Ok(Some(old.clone())),
            },
            OldObject::Cluster(fetch) => fetch(object),
        };
        let old = match old {
            Ok(old) => old,
            Err(message) => return problem("metadata.name", message),
        };
        let applied = match (&self.old, &old) {
            (OldObject::Cluster(_), Some(stored)) => Some(apply::applied(stored, object)),
            _ => None,
        };
        let written = object;
        let object = applied.as_ref().unwrap_or(object);
        let last_validated = old
            .as_ref()
            .and_then(lockstep_shared_validation::LastValidated::from_status_of);
        let validate = |object: &Value| {
            let request =
                ValidationRequest::for_update(object, old.as_ref(), last_validated.as_ref());
            let request = request.deny_unknown_fields().with_policy(&self.policy);
            if self.shows_all_errors {
                report_all(|| ruleset.validate(&request))
            } else {
                ruleset.validate(&request)
            }
        };
        let kept = has_status_subresource(ruleset.crd(), &object["apiVersion"])
            .then(|| with_stored_status(object, old.as_ref()));
        let mut result = validate(kept.as_ref().unwrap_or(object));
        if kept.is_some() && object.get("status").is_some() {
            // The API server drops a status after it has decoded it, and so refuses its unknown fields.
            let written = validate(object).errors.into_iter();
            let unknown = written.filter(is_unknown_in_status);
            let known: HashSet<_> = result.errors.iter().map(|error| error.at.clone()).collect();
            let unknown = unknown.filter(|error| !known.contains(&error.at));
            result.errors.extend(unknown);
        }
        let stored = (self.shows_defaulted && result.is_valid())
            .then(|| diff::difference(written, &result.object, ruleset.crd()));
        report.documents.push(CheckedDocument {
            kind: kind.to_owned(),
            name: object["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            diagnostics: diagnostics(document, &report.text, &result),
            diff: stored,
        });
    }
}

/// Returns true for the error about an unknown field below `status`.
fn is_unknown_in_status(error: &Violation) -> bool {
    error.rule.ends_with("/unknown") && error.at.is_descendant_of("status")
}

fn diagnostics(document: &Document, text: &str, result: &ValidationResult) -> Vec<Diagnostic> {
    let lists = [
        (Level::Error, &result.errors, result.has_more_errors),
        (Level::Warning, &result.warnings, result.has_more_warnings),
        (
            Level::Audit,
            &result.audit_violations,
            result.has_more_audit_violations,
        ),
    ];
    let finding = |level: Level, violation: &Violation| Diagnostic {
        level,
        rule: violation.rule.clone(),
        layer: violation.layer,
        error: violation.error.clone(),
        location: match &violation.error.span {
            _ if violation.rule.ends_with("/unknown") => {
                document.locate_name(violation.at.as_str(), text)
            }
            Some(bytes) => document.locate_span(violation.at.as_str(), bytes, text),
            None => document.locate(violation.at.as_str(), text),
        },
    };
    let mut findings = Vec::new();
    for (level, violations, has_more) in lists {
        let more = Violation::and_more(has_more);
        let violations = violations.iter().chain(&more);
        findings.extend(violations.map(|violation| finding(level, violation)));
    }
    findings
}

/// Returns the first difference in the fields that identify two objects.
fn identity_difference(old: &Value, new: &Value) -> Option<String> {
    [
        "/apiVersion",
        "/kind",
        "/metadata/namespace",
        "/metadata/name",
    ]
    .into_iter()
    .find_map(|field| {
        let (old, new) = (old.pointer(field), new.pointer(field));
        // An object from a cluster has a namespace; a manifest may leave it to the command.
        if field == "/metadata/namespace" && (old.is_none() || new.is_none()) {
            return None;
        }
        let shown = |value: Option<&Value>| value.map_or("not set".to_owned(), Value::to_string);
        (old != new).then(|| {
            let field = field[1..].replace('/', ".");
            format!("`{field}` is {}, expected {}", shown(old), shown(new))
        })
    })
}

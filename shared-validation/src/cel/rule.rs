//! One CEL rule, compiled.

use ::cel::{Context, Program, Value as CelValue};
use serde_json::Value;

use crate::cel::library;
use crate::field_error::FieldError;
use crate::field_path::{Cursor, FieldPath};
use crate::ruleset::CompileError;

/// One entry of `x-kubernetes-validations`, compiled.
pub(crate) struct CelRule {
    pub(crate) id: String,
    pub(crate) uses_old_self: bool,
    program: Program,
    source: String,
    message: String,
    reason: Reason,
    /// Below the node that carries the rule, in printed form: `.maxSizeGib`.
    field_path: Option<String>,
}

#[derive(Clone, Copy)]
enum Reason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

impl CelRule {
    /// Compiles a rule that sits at the schema node `at`.
    pub(crate) fn compile(rule: &Value, at: &str, index: usize) -> Result<Self, CompileError> {
        let source = rule["rule"].as_str().unwrap_or_default().to_owned();
        let fail = |problem: String| CompileError::Cel {
            at: at.to_owned(),
            problem,
            rule: source.clone(),
        };
        for (keyword, value) in rule.as_object().into_iter().flatten() {
            let known = matches!(
                keyword.as_str(),
                "rule" | "message" | "reason" | "fieldPath"
            );
            if !known && !value.is_null() {
                return Err(fail(format!("`{keyword}` is not supported")));
            }
        }
        let environment = library::environment();
        let program = environment
            .compile(&source)
            .map_err(|error| fail(error.to_string()))?;
        let references = program.references();
        if let Some(unknown) = references
            .functions()
            .into_iter()
            .find(|name| !library::is_known(name))
        {
            return Err(fail(format!("function `{unknown}` is not supported")));
        }
        let uses_old_self = references.has_variable("oldSelf");
        let message = match rule["message"].as_str() {
            Some(message) => message.to_owned(),
            None => format!("failed rule: {}", source.trim()),
        };
        let reason = match rule["reason"].as_str() {
            None | Some("FieldValueInvalid") => Reason::Invalid,
            Some("FieldValueForbidden") => Reason::Forbidden,
            Some("FieldValueRequired") => Reason::Required,
            Some("FieldValueDuplicate") => Reason::Duplicate,
            Some(other) => return Err(fail(format!("unknown reason `{other}`"))),
        };
        let id = bracketed_id(&message).map_or_else(|| format!("{at}/cel-{index}"), String::from);
        let field_path = rule["fieldPath"].as_str().map(String::from);
        Ok(Self {
            id,
            uses_old_self,
            program,
            source,
            message,
            reason,
            field_path,
        })
    }

    /// What is wrong with the value, if anything.
    pub(super) fn judge(
        &self,
        context: &Context<'_, '_>,
        value: &Value,
        at: Cursor<'_>,
    ) -> Option<FieldError> {
        let shown = value.is_object() || value.is_array();
        let invalid = |path: FieldPath, detail: String| {
            if shown {
                FieldError::invalid_hidden(path, detail)
            } else {
                FieldError::invalid(path, value.clone(), detail)
            }
        };
        match self.program.execute(context) {
            Ok(CelValue::Bool(true)) => None,
            Ok(_) => {
                let mut path = at.to_path();
                if let Some(below) = &self.field_path {
                    path = FieldPath::new(format!("{}{below}", path.as_str()));
                }
                let detail = self.message.clone();
                Some(match self.reason {
                    Reason::Invalid => invalid(path, detail),
                    Reason::Forbidden => FieldError::forbidden(path, detail),
                    Reason::Required => FieldError::required(path, detail),
                    Reason::Duplicate => FieldError {
                        detail,
                        ..FieldError::duplicate(path, value.clone())
                    },
                })
            }
            // A rule that cannot be evaluated refuses, as in the API server.
            Err(error) => Some(invalid(
                at.to_path(),
                format!("{error} evaluating rule: {}", self.source),
            )),
        }
    }
}

/// The rule id that ends a message in brackets.
fn bracketed_id(message: &str) -> Option<&str> {
    let (_, id) = message.strip_suffix(']')?.rsplit_once('[')?;
    let well_formed = !id.is_empty()
        && id
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    well_formed.then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compile(rule: &Value) -> Result<CelRule, CompileError> {
        CelRule::compile(rule, "spec", 0)
    }

    #[test]
    fn the_id_is_what_ends_the_message_in_brackets() {
        assert_eq!(
            bracketed_id("must not shrink [storage-only-grows]"),
            Some("storage-only-grows")
        );
        assert_eq!(bracketed_id("must match [A-Z]"), None);
        assert_eq!(bracketed_id("no id"), None);
    }

    #[test]
    fn a_function_that_is_not_here_stops_the_start() {
        let problem = |rule| {
            compile(&json!({"rule": rule}))
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        assert!(
            problem("quantity(self).isGreaterThan(quantity('1'))").contains("is not supported")
        );
        assert!(problem("self.matches('a')").contains("`matches` is not supported"));
        assert!(problem("self ==").contains("CEL rule at spec"));
        assert_eq!(
            problem("self.a == 1 && self.b.all(k, k.startsWith('x'))"),
            ""
        );
    }
}

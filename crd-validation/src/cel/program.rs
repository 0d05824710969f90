//! Compiled CEL rule.

use std::sync::Arc;

use ::cel::Context;
use ::cel::ExecutionError;
use ::cel::common::ast::IdedExpr;
use ::cel::common::types::{CelBool, CelString};
use ::cel::objects::Value as CelValue;
use serde_json::Value;

use crate::cel::activation::Activation;
use crate::cel::cost::Budget;
use crate::cel::field_usage::FieldUsage;
use crate::cel::presence::Presence;
use crate::cel::{
    apiserver_panic, check, cost_instrumentation, fast_form, field_path, library, partial_eval,
};
use crate::compile_error::CompileError;
use crate::field::error::{ErrorType, FieldError};
use crate::field::path::{Cursor, FieldPath};
use crate::schema::{JsonType, Schema};

/// Maximum length of the result of a `messageExpression`.
const MESSAGE_MAX_BYTES: usize = 5 << 10;

/// Compiled entry of `x-kubernetes-validations`.
pub(crate) struct CelRule {
    pub(crate) id: String,
    pub(crate) source: String,
    pub(crate) message: String,
    pub(crate) uses_old_self: bool,
    /// Fields that the rule and its message read.
    pub(crate) reach: FieldUsage,
    /// Conditions on the presence of fields, if they may decide that the rule holds.
    presence: Option<Presence>,
    /// If true, evaluation may need more stack than a thread has.
    is_deep: bool,
    /// If true, the rule is also evaluated for a new value, with an empty `oldSelf`.
    optional_old_self: bool,
    expression: IdedExpr,
    message_expression: Option<IdedExpr>,
    reason: Reason,
    /// Path relative to the node with the rule: `maxSizeGib`.
    pub(crate) field_path: Option<String>,
}

#[derive(Clone, Copy)]
enum Reason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

/// Outcome of a rule.
pub(crate) enum Outcome {
    Holds,
    /// The rule is violated. The error is ratcheted if an update leaves the value unchanged.
    Error(FieldError),
    /// The rule could not be evaluated. This is an error and is never ratcheted.
    Failed(FieldError),
    /// The budget is exhausted. No further rules are evaluated.
    Exhausted(FieldError),
}

impl CelRule {
    /// Compiles a rule of the schema node `at`.
    pub(crate) fn compile(
        rule: &Value,
        schema: &Schema,
        at: &str,
        index: usize,
    ) -> Result<Self, CompileError> {
        let source = rule["rule"].as_str().unwrap_or_default().to_owned();
        let fail = |problem: String| CompileError::Cel {
            at: if at.is_empty() {
                "the root".to_owned()
            } else {
                at.to_owned()
            },
            problem: shortened(&problem),
            rule: shortened(&source),
        };
        for (keyword, value) in rule.as_object().into_iter().flatten() {
            let known = matches!(
                keyword.as_str(),
                "rule"
                    | "message"
                    | "messageExpression"
                    | "reason"
                    | "fieldPath"
                    | "optionalOldSelf"
            );
            if !known && !value.is_null() {
                return Err(fail(format!("`{keyword}` is not supported")));
            }
        }
        let optional_old_self = rule["optionalOldSelf"] == true;
        let scope = check::Scope {
            schema,
            is_resource: at.is_empty() || schema.embedded,
            optional_old_self,
        };
        let expression = expression(&source, &scope).map_err(fail)?;
        // `oldSelf` is an optional value then, and the type and the name of a resource are there whatever its schema says.
        let presence = Some(expression.presence).filter(|presence| {
            !optional_old_self && !scope.is_resource && presence.possible_values().yes
        });
        let mut message_expression = match rule["messageExpression"]
            .as_str()
            .filter(|text| !text.is_empty())
        {
            Some(text) => Some(
                crate::cel::program::expression(text, &scope)
                    .map_err(|problem| fail(format!("messageExpression: {problem}")))?,
            ),
            None => None,
        };
        let mut reach = expression.reach;
        if let Some(message) = &mut message_expression {
            reach.merge(std::mem::take(&mut message.reach));
        }
        let uses_old_self = expression.tree.references().has_variable("oldSelf");
        let message = match rule["message"]
            .as_str()
            .map(str::trim)
            .filter(|text| !text.is_empty())
        {
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
        let field_path = match rule["fieldPath"].as_str().filter(|path| !path.is_empty()) {
            Some(path) => Some(
                field_path::normalized(path, schema)
                    .map_err(|problem| fail(format!("fieldPath: {problem}")))?,
            ),
            None => None,
        };
        Ok(Self {
            id,
            source,
            message,
            uses_old_self,
            reach,
            presence,
            optional_old_self,
            is_deep: expression.is_deep
                || message_expression
                    .as_ref()
                    .is_some_and(|expression| expression.is_deep),
            expression: expression.tree,
            message_expression: message_expression.map(|expression| expression.tree),
            reason,
            field_path,
        })
    }

    /// Returns true if the rule or its message may read `oldSelf`.
    pub(crate) fn sees_old_self(&self) -> bool {
        self.uses_old_self || self.message_expression.is_some()
    }

    /// Evaluates the rule.
    pub(crate) fn evaluate(
        &self,
        activation: &Activation<'_>,
        at: Cursor<'_>,
        budget: &mut Budget,
    ) -> Outcome {
        if self.is_deep {
            stacker::grow(DEEP_STACK_BYTES, || {
                self.evaluate_here(activation, at, budget)
            })
        } else {
            self.evaluate_here(activation, at, budget)
        }
    }

    fn evaluate_here(
        &self,
        activation: &Activation<'_>,
        at: Cursor<'_>,
        budget: &mut Budget,
    ) -> Outcome {
        // A transition rule does not apply to a new value.
        if self.uses_old_self && !activation.is_change() && !self.optional_old_self {
            return Outcome::Holds;
        }
        if self.holds_by_presence(activation) {
            return Outcome::Holds;
        }
        let variables = activation.variables(self.optional_old_self);
        let context = &variables.context;
        let is_careful = variables.are_broken_for(self.sees_old_self());
        let evaluate = |expression: &IdedExpr| {
            CelValue::resolve_val(expression, context).map(|value| {
                value
                    .downcast_ref::<CelBool>()
                    .is_some_and(|holds| *holds.inner())
            })
        };
        apiserver_panic::take();
        let outcome = if is_careful {
            let careful = partial_eval::expression(&self.expression);
            budget.spend(|| evaluate(&careful))
        } else {
            budget.spend(|| evaluate(&self.expression))
        };
        match (outcome, apiserver_panic::take()) {
            (None, _) => {
                Outcome::Exhausted(self.invalid(activation, at.to_path(), OUT_OF_BUDGET.to_owned()))
            }
            (_, Some(problem)) => Outcome::Failed(self.failed(activation, at, &problem)),
            (Some(Ok(true)), None) => Outcome::Holds,
            (Some(Ok(false)), None) => Outcome::Error(self.error(activation, at, context, budget)),
            (Some(Err(error)), None) => {
                // If both operands fail, cel-go reports the error of the left one.
                let swapped = partial_eval::swapped(&self.expression, is_careful);
                let error = budget
                    .spend(|| evaluate(&swapped))
                    .and_then(Result::err)
                    .unwrap_or(error);
                Outcome::Failed(self.failed(activation, at, &as_go(&error)))
            }
        }
    }

    /// Returns true if the rule holds because of the fields that the object has or lacks.
    fn holds_by_presence(&self, activation: &Activation<'_>) -> bool {
        let (schema, value, before) = (activation.schema, activation.value, activation.before());
        let presence = self.presence.as_ref();
        let value = presence.and_then(|presence| presence.value(schema, value, before));
        value == Some(true)
    }

    fn error(
        &self,
        activation: &Activation<'_>,
        at: Cursor<'_>,
        context: &Context<'_, '_>,
        budget: &mut Budget,
    ) -> FieldError {
        let path = match &self.field_path {
            Some(below) => at.child(below).to_path(),
            None => at.to_path(),
        };
        let evaluated = self.message_expression.as_ref().and_then(|expression| {
            let outcome = budget.spend(|| {
                let value = CelValue::resolve_val(expression, context).ok()?;
                Some(value.downcast_ref::<CelString>()?.inner().trim().to_owned())
            });
            let usable = |text: &String| {
                !text.is_empty() && text.len() <= MESSAGE_MAX_BYTES && !text.contains('\n')
            };
            outcome.flatten().filter(usable)
        });
        let detail = evaluated.unwrap_or_else(|| self.message.clone());
        match self.reason {
            Reason::Invalid => self.invalid(activation, path, detail),
            Reason::Forbidden => FieldError::forbidden(path, detail),
            Reason::Required => FieldError::required(path, detail),
            // The API server prints no message in this case.
            Reason::Duplicate => FieldError {
                error_type: ErrorType::Duplicate,
                ..self.invalid(activation, path, String::new())
            },
        }
    }

    fn invalid(&self, activation: &Activation<'_>, path: FieldPath, detail: String) -> FieldError {
        let _ = self;
        match activation.schema.json_type {
            Some(JsonType::Object | JsonType::Array) => FieldError::invalid_hidden(path, detail),
            _ => FieldError::invalid(path, activation.value, detail),
        }
    }

    /// Returns the error for a rule that cannot be evaluated. As in the API server, it shows the type in place
    /// of the value.
    fn failed(&self, activation: &Activation<'_>, at: Cursor<'_>, problem: &str) -> FieldError {
        let kind = activation.schema.json_type.map_or("", JsonType::as_str);
        let about = self
            .message
            .strip_prefix("failed rule: ")
            .unwrap_or(&self.message);
        let detail = if problem == NO_SUCH_OVERLOAD {
            format!(
                "'{problem}': call arguments did not match a supported operator, function or macro signature for rule: {about}"
            )
        } else {
            format!("{problem} evaluating rule: {about}")
        };
        FieldError::invalid(at.to_path(), kind, detail)
    }
}

const NO_SUCH_OVERLOAD: &str = "no such overload";
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Checked expression that charges its steps to the budget.
struct Checked {
    tree: IdedExpr,
    presence: Presence,
    reach: FieldUsage,
    is_deep: bool,
}

/// Maximum depth of an expression that is evaluated on the stack of the thread.
const SHALLOW: usize = 24;
/// Stack size for the deepest expression: without compiler optimization, each level needs tens of kilobytes.
/// Memory is only used for the part of the stack that is touched.
const DEEP_STACK_BYTES: usize = 64 << 20;

/// Parses, checks and instruments an expression.
fn expression(source: &str, scope: &check::Scope<'_>) -> Result<Checked, String> {
    check::size(source)?;
    stacker::grow(DEEP_STACK_BYTES, || sized_expression(source, scope))
}

fn sized_expression(source: &str, scope: &check::Scope<'_>) -> Result<Checked, String> {
    let environment: Arc<::cel::Env> = library::environment();
    let mut expression = environment
        .parser()
        .parse(source)
        .map_err(|error| error.to_string())?;
    let depth = check::expression(&expression, scope)?;
    let mut reach = FieldUsage::default();
    reach.add(&expression);
    let presence = Presence::new(&expression, scope.schema);
    cost_instrumentation::instrument(&mut expression);
    fast_form::rewrite(&mut expression);
    Ok(Checked {
        tree: expression,
        presence,
        reach,
        is_deep: depth > SHALLOW,
    })
}

/// Formats an evaluation error as cel-go does.
fn as_go(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(index) => format!("index out of bounds: {}", plain(index)),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::FunctionError { function, message } => match conversion(function) {
            Some(kind) => format!("type conversion error from 'string' to '{kind}'"),
            None => message.clone(),
        },
        ExecutionError::NoSuchOverload(_)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnexpectedType { .. } => NO_SUCH_OVERLOAD.to_owned(),
        other => other.to_string(),
    }
}

/// Returns the target type of a conversion function.
fn conversion(function: &str) -> Option<&'static str> {
    Some(match function {
        "bool" => "bool",
        "bytes" => "bytes",
        "double" => "double",
        "duration" => "google.protobuf.Duration",
        "int" => "int",
        "timestamp" => "google.protobuf.Timestamp",
        "uint" => "uint",
        _ => return None,
    })
}

fn plain(value: &CelValue) -> String {
    match value {
        CelValue::Int(index) => index.to_string(),
        CelValue::UInt(index) => index.to_string(),
        other => format!("{other:?}"),
    }
}

/// Returns the rule id in brackets at the end of a message.
fn bracketed_id(message: &str) -> Option<&str> {
    let (_, id) = message.strip_suffix(']')?.rsplit_once('[')?;
    let well_formed = !id.is_empty()
        && id
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    well_formed.then_some(id)
}

/// Truncates a text of any length.
fn shortened(text: &str) -> String {
    const ENOUGH: usize = 500;
    match text.char_indices().nth(ENOUGH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problem(rule: &Value) -> String {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "object", "additionalProperties": {"type": "string"}},
                "namespace": {"type": "string"}, "a__dash__b": {"type": "string"}},
        });
        let schema = Schema::compile(&schema, "spec").expect("valid");
        CelRule::compile(rule, &schema, "spec", 0)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn the_rule_id_is_the_bracketed_end_of_the_message() {
        assert_eq!(
            bracketed_id("must not shrink [storage-shrink]"),
            Some("storage-shrink")
        );
        assert_eq!(bracketed_id("must match [A-Z]"), None);
        assert_eq!(bracketed_id("no id"), None);
    }

    #[test]
    fn a_rule_that_cannot_be_evaluated_as_in_the_api_server_does_not_compile() {
        for (rule, expected) in [
            (
                json!({"rule": "self.a.nope()"}),
                "function `nope` is not supported",
            ),
            (json!({"rule": "self.a.matches('(')"}), "unclosed group"),
            (json!({"rule": "self =="}), "CEL rule at spec"),
            (json!({"rule": "self.c == 1"}), "undefined field `c`"),
            (
                json!({"rule": "self.package == ''"}),
                "undefined field `package`",
            ),
            (
                json!({"rule": "other == 1"}),
                "undeclared reference to `other`",
            ),
            (
                json!({"rule": "self.a == 1", "fieldPath": ".c"}),
                "fieldPath",
            ),
            (
                json!({"rule": "self.a == 1", "surprise": 1}),
                "`surprise` is not supported",
            ),
            (
                json!({"rule": "self.a == 1", "reason": "Because"}),
                "unknown reason",
            ),
            (
                json!({"rule": format!("{}1{}", "(".repeat(300), ")".repeat(300))}),
                "nested",
            ),
        ] {
            let problem = problem(&rule);
            assert!(problem.contains(expected), "{rule}: {problem}");
        }
        for rule in [
            "self.a == 1 && self.b.all(k, self.b[k].startsWith('x'))",
            "self.__namespace__ == self.a__underscores__dash__underscores__b",
            "self.namespace == self.__namespace__",
        ] {
            assert_eq!(problem(&json!({"rule": rule})), "");
        }
    }

    #[test]
    fn a_rule_holds_by_presence_only_if_its_evaluation_says_so() {
        let text = json!({"type": "string"});
        let date = json!({"type": "string", "format": "date"});
        let inner = json!({"type": "object", "properties": {"c": text, "d": date}});
        let schema = json!({"type": "object", "properties": {
            "a": text, "b": inner, "n": {"type": "integer"}, "f": {"type": "boolean", "nullable": true},
        }});
        let schema = Schema::compile(&schema, "spec").expect("valid");
        let atoms = [
            "has(self.a)",
            "has(self.b.d)",
            "has(self.f)",
            "has(oldSelf.b)",
            "self.n > 1",
            "self.b.c == 'x'",
            "true",
        ];
        let mut sources: Vec<String> = Vec::new();
        for a in atoms {
            for b in atoms {
                for operator in ["&&", "||", "==", "!="] {
                    sources.push(format!("!({a}) {operator} ({b})"));
                    sources.push(format!("({a} ? {b} : {a} {operator} {b}) || ({b})"));
                }
            }
        }
        let parts = [
            json!({}),
            json!({"a": "x", "b": {"c": "x"}, "n": 2}),
            json!({"a": null, "b": {"d": "2020-01-01"}, "n": 0, "f": true}),
            json!({"a": 1, "b": {"d": "no date"}, "f": null}),
            json!({"b": "text", "n": "many"}),
            json!("text"),
        ];
        let mut decided = 0;
        for source in sources {
            let rule = CelRule::compile(&json!({"rule": source}), &schema, "spec", 0);
            let mut rule = rule.unwrap_or_else(|error| panic!("{error}"));
            for (value, before) in parts.iter().flat_map(|a| parts.iter().map(move |b| (a, b))) {
                for before in [None, Some(before)] {
                    let reach = FieldUsage::Whole;
                    let activation = Activation::new(&schema, value, before, false, &reach, true);
                    if rule.holds_by_presence(&activation)
                        && (before.is_some() || !rule.uses_old_self)
                    {
                        decided += 1;
                        let presence = rule.presence.take();
                        let outcome = rule.evaluate(&activation, Cursor::Root, &mut Budget::new());
                        let holds = matches!(outcome, Outcome::Holds);
                        assert!(holds, "{source}, {value}, {before:?}");
                        rule.presence = presence;
                    }
                }
            }
        }
        assert!(decided > 3_000, "{decided}");
    }
}

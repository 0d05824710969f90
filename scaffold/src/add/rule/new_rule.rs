//! Code and cases of a new rule.

use serde_json::Value;

use crate::case_file::{CaseFile, ExpectedError};
use crate::source::imports::Imports;
use crate::source::spec::{Keyword, TextField, WORDS};

/// Longest text that a new rule of the schema allows.
const MAX_LENGTH: usize = 512;

/// Module with the types of a rule.
const VALIDATION: &str = "lockstep_sdk::shared_validation";

/// Rule while it is added.
pub(crate) struct NewRule<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) field: TextField,
}

impl NewRule<'_> {
    /// Returns the path of the field in the object.
    pub(crate) fn path(&self) -> Vec<String> {
        let spec = ["spec".to_owned()].into_iter();
        spec.chain(self.field.json_path.iter().cloned()).collect()
    }

    /// Returns the path of the field as errors print it.
    fn printed_path(&self) -> String {
        self.path().join(".")
    }

    /// Returns an attribute for the schema, a text that it forbids, and the error.
    pub(crate) fn schema(&self, valid: &str) -> (String, String, ExpectedError) {
        if self.field.free_keyword == Some(Keyword::Pattern) {
            let attribute = format!("#[schemars(regex(pattern = {WORDS:?}))]");
            let error = self.error("/pattern", "FieldValueInvalid", None);
            return (attribute, format!("{valid} <{}>", self.name), error);
        }
        let attribute = format!("#[schemars(length(max = {MAX_LENGTH}))]");
        let error = self.error("/maxLength", "FieldValueTooLong", None);
        let missing = (MAX_LENGTH + 1).saturating_sub(valid.chars().count());
        (attribute, format!("{valid}{}", "x".repeat(missing)), error)
    }

    /// Returns a text that the rule in CEL or Rust forbids, and the error.
    pub(crate) fn forbidden(&self, valid: &str) -> (String, ExpectedError) {
        let detail = format!("{} [{}]", self.message(), self.name);
        let error = self.error("", "FieldValueInvalid", Some(detail));
        (format!("{valid} {}", self.name), error)
    }

    /// Returns an error of this rule, or of a keyword of the schema.
    fn error(&self, keyword: &str, error_type: &str, detail: Option<String>) -> ExpectedError {
        let field = self.printed_path();
        let rule = if keyword.is_empty() {
            self.name.to_owned()
        } else {
            format!("{field}{keyword}")
        };
        ExpectedError {
            rule,
            error_type: error_type.to_owned(),
            field,
            detail,
        }
    }

    fn message(&self) -> String {
        format!("must not contain `{}`", self.name)
    }

    pub(crate) fn cel(&self) -> String {
        format!(
            "#[x_kube(validation = Rule::new(\"!self.contains('{name}')\").message(\"{message} [{name}]\"))]",
            name = self.name,
            message = self.message()
        )
    }

    /// Returns the rule in the list of rules.
    pub(crate) fn registration(&self, imports: &Imports) -> String {
        let of_validation = |name: &str| imports.written(&format!("{VALIDATION}::{name}"));
        format!(
            "\n        {rule} {{
            id: \"{name}\",
            description: \"The field `{field}` {message}.\",
            severity: {severity}::Error,
            reference: \"\",
            fields: {fields}!({kind}, \"{path}\"),
            validate: |context, diagnostics| {function}(context, diagnostics),
        }},",
            rule = of_validation("Rule"),
            name = self.name,
            field = self.field.json_path.join("."),
            message = self.message(),
            severity = of_validation("Severity"),
            fields = of_validation("fields"),
            kind = self.kind_type(imports),
            path = self.printed_path(),
            function = self.function(),
        )
    }

    fn kind_type(&self, imports: &Imports) -> String {
        imports.written(&format!("super::resource::{}", self.kind))
    }

    pub(crate) fn function(&self) -> String {
        format!("check_{}", self.name.replace('-', "_"))
    }

    /// Returns the function of the rule.
    pub(crate) fn check(&self, imports: &Imports) -> String {
        let (conditions, text) = self.text();
        let name = self.name;
        let begin = if conditions.is_empty() {
            format!("let text = &{text};\n    if text.contains(\"{name}\") {{")
        } else {
            let conditions = conditions.join("\n        && ");
            format!("if {conditions}\n        && {text}.contains(\"{name}\")\n    {{")
        };
        let text = if conditions.is_empty() { "text" } else { &text };
        format!(
            "fn {function}(context: &{context}<'_, {kind}>, diagnostics: &mut {diagnostics}) {{
    {begin}
        diagnostics.invalid(\"{path}\", {text}.as_str(), \"{message}\");
    }}
}}
",
            function = self.function(),
            context = imports.written(&format!("{VALIDATION}::RuleContext")),
            kind = self.kind_type(imports),
            diagnostics = imports.written(&format!("{VALIDATION}::Diagnostics")),
            path = self.printed_path(),
            message = self.message(),
        )
    }

    /// Returns the conditions that the optional fields on the way to the text exist, and an expression for the text.
    fn text(&self) -> (Vec<String>, String) {
        let mut conditions = Vec::new();
        let mut expression = "context.object.spec".to_owned();
        let steps = &self.field.rust_path;
        for (at, step) in steps.iter().enumerate() {
            expression = format!("{expression}.{}", step.name);
            if step.is_optional {
                let is_last = at + 1 == steps.len();
                let variable = if is_last { "text" } else { "inner" };
                conditions.push(format!("let Some({variable}) = &{expression}"));
                expression = String::from(variable);
            }
        }
        (conditions, expression)
    }

    /// Returns both cases with their names.
    pub(crate) fn cases(
        &self,
        valid: Value,
        violation: Value,
        error: ExpectedError,
    ) -> [(String, CaseFile); 2] {
        let name = self.name;
        let satisfying = CaseFile {
            comment: format!("An object that satisfies the rule `{name}`."),
            object: valid,
            error: None,
        };
        let violating = CaseFile {
            comment: format!("An object that violates the rule `{name}`."),
            object: violation,
            error: Some(error),
        };
        [
            (format!("satisfies-{name}"), satisfying),
            (format!("violates-{name}"), violating),
        ]
    }
}

//! Code and cases of a new rule.

use serde_json::Value;

use crate::case_file::{CaseFile, ExpectedError};
use crate::source::imports::Imports;
use crate::source::spec::{Keyword, TextField, WORDS};

/// Longest text that a new rule of the schema allows.
const MAX_LENGTH: usize = 512;

/// Module with the types of a rule.
const VALIDATION: &str = "lockstep_sdk::shared_validation";

/// Indentation of a block.
const INDENTATION: &str = "    ";

/// Rule while it is added.
pub(crate) struct NewRule<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) field: TextField,
    /// If true, the edition of the package has conditions such as `if let … && …`.
    pub(crate) has_let_chains: bool,
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

    /// Returns a text that satisfies the rule, and one that violates only it; none if none of those that are tried is one. The
    /// first is the one that an object has, if it has one.
    pub(crate) fn texts(&self, present: Option<&str>, is_schema: bool) -> Option<(String, String)> {
        let name = self.name;
        let keyword = self.field.free_keyword.filter(|_| is_schema);
        let fits = |text: &&str| self.field.length.contains(&text.chars().count());
        let satisfies = |text: &&str| match keyword {
            None => !text.contains(name),
            Some(Keyword::Pattern) => !text.contains(['<', '>']),
            Some(Keyword::Length) => text.chars().count() <= MAX_LENGTH,
        };
        // A text of an object is allowed as it is.
        let mut valid = match present {
            Some(text) => vec![text],
            None => ["example", "text", "x"].into_iter().filter(fits).collect(),
        };
        valid.retain(satisfies);
        let valid = *valid.first()?;
        let longest = "x".repeat((MAX_LENGTH + 1).saturating_sub(valid.chars().count()));
        let violating = match keyword {
            None => vec![format!("{valid} {name}"), name.to_owned()],
            Some(Keyword::Pattern) => {
                vec![
                    format!("{valid} <{name}>"),
                    format!("<{name}>"),
                    format!("{valid}<"),
                    "<".to_owned(),
                ]
            }
            Some(Keyword::Length) => vec![format!("{valid}{longest}")],
        };
        let violating = violating.into_iter().find(|text| fits(&text.as_str()))?;
        Some((valid.to_owned(), violating))
    }

    /// Returns the allowed lengths of the field as text.
    pub(crate) fn lengths(&self) -> String {
        let (min, max) = (self.field.length.start(), self.field.length.end());
        if *max == usize::MAX {
            format!("at least {min} characters")
        } else {
            format!("{min} to {max} characters")
        }
    }

    /// Returns an attribute for the schema, and the error of a text that it forbids.
    pub(crate) fn schema(&self) -> (String, ExpectedError) {
        if self.field.free_keyword == Some(Keyword::Pattern) {
            let attribute = format!("#[schemars(regex(pattern = {WORDS:?}))]");
            return (attribute, self.error("/pattern", "FieldValueInvalid", None));
        }
        let attribute = format!("#[schemars(length(max = {MAX_LENGTH}))]");
        (
            attribute,
            self.error("/maxLength", "FieldValueTooLong", None),
        )
    }

    /// Returns the error of a text that the rule in CEL or Rust forbids.
    pub(crate) fn forbidden(&self) -> ExpectedError {
        let detail = format!("{} [{}]", self.message(), self.name);
        self.error("", "FieldValueInvalid", Some(detail))
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
        message(self.name)
    }

    /// Returns the attribute of a rule in CEL.
    pub(crate) fn cel(&self) -> String {
        cel(self.name)
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
        let (mut conditions, mut text) = self.text();
        let mut begin = String::new();
        if conditions.is_empty() {
            begin = format!("let text = &{text};\n    ");
            text = String::from("text");
        }
        conditions.push(format!("{text}.contains(\"{}\")", self.name));
        // Lines have the form of rustfmt: the file of an author who does not use it is not formatted.
        let mut block = " {";
        if self.has_let_chains && conditions.len() > 1 {
            conditions = vec![conditions.join("\n        && ")];
            block = "\n    {";
        }
        let depth = conditions.len();
        let conditions = conditions.iter().enumerate().map(|(at, condition)| {
            let indentation = INDENTATION.repeat(at);
            format!("{indentation}if {condition}{block}")
        });
        begin += &conditions.collect::<Vec<_>>().join("\n    ");
        let ends = (0..depth)
            .rev()
            .map(|at| format!("{}}}", INDENTATION.repeat(at)));
        let end = ends.collect::<Vec<_>>().join("\n    ");
        let inner = INDENTATION.repeat(depth);
        format!(
            "fn {function}(context: &{context}<'_, {kind}>, diagnostics: &mut {diagnostics}) {{
    {begin}
    {inner}diagnostics.invalid(\"{path}\", {text}.as_str(), \"{message}\");
    {end}
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

fn message(name: &str) -> String {
    format!("must not contain `{name}`")
}

/// Returns the attribute of a rule in CEL.
pub(crate) fn cel(name: &str) -> String {
    format!(
        "#[x_kube(validation = Rule::new(\"!self.contains('{name}')\").message(\"{message} [{name}]\"))]",
        message = message(name)
    )
}

#[cfg(test)]
mod tests;

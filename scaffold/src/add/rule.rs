//! `lockstep add rule`: a rule with a case that satisfies it and one that violates it.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::add::case::set;
use crate::case_file::{CaseFile, ExpectedError, path, valid_object};
use crate::error::Error;
use crate::names::{check_part, module_of};
use crate::project::{Project, insert, read, write_new};
use crate::source::{Keyword, RulesFile, TextField, WORDS, rules_file, text_fields};

/// Longest text that a new rule of the schema allows.
const MAX_LENGTH: usize = 512;

#[derive(Debug, clap::Args)]
pub(crate) struct RuleArgs {
    /// Id of the rule, such as `no-tabs`. The files of its cases are named after it.
    name: String,
    /// Kind of the objects.
    #[arg(long)]
    kind: String,
    /// Layer that has the rule. The schema can express least, and is the first to choose.
    #[arg(long, value_enum, default_value = "cel")]
    layer: Layer,
    /// Field of the spec that the rule is about, a `String`, by its name in Rust. Default: the first without a pattern.
    #[arg(long)]
    field: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Layer {
    /// Attribute of the field, for the schema of the CRD.
    Schema,
    /// Attribute of the field with a CEL expression.
    Cel,
    /// Function in `rules.rs`.
    Rust,
}

/// Rule while it is added.
struct NewRule<'a> {
    name: &'a str,
    kind: &'a str,
    field: TextField,
    /// Name of the field in JSON.
    json_name: String,
}

pub(crate) fn add(args: &RuleArgs, project: &Project) -> Result<Vec<PathBuf>, Error> {
    check_part(&args.name)?;
    let module = module_of(&args.kind)?;
    let resource = project.path(&format!("src/{module}/resource.rs"));
    let source = read(&resource)?;
    let field = field(args, &source, &resource)?;
    let rule = NewRule {
        name: &args.name,
        kind: &args.kind,
        json_name: field.json_name.clone().unwrap_or_default(),
        field,
    };
    let rules = project.path(&format!("src/{module}/rules.rs"));
    rule.require_free_id(&[&resource, &rules])?;
    let mut object = valid_object(project, &args.kind)?;
    let field_path = format!("spec.{}", rule.json_name);
    let valid = object["spec"][&rule.json_name].as_str();
    let valid = valid.unwrap_or("example").to_owned();
    set(&mut object, &field_path, json!(valid));
    let (changed, new_source, value, error) = match args.layer {
        Layer::Schema => {
            let (attribute, value, error) = rule.schema(&valid);
            (
                resource,
                rule.with_attribute(&source, &attribute),
                value,
                error,
            )
        }
        Layer::Cel => {
            let (value, error) = rule.forbidden(&valid);
            (
                resource,
                rule.with_attribute(&source, &rule.cel()),
                value,
                error,
            )
        }
        Layer::Rust => {
            let path = rules;
            let source = read(&path)?;
            rule.require_free_function(&path, &source)?;
            let place = rules_file(&source).ok_or_else(|| Error::NoPlace {
                path: path.clone(),
                missing: "a function `rules` that ends with `vec![…]`",
                by_hand: format!("to the rules:{}\n{}", rule.registration(), rule.check()),
            })?;
            let (value, error) = rule.forbidden(&valid);
            (path, rule.in_rust(&source, &place), value, error)
        }
    };
    let mut violation = object.clone();
    set(&mut violation, &field_path, json!(value));
    let cases = rule.cases(object, violation, error);
    let cases = cases.map(|(name, case)| (path(project, &module, &name), case.text()));
    write_new(&cases)?;
    insert(&changed, &new_source)?;
    let cases = cases.into_iter().map(|(path, _)| path);
    Ok([changed].into_iter().chain(cases).collect())
}

fn rule_exists(path: &Path, name: &str) -> Error {
    Error::RuleExists {
        path: path.to_owned(),
        name: name.to_owned(),
    }
}

/// Returns the field that the rule is about.
fn field(args: &RuleArgs, source: &str, resource: &Path) -> Result<TextField, Error> {
    let no_place = |missing| Error::NoPlace {
        path: resource.to_owned(),
        missing,
        by_hand: format!(
            "the rule `{}`, and its cases with `lockstep add case`",
            args.name
        ),
    };
    let name = format!("{}Spec", args.kind);
    let fields = text_fields(source, &name).ok_or_else(|| {
        no_place("the struct of the spec, whose name is that of the kind with `Spec`")
    })?;
    let is_wanted = |field: &TextField| match &args.field {
        Some(name) => field.name == *name,
        None => field.admits_words,
    };
    let found = fields.into_iter().find(is_wanted).ok_or_else(|| {
        no_place("a field of the type `String` or `Option<String>` with the name of `--field`, by default one without a pattern")
    })?;
    let is_full = args.layer == Layer::Schema && found.free_keyword.is_none();
    if found.json_name.is_none() || !found.admits_words || is_full {
        return Err(no_place(
            "a field without a pattern and without `serde(rename)`; choose one with `--field`",
        ));
    }
    Ok(found)
}

impl NewRule<'_> {
    /// Returns an attribute for the schema, a text that it forbids, and the error.
    fn schema(&self, valid: &str) -> (String, String, ExpectedError) {
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
    fn forbidden(&self, valid: &str) -> (String, ExpectedError) {
        let detail = format!("{} [{}]", self.message(), self.name);
        let error = self.error("", "FieldValueInvalid", Some(detail));
        (format!("{valid} {}", self.name), error)
    }

    /// Returns an error of this rule, or of a keyword of the schema.
    fn error(&self, keyword: &str, error_type: &str, detail: Option<String>) -> ExpectedError {
        let field = format!("spec.{}", self.json_name);
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

    fn cel(&self) -> String {
        format!(
            "#[x_kube(validation = Rule::new(\"!self.contains('{name}')\").message(\"{message} [{name}]\"))]",
            name = self.name,
            message = self.message()
        )
    }

    /// Returns the file of the custom resource with one more attribute of the field.
    fn with_attribute(&self, source: &str, attribute: &str) -> String {
        let (before, after) = source.split_at(self.field.position);
        let line = &before[before.rfind('\n').map_or(0, |end| end + 1)..];
        let indentation = &line[..line.len() - line.trim_start().len()];
        format!("{before}{attribute}\n{indentation}{after}")
    }

    /// Returns an error if another rule of the kind has the id. A missing file has none.
    fn require_free_id(&self, files: &[&Path]) -> Result<(), Error> {
        let (of_rust, of_message) = (format!("id: \"{}\"", self.name), format!("[{}]", self.name));
        for path in files.iter().filter(|path| path.exists()) {
            let source = read(path)?;
            if source.contains(&of_rust) || source.contains(&of_message) {
                return Err(rule_exists(path, self.name));
            }
        }
        Ok(())
    }

    /// Returns an error if the file has a function of the name already.
    fn require_free_function(&self, path: &Path, source: &str) -> Result<(), Error> {
        let function = self.function();
        if source.contains(&format!("fn {function}(")) {
            return Err(rule_exists(path, &function));
        }
        Ok(())
    }

    /// Returns the rule in the list of rules.
    fn registration(&self) -> String {
        format!(
            "\n        Rule {{
            id: \"{name}\",
            description: \"The field `{field}` {message}.\",
            severity: Severity::Error,
            reference: \"\",
            fields: fields!({kind}, \"spec.{field}\"),
            validate: |context, diagnostics| {function}(context, diagnostics),
        }},",
            name = self.name,
            field = self.json_name,
            message = self.message(),
            kind = self.kind,
            function = self.function(),
        )
    }

    fn function(&self) -> String {
        format!("check_{}", self.name.replace('-', "_"))
    }

    /// Returns the function of the rule.
    fn check(&self) -> String {
        let Self { name, kind, .. } = self;
        let (text, condition) = if self.field.is_optional {
            (
                format!(
                    "if let Some(text) = &context.object.spec.{}",
                    self.field.name
                ),
                format!("\n        && text.contains(\"{name}\")\n    {{"),
            )
        } else {
            (
                format!("let text = &context.object.spec.{};\n", self.field.name),
                format!("    if text.contains(\"{name}\") {{"),
            )
        };
        format!(
            "fn {function}(context: &RuleContext<'_, {kind}>, diagnostics: &mut Diagnostics) {{
    {text}{condition}
        diagnostics.invalid(\"spec.{field}\", text.as_str(), \"{message}\");
    }}
}}
",
            function = self.function(),
            field = self.json_name,
            message = self.message(),
        )
    }

    /// Returns the file of the rules with one more.
    fn in_rust(&self, source: &str, place: &RulesFile) -> String {
        let (rules, after) = source.split_at(place.end_of_rules);
        let (functions, tests) = after.split_at(place.end_of_functions - place.end_of_rules);
        let comma = if place.needs_comma { "," } else { "" };
        let registration = self.registration();
        let check = self.check();
        if tests.is_empty() {
            format!("{rules}{comma}{registration}{functions}\n{check}")
        } else {
            format!("{rules}{comma}{registration}{functions}{check}\n{tests}")
        }
    }

    /// Returns both cases with their names.
    fn cases(
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use clap::Parser;

    use crate::{AddArgs, NewArgs, add, create};

    fn repository(folder: &Path) {
        let directory = folder.display().to_string();
        let args = ["new", "a", "--kind", "Lamp", "--group", "demo.example.com"];
        let args = args.into_iter().chain(["--directory", &directory]);
        create(&NewArgs::parse_from(args)).expect("a repository");
    }

    fn add_rule(folder: &Path, arguments: &[&str]) -> Result<(), String> {
        let args = ["add", "rule"].iter().chain(arguments);
        let args = AddArgs::parse_from(args.chain(&["--kind", "Lamp"]));
        add(&args, folder)
            .map(drop)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_rule_of_each_layer_is_added_where_the_others_are() {
        let folder = tempfile::tempdir().expect("a folder");
        repository(folder.path());
        for (name, layer) in [("brand", "schema"), ("gold", "cel"), ("silver", "rust")] {
            add_rule(folder.path(), &[name, "--layer", layer]).expect("a rule");
        }
        let read = |path: &str| fs::read_to_string(folder.path().join(path)).expect("a file");
        let resource = read("src/lamp/resource.rs");
        let attributes = "[single-line]\"))]
    #[schemars(regex(pattern = \"^[^<>]*$\"))]
    #[x_kube(validation = Rule::new(\"!self.contains('gold')\").message(\"must not contain `gold` [gold]\"))]
    pub text: String,";
        assert!(resource.contains(attributes), "{resource}");
        let rules = read("src/lamp/rules.rs");
        for part in [
            "id: \"balanced-braces\",",
            "id: \"silver\",",
            "\nfn check_silver(",
        ] {
            assert!(rules.contains(part), "{rules}");
        }
        let violation = read("tests/cases/lamp-violates-silver.yaml");
        assert!(violation.contains("    text: H silver\n"), "{violation}");
        assert!(violation.contains("  - rule: silver\n"), "{violation}");
        assert!(!read("tests/cases/lamp-satisfies-silver.yaml").contains("errors"));

        for (taken, layer) in [
            ("silver", "rust"),
            ("gold", "cel"),
            ("balanced-braces", "cel"),
            ("single-line", "rust"),
            // The function `check_braces` is that of another rule.
            ("braces", "rust"),
        ] {
            let again = add_rule(folder.path(), &[taken, "--layer", layer]);
            let error = again.expect_err("a taken id");
            assert!(error.contains("exists already"), "{taken}: {error}");
        }
        assert_eq!(read("src/lamp/resource.rs"), resource);
        assert_eq!(read("src/lamp/rules.rs"), rules);
    }

    #[test]
    fn nothing_is_written_where_the_place_is_not_found() {
        let folder = tempfile::tempdir().expect("a folder");
        repository(folder.path());
        let rules = folder.path().join("src/lamp/rules.rs");
        let own = "pub fn rules() -> Vec<Rule<Lamp>> { all() }\n";
        fs::write(&rules, own).expect("a file");
        let error = add_rule(folder.path(), &["gold", "--layer", "rust"]).expect_err("no list");
        for part in [
            "a function `rules` that ends with `vec![…]`",
            "id: \"gold\"",
            "fn check_gold(",
        ] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(fs::read_to_string(&rules).expect("a file"), own);
        let error = add_rule(folder.path(), &["gold", "--field", "size"]).expect_err("no field");
        assert!(
            error.contains("lamp/resource.rs") && error.contains("`--field`"),
            "{error}"
        );
        let error =
            add_rule(folder.path(), &["gold", "--field", "language"]).expect_err("a pattern");
        assert!(error.contains("a field without a pattern"), "{error}");
        assert!(
            !folder
                .path()
                .join("tests/cases/lamp-violates-gold.yaml")
                .exists()
        );
    }

    /// The file of an author who does not use rustfmt keeps its form.
    #[test]
    fn only_a_file_that_was_formatted_is_formatted() {
        let folder = tempfile::tempdir().expect("a folder");
        repository(folder.path());
        let path = folder.path().join("src/lamp/rules.rs");
        let rules = fs::read_to_string(&path).expect("a file");
        fs::write(&path, rules + "\nfn  own( ) { }\n").expect("a file");
        add_rule(folder.path(), &["gold", "--layer", "rust"]).expect("a rule");
        let changed = fs::read_to_string(&path).expect("a file");
        assert!(changed.contains("\nfn  own( ) { }\n"), "{changed}");
    }
}

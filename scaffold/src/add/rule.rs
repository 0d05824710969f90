//! `lockstep add rule`: a rule with a case that satisfies it and one that violates it.

mod new_rule;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::json;

use crate::added::Added;
use crate::case_file::{path, valid_object};
use crate::changes::Changes;
use crate::edits::{Edits, indentation};
use crate::error::Error;
use crate::names::{check_part, module_of};
use crate::object_path::set;
use crate::project::{Project, read};
use crate::source::Source;
use crate::source::imports::Imports;
use crate::source::rules_file::{has_function, rules_file};
use crate::source::spec::{TextField, text_field, text_fields};
use new_rule::NewRule;

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
    /// Field of the spec that the rule is about, a `String`, by its name or its path, such as `text` or `spec.link.label`.
    /// Default: the first without a pattern.
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

pub(crate) fn add(args: &RuleArgs, project: &Project) -> Result<Added, Error> {
    check_part(&args.name)?;
    let module = module_of(&args.kind)?;
    let resource = project.path(&format!("src/{module}/resource.rs"));
    let source = read(&resource)?;
    let rule = NewRule {
        name: &args.name,
        kind: &args.kind,
        field: field(args, &source, &resource)?,
    };
    let rules = project.path(&format!("src/{module}/rules.rs"));
    require_free_id(rule.name, &[&resource, &rules])?;
    let field_path = rule.path();
    let (_, parent) = field_path
        .split_last()
        .unwrap_or((&rule.field.json_path[0], &[]));
    let mut object = valid_object(project, &args.kind, parent)?;
    let valid = field_path.iter().fold(&object, |value, name| &value[name]);
    let valid = valid.as_str().unwrap_or("example").to_owned();
    let (target, before, after, value, error) = match args.layer {
        Layer::Schema => {
            let (attribute, value, error) = rule.schema(&valid);
            let after = with_attribute(&source, &rule.field, &attribute);
            (resource, source, after, value, error)
        }
        Layer::Cel => {
            let (value, error) = rule.forbidden(&valid);
            let after = with_attribute(&source, &rule.field, &rule.cel());
            (resource, source, after, value, error)
        }
        Layer::Rust => {
            let (value, error) = rule.forbidden(&valid);
            let source = read(&rules)?;
            let after = in_rust(&rule, &rules, &source)?;
            (rules, source, after, value, error)
        }
    };
    let mut violation = object.clone();
    for (object, text) in [(&mut object, &valid), (&mut violation, &value)] {
        set(object, &field_path, json!(text)).map_err(|wrong| Error::Set {
            path: field_path.join("."),
            segment: wrong.segment,
            problem: wrong.problem,
        })?;
    }
    let mut changes = Changes::default();
    changes.replace(target, before, after);
    for (name, case) in rule.cases(object, violation, error) {
        changes.create(path(project, &module, &name), case.text());
    }
    let files = changes.write(&project.rustfmt())?;
    let notes = Vec::new();
    Ok(Added { files, notes })
}

/// Returns the field that the rule is about.
fn field(args: &RuleArgs, text: &str, resource: &Path) -> Result<TextField, Error> {
    let source = Source::parse(text).map_err(Error::syntax(resource))?;
    let no_place = |missing: String| Error::NoPlace {
        path: resource.to_owned(),
        missing,
        by_hand: format!(
            "the rule `{}`, and its cases with `lockstep add case`",
            args.name
        ),
    };
    let spec = format!("{}Spec", args.kind);
    let found = match &args.field {
        Some(field) => {
            let path = field.strip_prefix("spec.").unwrap_or(field);
            let path: Vec<_> = path.split('.').collect();
            text_field(&source, &spec, &path)
                .map_err(|missing| no_place(format!("{missing}, for `--field {field}`")))?
        }
        None => {
            let fields = text_fields(&source, &spec).map_err(no_place)?;
            let mut fields = fields.into_iter();
            let found = fields.find(|field| field.admits_words && fits(args.layer, field));
            found.ok_or_else(|| {
                let required = required(args.layer);
                no_place(format!(
                    "{required}; choose one of a struct in the spec with `--field`"
                ))
            })?
        }
    };
    if !found.admits_words || !fits(args.layer, &found) {
        let required = required(args.layer);
        return Err(no_place(format!(
            "{required}; choose another one with `--field`"
        )));
    }
    // Paths in the printed form could not be read.
    if let Some(name) = found
        .json_path
        .iter()
        .find(|name| name.contains(['.', '[', '"', '\\']))
    {
        return Err(no_place(format!(
            "a field whose name in JSON is plain, and not `{name}`"
        )));
    }
    Ok(found)
}

/// Returns true if a field has a place for a rule of a layer.
fn fits(layer: Layer, field: &TextField) -> bool {
    match layer {
        Layer::Schema => field.free_keyword.is_some(),
        Layer::Cel => field.allows_cel,
        Layer::Rust => true,
    }
}

/// Returns the field that a layer needs. A pattern would also deny the value that breaks the new rule, in its cases.
fn required(layer: Layer) -> &'static str {
    match layer {
        Layer::Schema => "a field of the type `String` without a pattern, or without a length",
        Layer::Cel => {
            "a field of the type `String` without a pattern, which would also deny the value of the new case, in a struct that derives `KubeSchema` (and not `JsonSchema`)"
        }
        Layer::Rust => {
            "a field of the type `String` without a pattern, which would also deny the value of the new case"
        }
    }
}

/// Returns the file of the custom resource with one more attribute of the field.
fn with_attribute(text: &str, field: &TextField, attribute: &str) -> String {
    let mut edits = Edits::of(text);
    let indentation = indentation(text, field.position);
    edits.insert(field.position, format!("{attribute}\n{indentation}"));
    edits.apply()
}

/// Returns the file of the rules with one more.
fn in_rust(rule: &NewRule<'_>, path: &Path, text: &str) -> Result<String, Error> {
    let source = Source::parse(text).map_err(Error::syntax(path))?;
    let function = rule.function();
    if has_function(&source, &function) {
        return Err(rule_exists(path, &function));
    }
    let imports = Imports::of_items(&source.file.items);
    let (registration, check) = (rule.registration(&imports), rule.check(&imports));
    let place = rules_file(&source).ok_or_else(|| Error::NoPlace {
        path: path.to_owned(),
        missing: "a function `rules` that ends with `vec![…]`".to_owned(),
        by_hand: format!("to the rules:{registration}\n{check}"),
    })?;
    let mut edits = Edits::of(text);
    place.add(text, &registration, &check, &mut edits);
    Ok(edits.apply())
}

/// Returns an error if another rule of the kind has the id. A missing file has none.
fn require_free_id(name: &str, files: &[&PathBuf]) -> Result<(), Error> {
    let (of_rust, of_message) = (format!("id:\"{name}\""), format!("[{name}]"));
    for path in files.iter().filter(|path| path.exists()) {
        let text = read(path)?.split_whitespace().collect::<String>();
        if text.contains(&of_rust) || text.contains(&of_message) {
            return Err(rule_exists(path, name));
        }
    }
    Ok(())
}

fn rule_exists(path: &Path, name: &str) -> Error {
    Error::RuleExists {
        path: path.to_owned(),
        name: name.to_owned(),
    }
}

#[cfg(test)]
mod tests;

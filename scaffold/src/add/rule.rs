//! `lockstep add rule`: a rule with a case that satisfies it and one that violates it.

mod new_rule;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::added::Added;
use crate::case_file::{path, valid_objects};
use crate::changes::Changes;
use crate::edits::{Edits, indentation};
use crate::error::Error;
use crate::names::{check_part, module_of};
use crate::object_path::set;
use crate::project::{Project, read};
use crate::source::Source;
use crate::source::imports::Imports;
use crate::source::rule_ids::has_rule;
use crate::source::rules_file::{has_function, rules_file};
use crate::source::spec::{TextField, text_field, text_fields};
use new_rule::{NewRule, cel};

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
    require_file(args, &resource, "the custom resource")?;
    let source = read(&resource)?;
    let rule = NewRule {
        name: &args.name,
        kind: &args.kind,
        field: field(args, &source, &resource)?,
        has_let_chains: project.edition().is_some_and(|edition| *edition >= *"2024"),
    };
    let rules = project.path(&format!("src/{module}/rules.rs"));
    if args.layer == Layer::Rust {
        require_file(args, &rules, "the rules")?;
    }
    require_free_id(rule.name, &[&resource, &rules])?;
    let field_path = rule.path();
    let (mut object, texts) = texts(args, project, &rule)?;
    let (valid, value) = texts;
    let (target, before, after, error) = match args.layer {
        Layer::Schema => {
            let (attribute, error) = rule.schema();
            let after = with_attribute(&source, &rule.field, &attribute);
            (resource, source, after, error)
        }
        Layer::Cel => {
            let after = with_attribute(&source, &rule.field, &rule.cel());
            (resource, source, after, rule.forbidden())
        }
        Layer::Rust => {
            let source = read(&rules)?;
            let after = in_rust(&rule, &rules, &source)?;
            (rules, source, after, rule.forbidden())
        }
    };
    let mut violation = object.clone();
    for (object, text) in [(&mut object, &valid), (&mut violation, &value)] {
        set(object, &field_path, json!(text)).map_err(|wrong| Error::NoPlace {
            path: project.path("tests/cases"),
            missing: format!(
                "a valid object in which the field `{}` can be set: in the smallest one, `{}` {}",
                field_path.join("."),
                wrong.segment,
                wrong.problem
            ),
            by_hand: by_hand(args),
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

/// Returns the smallest valid object whose text satisfies the rule, with that text and one that violates only the rule.
fn texts(
    args: &RuleArgs,
    project: &Project,
    rule: &NewRule<'_>,
) -> Result<(Value, (String, String)), Error> {
    let path = rule.path();
    let parent = &path[..path.len() - 1];
    let objects = valid_objects(project, &args.kind, parent)?;
    let is_schema = args.layer == Layer::Schema;
    let found = objects.into_iter().find_map(|object| {
        let text = path.iter().fold(&object, |value, name| &value[name]);
        let texts = rule.texts(text.as_str(), is_schema)?;
        Some((object, texts))
    });
    found.ok_or_else(|| {
        let (field, name) = (path.join("."), &args.name);
        Error::NoPlace {
            path: project.path("tests/cases"),
            missing: format!(
                "a valid object whose `{field}` satisfies the new rule, and can be changed to violate it within the length of {}",
                rule.lengths()
            ),
            by_hand: format!("such a case, or choose another id than `{name}` or another field with `--field`"),
        }
    })
}

/// Returns an error if a file of the kind does not exist.
fn require_file(args: &RuleArgs, path: &Path, content: &'static str) -> Result<(), Error> {
    let missing = || Error::NoFile {
        path: path.to_owned(),
        kind: args.kind.clone(),
        content,
    };
    path.exists().then_some(()).ok_or_else(missing)
}

/// Returns the field that the rule is about.
fn field(args: &RuleArgs, text: &str, resource: &Path) -> Result<TextField, Error> {
    let source = Source::parse(text).map_err(Error::syntax(resource))?;
    let no_place = |missing: String| Error::NoPlace {
        path: resource.to_owned(),
        missing,
        by_hand: by_hand(args),
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
            let obstacles: Vec<_> = fields
                .iter()
                .filter_map(|it| obstacle(args.layer, it))
                .collect();
            let mut fields = fields.into_iter();
            let found = fields.find(|field| obstacle(args.layer, field).is_none());
            found.ok_or_else(|| {
                let obstacles = obstacles.iter().map(|obstacle| format!(": {obstacle}"));
                let obstacles = obstacles.collect::<String>();
                no_place(format!(
                    "a field of the type `String`{obstacles}; choose one of a struct in the spec with `--field`"
                ))
            })?
        }
    };
    if let Some(obstacle) = obstacle(args.layer, &found) {
        return Err(no_place(format!(
            "a field of the type `String`: {obstacle}; choose another one with `--field`"
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

/// Returns why a field has no place for a rule of a layer; none if it has one.
fn obstacle(layer: Layer, field: &TextField) -> Option<String> {
    let name = field.json_path.join(".");
    if let Some(restriction) = &field.restriction {
        let case = "which may also deny the text of the new case";
        return Some(format!("`{name}` has {restriction}, {case}"));
    }
    let hidden = field.rust_path.iter().find(|step| !step.is_visible);
    match layer {
        Layer::Schema if field.free_keyword.is_none() => {
            Some(format!("`{name}` has a length and a pattern already"))
        }
        Layer::Cel if !field.allows_cel => Some(format!(
            "the struct of `{name}` does not derive `KubeSchema` (instead of `JsonSchema`)"
        )),
        Layer::Rust => hidden.map(|step| {
            let step = &step.name;
            format!(
                "`{step}` is private, and `rules.rs` cannot read it without `pub` or `pub(super)`"
            )
        }),
        Layer::Schema | Layer::Cel => None,
    }
}

/// Returns what the author adds where no field is found.
fn by_hand(args: &RuleArgs) -> String {
    let name = &args.name;
    let code = match args.layer {
        Layer::Schema => {
            "an attribute of a field, such as `#[schemars(length(max = 512))]`".to_owned()
        }
        Layer::Cel => format!("an attribute of a field\n\n    {}\n\n", cel(name)),
        Layer::Rust => format!("a `Rule` with the id `{name}` in `rules.rs`"),
    };
    format!("{code}, and its cases with `lockstep add case`").replace("\n\n, and", "\n\nand")
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
    for path in files.iter().filter(|path| path.exists()) {
        let text = read(path)?;
        let source = Source::parse(&text).map_err(Error::syntax(path))?;
        if has_rule(&source, name) {
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

//! Fields of the spec of a kind.

mod schema;

use std::ops::RangeInclusive;

use proc_macro2::Span;
use serde_derive_internals::ast::{Container, Data};
use serde_derive_internals::{Ctxt, Derive};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned;
use syn::{
    DeriveInput, Field, GenericArgument, Ident, Item, ItemStruct, PathArguments, Type, Visibility,
};

use crate::source::{Source, is_conditional};
use schema::Schema;
pub(crate) use schema::{Keyword, WORDS};

/// Field with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextField {
    /// Fields from the spec to the text.
    pub(crate) rust_path: Vec<Step>,
    /// Names in JSON from the spec to the text.
    pub(crate) json_path: Vec<String>,
    /// First keyword of the schema that the field does not have.
    pub(crate) free_keyword: Option<Keyword>,
    /// Allowed numbers of characters.
    pub(crate) length: RangeInclusive<usize>,
    /// Part of the schema that may deny another word in the text, such as "a pattern"; none if there is none.
    pub(crate) restriction: Option<String>,
    /// If true, the struct of the field derives the schema with the rules in CEL of its fields.
    pub(crate) allows_cel: bool,
    /// Position after the attributes.
    pub(crate) position: usize,
}

/// Field on the way to a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Name in Rust, such as `text` or `r#type`.
    pub(crate) name: String,
    pub(crate) is_optional: bool,
    /// If true, code of the other modules of the kind may read the field.
    pub(crate) is_visible: bool,
}

/// Returns the fields of a struct that contain a text, also those that it takes from other structs with `serde(flatten)`.
///
/// # Errors
///
/// The file has no such struct; the error is what is missing.
pub(crate) fn text_fields(source: &Source<'_>, name: &str) -> Result<Vec<TextField>, String> {
    let spec = spec(source, name)?;
    let mut found = Vec::new();
    for field in all_fields(source, spec, &mut Vec::new())? {
        found.extend(field.text(source));
    }
    Ok(found)
}

/// Returns the field with a text at a path below a struct, whose segments are names in Rust or in JSON.
///
/// # Errors
///
/// There is none; the error is what is missing.
pub(crate) fn text_field(
    source: &Source<'_>,
    name: &str,
    path: &[&str],
) -> Result<TextField, String> {
    let mut spec = spec(source, name)?;
    let (mut rust_path, mut json_path) = (Vec::new(), Vec::new());
    for (at, segment) in path.iter().enumerate() {
        let fields = all_fields(source, spec, &mut Vec::new())?;
        let by_rust = |it: &&SpecField<'_>| it.ident.unraw() == *segment;
        let by_json = |it: &&SpecField<'_>| it.json_name.as_deref() == Some(*segment);
        let field = fields
            .iter()
            .find(by_rust)
            .or_else(|| fields.iter().find(by_json));
        let missing = || {
            let mut names = spec
                .fields
                .iter()
                .filter(|field| is_conditional(&field.attrs));
            let is_named = |it: &Field| it.ident.as_ref().is_some_and(|it| it.unraw() == *segment);
            let condition = if names.any(is_named) {
                WITHOUT_CONDITION
            } else {
                ""
            };
            format!(
                "the field `{segment}` in the struct `{}`{condition}",
                spec.ident
            )
        };
        let field = field.ok_or_else(missing)?;
        rust_path.extend(field.flattened.iter().cloned());
        rust_path.push(field.step());
        json_path.push(field.json_name.clone().ok_or_else(|| {
            format!("one name of the field `{segment}` in JSON: its attributes give it several")
        })?);
        if at + 1 == path.len() {
            let text = field.text(source).ok_or_else(|| {
                format!(
                    "a field of the type `String` or `Option<String>`: `{segment}` has another type"
                )
            })?;
            return Ok(TextField {
                rust_path,
                json_path,
                ..text
            });
        }
        spec = field.structure(source).ok_or_else(|| {
            format!(
                "a struct in this file as the type of the field `{segment}`: a path does not lead through lists, maps, and \
                 types of other files"
            )
        })?;
    }
    Err("the name of a field".to_owned())
}

/// Addition to what is missing if it is there in some builds.
const WITHOUT_CONDITION: &str = " without the attribute `cfg`";

fn spec<'a>(source: &'a Source<'_>, name: &str) -> Result<&'a ItemStruct, String> {
    structure(source, name).ok_or_else(|| {
        let is_there = structs(source).any(|item| item.ident == name);
        let condition = if is_there { WITHOUT_CONDITION } else { "" };
        format!("the struct `{name}`{condition}")
    })
}

fn structs<'a>(source: &'a Source<'_>) -> impl Iterator<Item = &'a ItemStruct> {
    source.file.items.iter().filter_map(|item| match item {
        Item::Struct(item) => Some(item),
        _ => None,
    })
}

/// Returns a struct that exists in every build.
fn structure<'a>(source: &'a Source<'_>, name: &str) -> Option<&'a ItemStruct> {
    structs(source).find(|item| item.ident == name && !is_conditional(&item.attrs))
}

/// Field of a struct, or of one that it contains with `serde(flatten)`.
struct SpecField<'a> {
    /// Flattened fields that contain it.
    flattened: Vec<Step>,
    field: &'a Field,
    ident: &'a Ident,
    /// Name in JSON; none if it has several.
    json_name: Option<String>,
    allows_cel: bool,
}

/// Returns the fields of a struct with those of the structs that it flattens.
fn all_fields<'a>(
    source: &'a Source<'_>,
    spec: &'a ItemStruct,
    flattened: &mut Vec<Step>,
) -> Result<Vec<SpecField<'a>>, String> {
    let mut found = Vec::new();
    let names = names(spec)?;
    let allows_cel = schema::derives(&spec.attrs, "KubeSchema");
    for (field, name) in spec.fields.iter().zip(names) {
        let Some(ident) = field
            .ident
            .as_ref()
            .filter(|_| !is_conditional(&field.attrs))
        else {
            continue;
        };
        let json_name = match name {
            Name::Skipped => continue,
            Name::Is(name) => Some(name),
            Name::Ambiguous => None,
            Name::Flattened => {
                let step = step(field, ident);
                // Another file, or a map: its fields are not known.
                let inner = structure(source, &unwrapped(&field.ty).1);
                // A type that contains itself ends here.
                if let Some(inner) = inner.filter(|_| !flattened.contains(&step)) {
                    flattened.push(step);
                    found.extend(all_fields(source, inner, flattened)?);
                    flattened.pop();
                }
                continue;
            }
        };
        found.push(SpecField {
            flattened: flattened.clone(),
            field,
            ident,
            json_name: json_name.filter(|_| !schema::is_renamed(field)),
            allows_cel,
        });
    }
    Ok(found)
}

fn step(field: &Field, ident: &Ident) -> Step {
    Step {
        name: ident.to_string(),
        is_optional: unwrapped(&field.ty).0,
        is_visible: match &field.vis {
            Visibility::Public(_) => true,
            Visibility::Restricted(within) => !within.path.is_ident("self"),
            Visibility::Inherited => false,
        },
    }
}

impl SpecField<'_> {
    fn step(&self) -> Step {
        step(self.field, self.ident)
    }

    fn structure<'a>(&self, source: &'a Source<'_>) -> Option<&'a ItemStruct> {
        structure(source, &unwrapped(&self.field.ty).1)
    }

    /// Returns the field if it contains a text and has one name.
    fn text(&self, source: &Source<'_>) -> Option<TextField> {
        if unwrapped(&self.field.ty).1 != "String" {
            return None;
        }
        let schema = Schema::of(self.field);
        let first = match &self.field.vis {
            Visibility::Inherited => self.ident.span(),
            visibility => visibility.span(),
        };
        let steps = self.flattened.iter().cloned().chain([self.step()]);
        Some(TextField {
            rust_path: steps.collect(),
            json_path: vec![self.json_name.clone()?],
            free_keyword: schema.free_keyword(),
            length: schema.length,
            restriction: schema.restriction,
            allows_cel: self.allows_cel,
            position: source.range(first).start,
        })
    }
}

/// Returns the name of a type, and whether it is optional. The value may be in a box. A type with an `Option` within another
/// one or within a box has no name: code for it would be another one.
fn unwrapped(of_type: &Type) -> (bool, String) {
    let mut is_optional = false;
    let mut inner = of_type;
    let mut depth = 0;
    loop {
        let last = match inner {
            Type::Path(path) => path.path.segments.last(),
            _ => None,
        };
        let Some(last) = last else {
            return (is_optional, String::new());
        };
        let name = last.ident.to_string();
        let argument = match &last.arguments {
            PathArguments::AngleBracketed(arguments) => arguments.args.first(),
            _ => None,
        };
        match argument {
            Some(GenericArgument::Type(argument))
                if name == "Box" || name == "Option" && depth == 0 =>
            {
                is_optional |= name == "Option";
                inner = argument;
                depth += 1;
            }
            // A list or a map: its items have the other type.
            Some(_) => return (is_optional, String::new()),
            None => return (is_optional, name),
        }
    }
}

/// Name of a field in JSON.
enum Name {
    Is(String),
    /// One for reading, and another one for writing.
    Ambiguous,
    /// The object has the fields of the field's value instead.
    Flattened,
    /// JSON does not have the field.
    Skipped,
}

/// Returns the name of each field in JSON, as serde reads its attributes.
fn names(spec: &ItemStruct) -> Result<Vec<Name>, String> {
    let input = DeriveInput::from(spec.clone());
    let context = Ctxt::new();
    let private = Ident::new("private", Span::call_site());
    let container = Container::from_ast(&context, &input, Derive::Deserialize, &private);
    let checked = context.check();
    let wrong = |problem: &str| {
        format!(
            "attributes of the struct `{}` that serde accepts: {problem}",
            spec.ident
        )
    };
    checked.map_err(|error| wrong(&error.to_string()))?;
    let converted = container.as_ref().and_then(|container| {
        let attributes = &container.attrs;
        let conversions = [
            ("transparent", attributes.transparent()),
            ("from", attributes.type_from().is_some()),
            ("try_from", attributes.type_try_from().is_some()),
            ("into", attributes.type_into().is_some()),
        ];
        conversions
            .into_iter()
            .find_map(|(name, has_it)| has_it.then_some(name))
    });
    if let Some(attribute) = converted {
        return Err(format!(
            "fields that JSON has, too: the struct `{}` has the attribute `serde({attribute})`, so that JSON has another form",
            spec.ident
        ));
    }
    let Some(Data::Struct(_, fields)) = container.map(|container| container.data) else {
        return Err(wrong("it is no struct"));
    };
    let names = fields.iter().map(|field| {
        let attributes = &field.attrs;
        if attributes.skip_deserializing() || attributes.skip_serializing() {
            return Name::Skipped;
        }
        if attributes.flatten() {
            return Name::Flattened;
        }
        let name = &attributes.name().deserialize_name().value;
        if *name == attributes.name().serialize_name().value {
            Name::Is(name.clone())
        } else {
            Name::Ambiguous
        }
    });
    Ok(names.collect())
}

#[cfg(test)]
mod tests;

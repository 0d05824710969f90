//! Names of the fields of a struct, as `serde` writes them.

use darling::ast::Data;
use darling::util::Ignored;
use darling::{FromDeriveInput, FromField};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Generics, Ident, Type};

use crate::crate_path;

#[derive(FromDeriveInput)]
#[darling(
    attributes(serde),
    allow_unknown_fields,
    supports(struct_named, enum_any)
)]
struct Input {
    ident: Ident,
    generics: Generics,
    data: Data<Ignored, Field>,
    #[darling(default)]
    rename_all: Option<Case>,
    #[darling(default)]
    transparent: bool,
    #[darling(default)]
    from: Option<String>,
    #[darling(default)]
    try_from: Option<String>,
}

#[derive(FromField)]
#[darling(attributes(serde), allow_unknown_fields)]
struct Field {
    ident: Option<Ident>,
    ty: Type,
    #[darling(default)]
    rename: Option<Rename>,
    #[darling(default)]
    flatten: bool,
    #[darling(default)]
    skip: bool,
}

/// Value of `rename`, or of its form with one name for each direction.
#[derive(Clone)]
struct Rename(String);

impl darling::FromMeta for Rename {
    fn from_string(value: &str) -> darling::Result<Self> {
        Ok(Self(value.to_owned()))
    }

    fn from_list(items: &[darling::ast::NestedMeta]) -> darling::Result<Self> {
        #[derive(darling::FromMeta)]
        struct Directions {
            serialize: Option<String>,
            deserialize: Option<String>,
        }
        let directions = Directions::from_list(items)?;
        let name = directions.deserialize.or(directions.serialize);
        name.map(Self)
            .ok_or_else(|| darling::Error::missing_field("deserialize"))
    }
}

/// Case of all fields of a struct.
#[derive(Clone, Copy)]
enum Case {
    Camel,
    Pascal,
    Kebab,
    ScreamingKebab,
    ScreamingSnake,
    Snake,
    Lower,
    Upper,
}

impl darling::FromMeta for Case {
    fn from_string(value: &str) -> darling::Result<Self> {
        Ok(match value {
            "camelCase" => Self::Camel,
            "PascalCase" => Self::Pascal,
            "kebab-case" => Self::Kebab,
            "SCREAMING-KEBAB-CASE" => Self::ScreamingKebab,
            "SCREAMING_SNAKE_CASE" => Self::ScreamingSnake,
            "snake_case" => Self::Snake,
            "lowercase" => Self::Lower,
            "UPPERCASE" => Self::Upper,
            _ => return Err(darling::Error::unknown_value(value)),
        })
    }
}

impl Case {
    /// Converts the name of a field, which Rust writes in snake case.
    fn apply(self, name: &str) -> String {
        let capitalized = || name.split('_').map(capitalize);
        match self {
            Self::Camel => {
                let pascal: String = capitalized().collect();
                let mut letters = pascal.chars();
                let first = letters.next().map(|letter| letter.to_ascii_lowercase());
                first.into_iter().chain(letters).collect()
            }
            Self::Pascal => capitalized().collect(),
            Self::Kebab => name.replace('_', "-"),
            Self::ScreamingKebab => name.to_ascii_uppercase().replace('_', "-"),
            Self::ScreamingSnake | Self::Upper => name.to_ascii_uppercase(),
            Self::Snake | Self::Lower => name.to_owned(),
        }
    }
}

fn capitalize(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

pub(crate) fn derive(input: &DeriveInput) -> darling::Result<TokenStream> {
    let validation = crate_path::shared_validation()?;
    let input = Input::from_derive_input(input)?;
    let name = &input.ident;
    let (parameters, arguments, conditions) = input.generics.split_for_impl();
    let fields = fields(&input, &validation);
    Ok(quote! {
        impl #parameters #validation::field_names::FieldNames for #name #arguments #conditions {
            const FIELDS: #validation::field_names::Fields = #fields;
        }
    })
}

/// Returns an expression with the names of the fields.
fn fields(input: &Input, validation: &TokenStream) -> TokenStream {
    let any = quote!(#validation::field_names::Fields::Any);
    let Some(fields) = input.data.as_ref().take_struct() else {
        return any;
    };
    // With these, the fields are not those of the struct.
    let is_other = input.transparent || input.from.is_some() || input.try_from.is_some();
    if is_other || fields.iter().any(|field| field.flatten) {
        return any;
    }
    let known = fields.iter().filter(|field| !field.skip).map(|field| {
        let name = field_name(field, input.rename_all);
        let type_ = &field.ty;
        quote!(#validation::field_names::Field {
            name: #name,
            fields: {
                use #validation::field_names::OfOtherType as _;
                #validation::field_names::OfType::<#type_>::FIELDS
            },
        })
    });
    quote!(#validation::field_names::Fields::Known(&[#(#known),*]))
}

fn field_name(field: &Field, case: Option<Case>) -> String {
    if let Some(rename) = &field.rename {
        return rename.0.clone();
    }
    let name = field.ident.as_ref().map(ToString::to_string);
    let name = name.unwrap_or_default();
    let name = name.strip_prefix("r#").unwrap_or(&name);
    case.map_or_else(|| name.to_owned(), |case| case.apply(name))
}

#[cfg(test)]
mod tests {
    use darling::FromMeta as _;

    use super::*;

    #[test]
    fn names_have_the_case_that_serde_gives_them() {
        let name = "final_snapshot";
        assert_eq!(Case::Camel.apply(name), "finalSnapshot");
        assert_eq!(Case::Pascal.apply(name), "FinalSnapshot");
        assert_eq!(Case::Kebab.apply(name), "final-snapshot");
        assert_eq!(Case::ScreamingSnake.apply(name), "FINAL_SNAPSHOT");
        assert_eq!(Case::Snake.apply(name), name);
        let case = Case::from_string("SCREAMING-KEBAB-CASE").expect("a case");
        assert_eq!(case.apply(name), "FINAL-SNAPSHOT");
    }
}

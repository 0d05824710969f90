//! Derive macros of [`lockstep-shared-validation`](https://docs.rs/lockstep-shared-validation), which re-exports them and
//! documents how they are used.

mod crate_path;
mod field_names;
mod validated_resource;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `ValidatedResource` for the kind that kube's `CustomResource` derives from the same struct.
///
/// Group, version and kind are those of the attribute `#[kube(…)]`. The attribute `#[validated(…)]` names what the
/// trait takes from the author, each a path of a function or of a constant:
///
/// | key | function of the trait | required |
/// |---|---|---|
/// | `example` | `example` | yes |
/// | `crd` | `crd`: changes the CRD that kube derives, a `Value`, before the standard fields are added | no |
/// | `rules` | `rules` | no |
/// | `settings` | `settings` | no |
/// | `dynamic_defaults` | `dynamic_defaults` | no |
/// | `additional_versions` | `additional_versions`, which are added to the CRD | no |
/// | `rule_references` | `rule_references` | no |
/// | `transition_fields` | `transition_fields`, a constant | no |
/// | `optional_spec` | `is_spec_optional`, without a value | no |
///
/// It also implements `FieldNames` for the struct and for the kind.
#[proc_macro_derive(ValidatedResource, attributes(validated, kube, serde))]
pub fn validated_resource(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let output = validated_resource::derive(&input);
    output.unwrap_or_else(darling::Error::write_errors).into()
}

/// Implements `FieldNames`: the names of the fields of a struct as `serde` writes them, so that the macro `fields!` can
/// check a path at compile time.
///
/// The fields below an enum, below a map and below a type without this trait are not checked. The same holds for all names
/// of a struct with a flattened field.
#[proc_macro_derive(FieldNames, attributes(serde))]
pub fn field_names(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let output = field_names::derive(&input);
    output.unwrap_or_else(darling::Error::write_errors).into()
}

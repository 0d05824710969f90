//! Implementation of `ValidatedResource` for the kind that kube derives from a spec.

use darling::FromDeriveInput;
use darling::util::Flag;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{DeriveInput, Ident, Path};

use crate::{crate_path, field_names};

/// The part of kube's attribute that is needed.
#[derive(FromDeriveInput)]
#[darling(attributes(kube), allow_unknown_fields, supports(struct_named))]
struct Kube {
    ident: Ident,
    group: String,
    version: String,
    kind: String,
    /// Name of the struct of the kind, if it is not that of the kind.
    #[darling(default)]
    root: Option<String>,
    #[darling(default)]
    no_spec: Flag,
    #[darling(default)]
    status: Option<Path>,
}

#[derive(FromDeriveInput)]
#[darling(attributes(validated))]
struct Validated {
    example: Path,
    #[darling(default)]
    crd: Option<Path>,
    #[darling(default)]
    rules: Option<Path>,
    #[darling(default)]
    settings: Option<Path>,
    #[darling(default)]
    dynamic_defaults: Option<Path>,
    #[darling(default)]
    additional_versions: Option<Path>,
    #[darling(default)]
    rule_references: Option<Path>,
    #[darling(default)]
    transition_fields: Option<Path>,
    #[darling(default)]
    optional_spec: Flag,
}

pub(crate) fn derive(input: &DeriveInput) -> darling::Result<TokenStream> {
    let validation = crate_path::shared_validation()?;
    let kube =
        Kube::from_derive_input(input).map_err(|error| error.with_span(&input.ident).at("kube"))?;
    if kube.no_spec.is_present() {
        let message =
            "a kind without `spec` is not supported: implement `ValidatedResource` by hand";
        return Err(darling::Error::custom(message).with_span(&input.ident));
    }
    let validated = Validated::from_derive_input(input)?;
    let (group, version, kind) = (&kube.group, &kube.version, &kube.kind);
    let name = kube.root.as_ref().unwrap_or(kind);
    let resource = format_ident!("{name}");
    let example = &validated.example;
    let functions = functions(&validated, &validation);
    let crd = crd(&validated, &resource, &validation);
    let of_spec = field_names::derive(input)?;
    let of_resource = resource_field_names(&kube, &resource, &validation);
    Ok(quote! {
        impl #validation::ValidatedResource for #resource {
            const GROUP: &'static str = #group;
            const VERSION: &'static str = #version;
            const KIND: &'static str = #kind;

            fn crd() -> #validation::private::Value {
                #crd
            }

            fn example() -> #validation::private::Value {
                #example()
            }

            #functions
        }

        #of_spec
        #of_resource
    })
}

/// Returns the expression of the CRD.
fn crd(validated: &Validated, resource: &Ident, validation: &TokenStream) -> TokenStream {
    let mut crd = quote!(
        #validation::private::to_value(<#resource as ::kube::CustomResourceExt>::crd())
            .expect("a CRD is JSON")
    );
    if let Some(change) = &validated.crd {
        crd = quote!(#change(#crd));
    }
    crd = quote!(#validation::with_standard_fields(#crd));
    if validated.optional_spec.is_present() {
        crd = quote!(#validation::with_optional_spec(#crd));
    }
    // Each version has the final schema of the validated one, with its fields moved.
    if let Some(versions) = &validated.additional_versions {
        crd = quote!({
            let mut crd = #crd;
            for version in #versions() {
                version.add_to(&mut crd);
            }
            crd
        });
    }
    crd
}

/// Returns the functions of the trait that the author has named.
fn functions(validated: &Validated, validation: &TokenStream) -> TokenStream {
    let returned = [
        (
            "rules",
            &validated.rules,
            quote!(::std::vec::Vec<#validation::Rule<Self>>),
        ),
        (
            "settings",
            &validated.settings,
            quote!(::core::option::Option<#validation::Settings>),
        ),
        (
            "dynamic_defaults",
            &validated.dynamic_defaults,
            quote!(::std::vec::Vec<#validation::DynamicDefault>),
        ),
        (
            "additional_versions",
            &validated.additional_versions,
            quote!(::std::vec::Vec<#validation::VersionMapping>),
        ),
        (
            "rule_references",
            &validated.rule_references,
            quote!(::std::vec::Vec<(::std::string::String, &'static str)>),
        ),
    ];
    let given = returned.into_iter().filter_map(|(name, path, type_)| {
        let (name, path) = (format_ident!("{name}"), path.as_ref()?);
        Some(quote!(fn #name() -> #type_ { #path() }))
    });
    let transition_fields = validated
        .transition_fields
        .as_ref()
        .map(|constant| quote!(fn transition_fields() -> &'static [&'static str] { #constant }));
    let optional_spec = validated.optional_spec.is_present().then(|| {
        quote!(
            fn is_spec_optional() -> bool {
                true
            }
        )
    });
    quote!(#(#given)* #transition_fields #optional_spec)
}

/// Returns the names of the fields of the whole object.
fn resource_field_names(kube: &Kube, resource: &Ident, validation: &TokenStream) -> TokenStream {
    let spec = &kube.ident;
    let status = kube.status.as_ref().map(|_| {
        // The runtime adds fields to the status of the author.
        quote!(#validation::field_names::Field {
            name: "status",
            fields: #validation::field_names::Fields::Any,
        },)
    });
    quote! {
        impl #validation::field_names::FieldNames for #resource {
            const FIELDS: #validation::field_names::Fields =
                #validation::field_names::Fields::Known(&[
                    #validation::field_names::Field {
                        name: "metadata",
                        fields: #validation::field_names::Fields::Any,
                    },
                    #validation::field_names::Field {
                        name: "spec",
                        fields: <#spec as #validation::field_names::FieldNames>::FIELDS,
                    },
                    #status
                ]);
        }
    }
}

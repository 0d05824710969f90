//! Path of the crate with the traits, as the author's crate depends on it.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

/// Crate with the traits.
const VALIDATION: &str = "lockstep-shared-validation";

/// Crate that re-exports it.
const SDK: &str = "lockstep-sdk";

/// Returns the path of the crate with the traits: that of a direct dependency, or else that of the SDK.
pub(crate) fn shared_validation() -> darling::Result<TokenStream> {
    let path = |found: FoundCrate| match found {
        // The examples and tests of a crate see it under its own name.
        FoundCrate::Itself => quote!(::lockstep_shared_validation),
        FoundCrate::Name(name) => {
            let name = Ident::new(&name, Span::call_site());
            quote!(::#name)
        }
    };
    if let Ok(found) = crate_name(VALIDATION) {
        return Ok(path(found));
    }
    match crate_name(SDK) {
        Ok(FoundCrate::Name(name)) => {
            let name = Ident::new(&name, Span::call_site());
            Ok(quote!(::#name::shared_validation))
        }
        Ok(FoundCrate::Itself) => Ok(quote!(::lockstep_sdk::shared_validation)),
        Err(_) => Err(darling::Error::custom(format!(
            "add {SDK} or {VALIDATION} to the dependencies of this crate"
        ))),
    }
}

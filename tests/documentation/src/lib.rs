//! Compiles and runs the Rust examples of the pages for authors of operators.
//!
//! The dependencies and features are those of a repository that `lockstep new` writes, and those that a page asks for.

macro_rules! pages {
    ($($page:ident: $path:literal,)*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!(concat!("../../../docs/", $path))]
            mod $page {}
        )*
    };
}

pages! {
    arguments: "how-to/arguments.md",
    external_api: "how-to/external-api.md",
    concepts: "operator-concepts.md",
    metrics: "how-to/metrics.md",
    namespaced: "how-to/namespaced.md",
    owned_objects: "how-to/owned-objects.md",
    policy: "how-to/policy.md",
    references: "how-to/references.md",
    testing: "how-to/testing.md",
    testing_an_operator: "testing-an-operator.md",
    versions: "how-to/versions.md",
}

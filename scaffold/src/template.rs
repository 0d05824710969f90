//! Files of the templates.

use std::path::Path;

use crate::audience::Audience;
use crate::names::Names;

/// File of a template: its path in a repository, and its content.
#[derive(Clone, Copy)]
pub(crate) struct Template {
    pub(crate) path: &'static str,
    pub(crate) content: &'static str,
}

macro_rules! templates {
    ($($path:literal from $source:literal,)*) => {
        &[$(Template { path: $path, content: include_str!(concat!("../templates/", $source)) },)*]
    };
}

/// Files of every repository.
pub(crate) const REPOSITORY: &[Template] = templates![
    ".dockerignore" from "dockerignore",
    ".github/workflows/ci.yml" from "github/ci.yml",
    ".gitignore" from "gitignore",
    "Cargo.toml" from "_Cargo.toml",
    "Dockerfile" from "Dockerfile",
    "src/main.rs" from "src/main.rs",
    "tests/cases.rs" from "tests/cases.rs",
];

/// Files of a repository whose first operator is a handler.
pub(crate) const HANDLER_REPOSITORY: &[Template] = templates![
    "README.md" from "handler/README.md",
    "src/lib.rs" from "handler/lib.rs",
];

/// Files of a repository whose first operator is a reconciler.
pub(crate) const RECONCILER_REPOSITORY: &[Template] = templates![
    "README.md" from "reconciler/README.md",
    "src/lib.rs" from "reconciler/lib.rs",
];

/// Files of every kind.
pub(crate) const KIND: &[Template] = templates![
    "examples/invalid/greeting-rust.yaml" from "examples/invalid/rust.yaml",
    "examples/invalid/greeting-schema-and-cel.yaml" from "examples/invalid/schema-and-cel.yaml",
    "examples/valid/greeting.yaml" from "examples/valid/hello.yaml",
    "tests/cases/greeting-minimal.yaml" from "tests/cases/minimal.yaml",
    "tests/cases/greeting-open-brace.yaml" from "tests/cases/rust-open-brace.yaml",
    "tests/cases/greeting-text-empty.yaml" from "tests/cases/schema-text-empty.yaml",
    "tests/cases/greeting-text-shortest.yaml" from "tests/cases/schema-text-shortest.yaml",
    "tests/cases/greeting-two-lines.yaml" from "tests/cases/cel-two-lines.yaml",
    "tests/cases/greeting-two-placeholders.yaml" from "tests/cases/rust-two-braces.yaml",
];

/// Files of a kind whose operator is a handler.
pub(crate) const HANDLER: &[Template] = templates![
    "src/greeting.rs" from "handler/greeting.rs",
    "src/greeting/resource.rs" from "handler/greeting/resource.rs",
    "src/greeting/rules.rs" from "handler/greeting/rules.rs",
    "src/greeting/sync.rs" from "handler/greeting/sync.rs",
    "tests/greeting.rs" from "handler/test.rs",
];

/// Files of a kind whose operator is a reconciler.
pub(crate) const RECONCILER: &[Template] = templates![
    "src/greeting.rs" from "reconciler/greeting.rs",
    "src/greeting/api.rs" from "reconciler/greeting/api.rs",
    "src/greeting/reconciler.rs" from "reconciler/greeting/reconciler.rs",
    "src/greeting/resource.rs" from "reconciler/greeting/resource.rs",
    "src/greeting/rules.rs" from "reconciler/greeting/rules.rs",
    "src/greeting/simulator.rs" from "reconciler/greeting/simulator.rs",
    "tests/greeting.rs" from "reconciler/test.rs",
];

/// Returns the paths and contents of templates with the names of a program and a kind, and with the audience of the kind.
pub(crate) fn rendered(
    templates: &[Template],
    names: &Names,
    audience: Audience,
) -> Vec<(String, String)> {
    let files = templates.iter().map(|template| {
        // A file whose name begins with the kind has the words of the kind separated by `-`, unless it is Rust.
        let is_rust = Path::new(template.path).extension() == Some("rs".as_ref());
        let names_of_file = Names {
            module: if is_rust {
                names.module.clone()
            } else {
                names.module.replace('_', "-")
            },
            ..names.clone()
        };
        let path = names_of_file.apply(template.path);
        (path, names.apply(&audience.apply(template.content)))
    });
    files.collect()
}

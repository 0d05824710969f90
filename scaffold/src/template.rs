//! Files of the templates.

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

/// Files of the repository.
pub(crate) const REPOSITORY: &[Template] = templates![
    ".dockerignore" from "dockerignore",
    ".github/workflows/ci.yml" from "github/ci.yml",
    ".gitignore" from "gitignore",
    "Cargo.toml" from "_Cargo.toml",
    "Dockerfile" from "Dockerfile",
    "README.md" from "README.md",
    "src/lib.rs" from "src/lib.rs",
    "src/main.rs" from "src/main.rs",
    "tests/cases.rs" from "tests/cases.rs",
];

/// Files of a kind whose operator is a handler.
pub(crate) const HANDLER: &[Template] = templates![
    "src/greeting.rs" from "src/greeting.rs",
    "src/greeting/resource.rs" from "src/greeting/resource.rs",
    "src/greeting/rules.rs" from "src/greeting/rules.rs",
    "src/greeting/sync.rs" from "src/greeting/sync.rs",
    "tests/greeting.rs" from "tests/greeting.rs",
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

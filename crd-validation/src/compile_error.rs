//! Compile error of a CRD.

/// Compile error of a ruleset. It can occur only at startup, never during a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The CRD has no schema for the requested version.
    #[error("the CRD has no schema for version `{version}`; add it to `spec.versions`")]
    NoSchema {
        /// The requested version.
        version: String,
    },
    /// The schema uses a keyword or value that this crate does not evaluate exactly as the API server does.
    #[error("schema at {at}: {problem}")]
    Schema {
        /// Dotted path of the schema node.
        at: String,
        /// Description of the problem.
        problem: String,
    },
    /// A CEL rule cannot be parsed or uses a function that this crate does not implement.
    #[error("CEL rule at {at}: {problem}: {rule}")]
    Cel {
        /// Dotted path of the schema node.
        at: String,
        /// Description of the problem.
        problem: String,
        /// The CEL expression.
        rule: String,
    },
}

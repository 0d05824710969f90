//! Errors of files that are not catalogues.

/// Error of a file that is not a catalogue. Each message follows the name of the file.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The file has another structure.
    #[error(
        "is not a catalogue of this program ({0}); create it again with `lockstep vector catalogue`"
    )]
    Structure(#[from] serde_json::Error),
    /// The version is not one of Vector.
    #[error("has the version `{0}`; it must have the form `0.57`")]
    Version(String),
    /// A definition is missing.
    #[error("lacks the definition `{0}`; create it again with `lockstep vector catalogue`")]
    Definition(String),
    /// The options of a component type are not a schema.
    #[error(
        "contains options that are not a schema ({0}); create it again with `lockstep vector catalogue`"
    )]
    Schema(String),
}

//! Source of the schema that an image prints.

use async_trait::async_trait;

/// Source of the schema of one image.
///
/// # Guarantees
///
/// None is needed: the schema may be late, long, or that of another program. The learner limits the time and the size, and
/// does not use a schema of another version.
#[async_trait]
pub trait SchemaSource: Send + Sync + 'static {
    /// Returns the schema.
    ///
    /// # Errors
    ///
    /// The image cannot be asked.
    async fn schema(&self) -> Result<ImageSchema, SchemaSourceError>;
}

/// Output of the Vector in an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageSchema {
    /// Output of `vector generate-schema`.
    pub schema: Vec<u8>,
    /// Output of `vector --version`, if it is known. The schema does not contain the version.
    pub version: Option<String>,
}

/// Error of a source, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SchemaSourceError(pub String);

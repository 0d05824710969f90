//! Schema of an image → catalogue.

use lockstep_vector_api::{Catalogue, VectorVersion};
use serde_json::Value;

use crate::gzip::compressed;
use crate::learning::schema_source::ImageSchema;

/// Maximum size of a schema, in bytes. That of Vector 0.57 has 6 MB.
pub(crate) const MAX_SCHEMA_BYTES: usize = 32 << 20;

/// Reason why a schema does not become a catalogue.
#[derive(Debug, thiserror::Error)]
pub enum UnusableSchema {
    /// The schema is too long.
    #[error("the schema has {0} bytes, more than {MAX_SCHEMA_BYTES}")]
    TooLong(usize),
    /// The output is not JSON.
    #[error("the output of `vector generate-schema` is not JSON: {0}")]
    NoJson(#[from] serde_json::Error),
    /// The image contains another version than its tag says.
    #[error(
        "the tag of the image names Vector {tag}, and `vector --version` prints `{printed}`; correct the tag"
    )]
    OtherVersion {
        /// Version that the tag names.
        tag: VectorVersion,
        /// Output of `vector --version`.
        printed: String,
    },
    /// The schema is not that of Vector.
    #[error("{0}")]
    NoSchema(String),
    /// The catalogue that was made cannot be read.
    #[error("the catalogue of the schema {0}")]
    NoCatalogue(String),
}

/// Returns the compressed catalogue of a version from the output of an image. It takes up to a second, and is called on a
/// thread for blocking work.
///
/// # Errors
///
/// The output is not that of this version of Vector.
pub(crate) fn catalogue_of(
    image: &ImageSchema,
    version: VectorVersion,
) -> Result<Vec<u8>, UnusableSchema> {
    if image.schema.len() > MAX_SCHEMA_BYTES {
        return Err(UnusableSchema::TooLong(image.schema.len()));
    }
    if let Some(printed) = &image.version
        && printed_version(printed) != Some(version)
    {
        return Err(UnusableSchema::OtherVersion {
            tag: version,
            printed: printed.chars().take(80).collect(),
        });
    }
    let schema: Value = serde_json::from_slice(&image.schema)?;
    let made = vector_catalogue::adapted(schema, &version.to_string());
    let made = made.map_err(|error| UnusableSchema::NoSchema(format!("{error:#}")))?;
    Catalogue::load(&made.text).map_err(|error| UnusableSchema::NoCatalogue(error.to_string()))?;
    Ok(compressed(made.text.as_bytes()))
}

/// Returns the version in the output of `vector --version`, such as `vector 0.57.0 (x86_64-unknown-linux-gnu …)`.
fn printed_version(text: &str) -> Option<VectorVersion> {
    VectorVersion::parse(text.split_whitespace().nth(1)?)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Read;
    use std::sync::LazyLock;

    use flate2::read::GzDecoder;

    use super::*;

    /// Returns the schema of the shipped version.
    pub(crate) fn schema() -> Vec<u8> {
        static SCHEMA: LazyLock<Vec<u8>> = LazyLock::new(|| {
            let packed = include_bytes!("../../../catalogue/vector-0.57/schema.json.gz");
            let mut schema = Vec::new();
            let read = GzDecoder::new(&packed[..]).read_to_end(&mut schema);
            read.expect("gzip");
            schema
        });
        SCHEMA.clone()
    }

    pub(crate) fn version(text: &str) -> VectorVersion {
        VectorVersion::parse(text).expect("a version")
    }

    fn made_catalogue(schema: Vec<u8>, printed: Option<&str>) -> Result<Vec<u8>, String> {
        let image = ImageSchema {
            schema,
            version: printed.map(str::to_owned),
        };
        catalogue_of(&image, version("0.57")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_schema_of_the_shipped_version_gives_the_shipped_catalogue() {
        for printed in [
            None,
            Some("vector 0.57.0 (x86_64-unknown-linux-gnu a1b2c3 2026-01-01)"),
        ] {
            let made = made_catalogue(schema(), printed).expect("a catalogue");
            assert!(made.len() < 100_000, "{}", made.len());
            let mut text = String::new();
            let read = GzDecoder::new(&made[..]).read_to_string(&mut text);
            read.expect("gzip");
            let made = Catalogue::load(&text).expect("a catalogue");
            assert_eq!(made.digest(), Catalogue::shipped().digest());
        }
    }

    #[test]
    fn an_output_that_is_not_that_of_the_version_is_an_error_that_says_what_to_do() {
        for (schema, printed, expected) in [
            (
                schema(),
                Some("vector 0.48.0 (x86_64)"),
                "the tag of the image names Vector 0.57, and `vector --version` prints `vector 0.48.0 (x86_64)`; correct the tag",
            ),
            (schema(), Some("v1"), "prints `v1`"),
            (b"error: no such command".to_vec(), None, "is not JSON"),
            (b"{}".to_vec(), None, "vector generate-schema"),
            (
                vec![b' '; MAX_SCHEMA_BYTES + 1],
                None,
                "the schema has 33554433 bytes",
            ),
        ] {
            let error = made_catalogue(schema, printed).expect_err("no catalogue");
            assert!(error.contains(expected), "{error}");
        }
    }
}

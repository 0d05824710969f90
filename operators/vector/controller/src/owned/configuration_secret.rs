//! Secret with Vector's configuration.

use std::collections::BTreeMap;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::owned::children::OwnedObjectsError;
use crate::owned::runner::{Runner, object};

/// Maximum size of the values of a Secret, in bytes (`MaxSecretSize` of the Kubernetes API).
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// Returns the Secret with Vector's configuration.
pub(crate) fn of(runner: &Runner<'_>) -> Result<Value, OwnedObjectsError> {
    let files = &runner.publication.files;
    let remedy = if runner.is_compressed() {
        "run fewer pipelines in this workload"
    } else {
        "set compressConfigFile, or run fewer pipelines in this workload"
    };
    let name = runner.object_name();
    if runner.is_compressed() {
        let compressed = files.iter().map(|(name, content)| (name, gzip(content)));
        let compressed: BTreeMap<_, _> = compressed.map(|(name, it)| (name.clone(), it)).collect();
        return secret(runner, name, &compressed, remedy);
    }
    secret(runner, name, files, remedy)
}

/// Returns a Secret with these values.
pub(crate) fn secret(
    runner: &Runner<'_>,
    name: String,
    values: &BTreeMap<String, Vec<u8>>,
    remedy: &'static str,
) -> Result<Value, OwnedObjectsError> {
    let bytes = values.values().map(Vec::len).sum();
    if bytes > MAX_BYTES {
        let max = MAX_BYTES;
        return Err(OwnedObjectsError::SecretTooLarge {
            name,
            bytes,
            max,
            remedy,
        });
    }
    let encoded = values
        .iter()
        .map(|(name, value)| (name, STANDARD.encode(value)));
    let data: BTreeMap<_, _> = encoded.collect();
    let secret = object("v1", "Secret", runner.metadata(&name));
    Ok(secret.with("data", json!(data)).into())
}

/// Returns the compressed content. It has no time stamp: the same content always gives the same bytes.
fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(content).and_then(|()| encoder.finish());
    written.expect("a write to memory does not fail")
}

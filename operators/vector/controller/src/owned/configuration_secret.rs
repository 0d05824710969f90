//! Secrets with Vector's configuration: one for each file, or a single one with all compressed files.

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

/// Returns the Secrets with Vector's configuration.
pub(crate) fn of(runner: &Runner<'_>) -> Result<Vec<Value>, OwnedObjectsError> {
    let files = &runner.publication.files;
    if runner.is_compressed() {
        let compressed = files.iter().map(|(name, content)| (name, gzip(content)));
        let compressed: BTreeMap<_, _> = compressed.map(|(name, it)| (name.clone(), it)).collect();
        let remedy = "run fewer pipelines in this workload";
        return Ok(vec![secret(
            runner,
            runner.object_name(),
            &compressed,
            remedy,
        )?]);
    }
    let remedy = "set compressConfigFile, or run fewer pipelines in this workload";
    let secrets = files.iter().map(|(file, content)| {
        let values = BTreeMap::from([(file.clone(), content.clone())]);
        secret(runner, name(runner, file), &values, remedy)
    });
    secrets.collect()
}

/// Returns the names of the Secrets in which the files are, if they are not compressed.
pub(crate) fn names(runner: &Runner<'_>) -> Vec<String> {
    let files = runner.publication.files.keys();
    files.map(|file| name(runner, file)).collect()
}

/// Returns the name of the Secret with a file: that of the workload's objects, with the number that further files such as
/// `agent-1.json` have.
fn name(runner: &Runner<'_>, file: &str) -> String {
    let stem = file.trim_end_matches(".json");
    match stem.rsplit_once('-') {
        Some((_, number)) => format!("{}-{number}", runner.object_name()),
        None => runner.object_name(),
    }
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

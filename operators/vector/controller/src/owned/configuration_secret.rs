//! Secrets with Vector's configuration: one for each file, or a single one with all compressed files.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::gzip;
use crate::owned::children::OwnedObjectsError;
use crate::owned::load_report;
use crate::owned::owned_workload::{OwnedWorkload, object};
use crate::owned::publication::Publication;

/// Maximum size of the values of a Secret, in bytes (`MaxSecretSize` of the Kubernetes API).
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// Returns the Secrets with Vector's configuration, and those for the Pods that are not replaced yet.
pub(crate) fn desired(workload: &OwnedWorkload<'_>) -> Result<Vec<Value>, OwnedObjectsError> {
    let Publication {
        files,
        secret_suffix,
        previous,
        load_lines,
        ..
    } = workload.publication;
    let mut secrets = of_files(workload, secret_suffix.as_deref(), files, load_lines)?;
    if let Some(previous) = previous {
        let suffix = previous.secret_suffix.as_deref();
        secrets.extend(of_files(
            workload,
            suffix,
            &previous.files,
            &BTreeMap::new(),
        )?);
    }
    Ok(secrets)
}

fn of_files(
    workload: &OwnedWorkload<'_>,
    suffix: Option<&str>,
    files: &BTreeMap<String, Vec<u8>>,
    load_lines: &BTreeMap<String, String>,
) -> Result<Vec<Value>, OwnedObjectsError> {
    let with_report = |name: &String, content: &Vec<u8>| {
        let report = load_lines
            .get(name)
            .map(|line| load_report::file(name, line));
        [(name.clone(), content.clone())].into_iter().chain(report)
    };
    if workload.is_compressed() {
        let all = files
            .iter()
            .flat_map(|(name, content)| with_report(name, content));
        let compressed = all.map(|(name, content)| (name, gzip::compressed(&content)));
        let compressed: BTreeMap<_, _> = compressed.collect();
        let remedy = "run fewer pipelines in this workload";
        let name = with_suffix(workload, suffix);
        return Ok(vec![secret(workload, name, &compressed, remedy)?]);
    }
    let remedy = "set compressConfigFile, or run fewer pipelines in this workload";
    let secrets = files.iter().map(|(file, content)| {
        let values: BTreeMap<_, _> = with_report(file, content).collect();
        secret(workload, name(workload, suffix, file), &values, remedy)
    });
    secrets.collect()
}

/// Returns the names of the Secrets in which the files are, if they are not compressed.
pub(crate) fn names(workload: &OwnedWorkload<'_>) -> Vec<String> {
    let Publication {
        files,
        secret_suffix,
        ..
    } = workload.publication;
    let names = files.keys();
    let names = names.map(|file| name(workload, secret_suffix.as_deref(), file));
    names.collect()
}

/// Returns the name of the Secret with the first file, or with all if they are compressed.
pub(crate) fn first_name(workload: &OwnedWorkload<'_>) -> String {
    with_suffix(workload, workload.publication.secret_suffix.as_deref())
}

fn with_suffix(workload: &OwnedWorkload<'_>, suffix: Option<&str>) -> String {
    match suffix {
        Some(suffix) => format!("{}-{suffix}", workload.object_name()),
        None => workload.object_name(),
    }
}

/// Returns the name of the Secret with a file: that of the workload's objects, with the number that further files such as
/// `agent-1.json` have.
fn name(workload: &OwnedWorkload<'_>, suffix: Option<&str>, file: &str) -> String {
    let first = with_suffix(workload, suffix);
    match file.trim_end_matches(".json").rsplit_once('-') {
        Some((_, number)) => format!("{first}-{number}"),
        None => first,
    }
}

/// Returns a Secret with these values.
pub(crate) fn secret(
    workload: &OwnedWorkload<'_>,
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
    let secret = object("v1", "Secret", workload.metadata(&name));
    Ok(secret.with("data", json!(data)).into())
}

/// Returns true if there is room for the components with which Vector reports that it runs the files.
pub(crate) fn has_room_for_reports(
    files: &BTreeMap<String, Vec<u8>>,
    load_lines: &BTreeMap<String, String>,
    is_compressed: bool,
) -> bool {
    let report = |name: &String| load_report::file(name, &load_lines[name]).1;
    let sizes = files.iter();
    let mut sizes = sizes.map(|(name, content)| content.len() + report(name).len());
    if !is_compressed {
        return sizes.all(|bytes| bytes <= MAX_BYTES);
    }
    // Most configurations have room before they are compressed.
    if sizes.sum::<usize>() <= MAX_BYTES {
        return true;
    }
    let reports = files.keys().map(|name| (name.clone(), report(name)));
    compressed_bytes(files) + compressed_bytes(&reports.collect()) <= MAX_BYTES
}

/// Returns the size of all files after compression, which are then in one Secret.
pub(crate) fn compressed_bytes(files: &BTreeMap<String, Vec<u8>>) -> usize {
    files
        .values()
        .map(|content| gzip::compressed(content).len())
        .sum()
}

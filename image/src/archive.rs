//! OCI archive: the blobs of an image and their index, in a tar file.

use std::env::consts::ARCH;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::root_files::header;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Result of writing an archive.
#[derive(Clone, Debug)]
pub struct Written {
    /// Digest of the image manifest, which identifies the image in a registry.
    pub digest: String,
    /// Size of the layer, which is what a node downloads.
    pub layer_bytes: usize,
}

struct Blob {
    media_type: &'static str,
    digest: String,
    content: Vec<u8>,
}

impl Blob {
    fn new(media_type: &'static str, content: Vec<u8>) -> Self {
        Self {
            media_type,
            digest: sha256(&content),
            content,
        }
    }

    fn descriptor(&self) -> Value {
        json!({"mediaType": self.media_type, "digest": self.digest, "size": self.content.len()})
    }

    fn path(&self) -> String {
        format!("blobs/{}", self.digest.replace(':', "/"))
    }
}

/// Parts of an archive.
pub(crate) struct Parts<'a> {
    /// The files of the image, as a tar file.
    pub(crate) files: Vec<u8>,
    /// The `config` of the image configuration.
    pub(crate) process: Value,
    /// Annotations of the manifest.
    pub(crate) annotations: Value,
    /// Repository, with or without a registry.
    pub(crate) repository: &'a str,
    /// Tag of the image.
    pub(crate) tag: &'a str,
}

pub(crate) fn write(
    parts: Parts<'_>,
    path: &Path,
    compression: Compression,
) -> Result<Written, Error> {
    let diff_id = sha256(&parts.files);
    let layer = if compression == Compression::none() {
        Blob {
            media_type: "application/vnd.oci.image.layer.v1.tar",
            digest: diff_id.clone(),
            content: parts.files,
        }
    } else {
        let compressed = compress(&parts.files, compression).map_err(Error::file(path))?;
        Blob::new("application/vnd.oci.image.layer.v1.tar+gzip", compressed)
    };
    let platform = json!({"os": "linux", "architecture": architecture()});
    let mut configuration = platform.clone();
    configuration["config"] = parts.process;
    configuration["rootfs"] = json!({"type": "layers", "diff_ids": [diff_id]});
    let configuration = Blob::new(
        "application/vnd.oci.image.config.v1+json",
        json_bytes(configuration),
    );
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": configuration.descriptor(),
        "layers": [layer.descriptor()],
        "annotations": parts.annotations,
    });
    let manifest = Blob::new(MANIFEST, json_bytes(manifest));
    let mut descriptor = manifest.descriptor();
    descriptor["platform"] = platform;
    descriptor["annotations"] = json!({
        "org.opencontainers.image.ref.name": parts.tag,
        // Name under which containerd imports the image.
        "io.containerd.image.name": format!("{}:{}", full_name(parts.repository), parts.tag),
    });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [descriptor],
    });
    let layout = json!({"imageLayoutVersion": "1.0.0"});

    let mut entries = vec![
        ("oci-layout".to_owned(), json_bytes(layout)),
        ("index.json".to_owned(), json_bytes(index)),
    ];
    let written = Written {
        digest: manifest.digest.clone(),
        layer_bytes: layer.content.len(),
    };
    let blobs = [manifest, configuration, layer];
    entries.extend(blobs.map(|blob| (blob.path(), blob.content)));
    write_tar(path, &entries).map_err(Error::file(path))?;
    Ok(written)
}

fn write_tar(path: &Path, entries: &[(String, Vec<u8>)]) -> std::io::Result<()> {
    let mut tar = tar::Builder::new(BufWriter::new(File::create(path)?));
    for (name, content) in entries {
        let mut header = header(tar::EntryType::Regular, 0o644, content.len() as u64);
        tar.append_data(&mut header, name, content.as_slice())?;
    }
    tar.into_inner()?.flush()
}

fn compress(content: &[u8], compression: Compression) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), compression);
    encoder.write_all(content)?;
    encoder.finish()
}

fn sha256(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    let algorithm = "sha256:".to_owned();
    digest
        .iter()
        .fold(algorithm, |text, byte| text + &format!("{byte:02x}"))
}

fn json_bytes(mut value: Value) -> Vec<u8> {
    // Equal images have equal bytes, in whichever order this build of serde_json keeps keys.
    value.sort_all_objects();
    value.to_string().into_bytes()
}

/// Returns the architecture by its name in Go, which images use.
fn architecture() -> &'static str {
    match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Returns the repository with its registry: one without belongs to Docker Hub.
fn full_name(repository: &str) -> String {
    match repository.split_once('/') {
        Some((registry, _)) if registry.contains(['.', ':']) || registry == "localhost" => {
            repository.to_owned()
        }
        Some(_) => format!("docker.io/{repository}"),
        None => format!("docker.io/library/{repository}"),
    }
}

#[cfg(test)]
mod tests {
    use super::full_name;

    #[test]
    fn a_repository_without_a_registry_belongs_to_docker_hub() {
        let names = [
            ("lockstep", "docker.io/library/lockstep"),
            ("team/lockstep", "docker.io/team/lockstep"),
            ("ghcr.io/team/lockstep", "ghcr.io/team/lockstep"),
            ("registry:5000/lockstep", "registry:5000/lockstep"),
            ("localhost/lockstep", "localhost/lockstep"),
        ];
        for (name, full) in names {
            assert_eq!(full_name(name), full);
        }
    }
}

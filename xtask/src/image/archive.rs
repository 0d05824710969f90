//! OCI archive: the blobs of an image and their index, in a tar file.

use std::env::consts::ARCH;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::root_files::header;
use super::{Error, Image};

/// What an archive contains.
#[derive(Clone, Debug)]
pub struct Written {
    /// Digest of the image manifest, which identifies the image in a registry.
    pub digest: String,
    /// Size of the layer, which is what a node downloads.
    pub compressed_bytes: usize,
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

pub(crate) fn write(
    image: &Image,
    path: &Path,
    compression: Compression,
) -> Result<Written, Error> {
    let mut files = Vec::new();
    image
        .files
        .write_tar(&mut files)
        .map_err(Error::file(path))?;
    let diff_id = sha256(&files);
    let layer = if compression == Compression::none() {
        Blob {
            media_type: "application/vnd.oci.image.layer.v1.tar",
            digest: diff_id.clone(),
            content: files,
        }
    } else {
        let compressed = compress(&files, compression).map_err(Error::file(path))?;
        Blob::new("application/vnd.oci.image.layer.v1.tar+gzip", compressed)
    };
    let platform = json!({"os": "linux", "architecture": architecture()});
    let mut configuration = platform.clone();
    configuration["config"] = image.configuration();
    configuration["rootfs"] = json!({"type": "layers", "diff_ids": [diff_id]});
    let configuration = Blob::new(
        "application/vnd.oci.image.config.v1+json",
        json_bytes(configuration),
    );
    let manifest = Blob::new(
        "application/vnd.oci.image.manifest.v1+json",
        json_bytes(json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": configuration.descriptor(),
            "layers": [layer.descriptor()],
            "annotations": image.labels(),
        })),
    );
    let mut descriptor = manifest.descriptor();
    descriptor["platform"] = platform;
    descriptor["annotations"] = json!({
        "org.opencontainers.image.ref.name": image.metadata.tag,
        // Name under which containerd imports the image.
        "io.containerd.image.name": full_name(&image.name()),
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
        compressed_bytes: layer.content.len(),
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
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
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

/// Returns the name with its registry: a name without one belongs to Docker Hub.
fn full_name(name: &str) -> String {
    match name.split_once('/') {
        Some((registry, _)) if registry.contains(['.', ':']) || registry == "localhost" => {
            name.to_owned()
        }
        Some(_) => format!("docker.io/{name}"),
        None => format!("docker.io/library/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::full_name;

    #[test]
    fn a_name_without_a_registry_belongs_to_docker_hub() {
        let names = [
            ("lockstep:1", "docker.io/library/lockstep:1"),
            ("team/lockstep:1", "docker.io/team/lockstep:1"),
            ("ghcr.io/team/lockstep:1", "ghcr.io/team/lockstep:1"),
            ("localhost/lockstep:1", "localhost/lockstep:1"),
        ];
        for (name, full) in names {
            assert_eq!(full_name(name), full);
        }
    }
}

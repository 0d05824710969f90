//! Catalogues of other versions of Vector, read from files.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use flate2::read::MultiGzDecoder;
use lockstep_sdk::describe_read_error;
use lockstep_vector_api::{Catalogue, Catalogues};

/// Maximum size of a catalogue, in bytes. That of Vector 0.57 has 290 KiB.
const LONGEST_FILE: u64 = 16 << 20;

/// First bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Catalogues for pipelines.
#[derive(clap::Args)]
#[command(next_help_heading = "Vector")]
pub(crate) struct CatalogueArgs {
    /// Folder with catalogues of other versions of Vector than the shipped one, which `lockstep vector catalogue` writes:
    /// the files `*.json` and `*.json.gz`. They are read at the start. Manifests set the folder of the policy, so that
    /// the `ConfigMap` with the policy can have catalogues.
    #[arg(long, value_name = "FOLDER")]
    vector_catalogues: Option<PathBuf>,
}

impl CatalogueArgs {
    /// Reads the catalogues.
    pub(crate) fn read(&self) -> anyhow::Result<Catalogues> {
        let Some(folder) = &self.vector_catalogues else {
            return Ok(Catalogues::default());
        };
        let mut files = files(folder)
            .with_context(|| format!("cannot read the catalogues in {}", folder.display()))?;
        files.sort_unstable();
        let mut catalogues: Vec<&'static Catalogue> = Vec::new();
        for file in &files {
            let catalogue = read(file)?;
            if catalogues
                .iter()
                .any(|known| known.number() == catalogue.number())
            {
                bail!(
                    "{}: another file in the folder is a catalogue of Vector {}, too; remove one of them",
                    file.display(),
                    catalogue.version
                );
            }
            catalogues.push(catalogue);
        }
        Ok(Catalogues::with(&catalogues))
    }
}

/// Returns the catalogue in a file, or the shipped one.
pub(crate) fn chosen(file: Option<&Path>) -> anyhow::Result<&'static Catalogue> {
    file.map_or_else(|| Ok(Catalogue::shipped()), read)
}

/// Returns the files of a folder that are catalogues by their names. A mounted `ConfigMap` also has a hidden folder.
fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let is_catalogue = has_extension(&path, "json")
            || has_extension(&path, "gz") && has_extension(&path.with_extension(""), "json");
        if is_catalogue && !is_hidden {
            files.push(path);
        }
    }
    Ok(files)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|own| own == extension)
}

fn read(path: &Path) -> anyhow::Result<&'static Catalogue> {
    let text = text(path);
    let text = text.map_err(|error| {
        anyhow::anyhow!(
            "the catalogue {} {}",
            path.display(),
            describe_read_error(&error)
        )
    })?;
    if text.len() as u64 > LONGEST_FILE {
        bail!(
            "the catalogue {} has more than {LONGEST_FILE} bytes; create it with `lockstep vector catalogue`",
            path.display()
        );
    }
    let catalogue = Catalogue::load(text);
    catalogue.map_err(|error| anyhow::anyhow!("the catalogue {} {error}", path.display()))
}

/// Returns the text of a file, which may be compressed, or its beginning if it is longer than allowed.
fn text(path: &Path) -> std::io::Result<String> {
    let content = fs::read(path)?;
    let mut text = String::new();
    if content.starts_with(&GZIP) {
        let decoder = MultiGzDecoder::new(&content[..]);
        decoder.take(LONGEST_FILE + 1).read_to_string(&mut text)?;
    } else {
        (&content[..])
            .take(LONGEST_FILE + 1)
            .read_to_string(&mut text)?;
    }
    Ok(text)
}

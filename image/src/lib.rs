//! Container image of a program: its files, its configuration, and the OCI archive of both.
//!
//! The archive is written here instead of by umoci, skopeo or buildah: an image of one layer is a tar file and three
//! JSON files, so `tar`, `flate2` and `sha2` replace packages that every developer and CI machine would have to install.
//! Equal inputs give an image with the same digest.

mod archive;
mod error;
mod root_files;
mod shared_libraries;

use std::collections::BTreeMap;
use std::path::Path;

pub use archive::Written;
pub use error::Error;
pub use flate2::Compression;
pub use root_files::CA_CERTIFICATES;
use root_files::{RootFiles, USER};
use serde_json::{Value, json};

/// Name and origin of an image.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// Repository, with or without a registry, such as `lockstep`.
    pub repository: String,
    /// Tag, such as `0.1.0`.
    pub tag: String,
    /// Git commit that the program was built from.
    pub revision: Option<String>,
}

/// Image of one layer.
#[derive(Debug)]
pub struct Image {
    metadata: Metadata,
    files: RootFiles,
    entrypoint: String,
    user: Option<String>,
}

impl Image {
    /// Returns an image that runs a program as a user without privileges, with the shared libraries that the program is
    /// linked with on this machine.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or the libraries of the program cannot be determined.
    pub fn of_program(
        program: &Path,
        ca_certificates: &Path,
        metadata: Metadata,
    ) -> Result<Self, Error> {
        let mut files = RootFiles::default();
        files.add_accounts();
        files.add_ca_certificates(ca_certificates)?;
        let entrypoint = files.add_program(program)?;
        for library in shared_libraries::of(program)? {
            files.add_library(&library)?;
        }
        Ok(Self {
            metadata,
            files,
            entrypoint,
            user: Some(format!("{USER}:{USER}")),
        })
    }

    /// Adds a program that the program of the image runs, with its shared libraries.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or the libraries of the program cannot be determined.
    pub fn with_program(mut self, program: &Path) -> Result<Self, Error> {
        self.files.add_program(program)?;
        for library in shared_libraries::of(program)? {
            self.files.add_library(&library)?;
        }
        Ok(self)
    }

    /// Returns an image that contains nothing but a statically linked program.
    ///
    /// # Errors
    ///
    /// If the program cannot be read.
    pub fn of_static_program(program: &Path, metadata: Metadata) -> Result<Self, Error> {
        let mut files = RootFiles::default();
        let entrypoint = files.add_program(program)?;
        Ok(Self {
            metadata,
            files,
            entrypoint,
            user: None,
        })
    }

    /// Returns the name with the tag, such as `lockstep:0.1.0`.
    pub fn name(&self) -> String {
        format!("{}:{}", self.metadata.repository, self.metadata.tag)
    }

    /// Writes the files of the image below a directory.
    pub fn write_to_directory(&self, directory: &Path) -> Result<(), Error> {
        self.files.write_to_directory(directory)
    }

    /// Writes an OCI archive: an OCI image layout in a tar file. Without compression, the layer is a plain tar file.
    pub fn write_archive(&self, path: &Path, compression: Compression) -> Result<Written, Error> {
        let mut files = Vec::new();
        let written = self.files.write_tar(&mut files);
        written.map_err(Error::file(path))?;
        let parts = archive::Parts {
            files,
            process: self.configuration(),
            annotations: json!(self.labels()),
            repository: &self.metadata.repository,
            tag: &self.metadata.tag,
        };
        archive::write(parts, path, compression)
    }

    /// Returns the `config` of the image configuration.
    fn configuration(&self) -> Value {
        let mut config = json!({
            "Entrypoint": [self.entrypoint],
            "Env": ["PATH=/usr/local/bin"],
            "Labels": self.labels(),
        });
        if let Some(user) = &self.user {
            config["User"] = json!(user);
        }
        config
    }

    /// Returns labels by the names that the OCI image specification defines.
    fn labels(&self) -> BTreeMap<&str, &str> {
        let mut labels = BTreeMap::from([
            ("org.opencontainers.image.title", "lockstep"),
            (
                "org.opencontainers.image.description",
                "Admission webhook and controllers that share one set of rules",
            ),
            (
                "org.opencontainers.image.licenses",
                env!("CARGO_PKG_LICENSE"),
            ),
            ("org.opencontainers.image.version", &self.metadata.tag),
        ]);
        if let Some(revision) = &self.metadata.revision {
            labels.insert("org.opencontainers.image.revision", revision);
        }
        labels
    }
}

//! PEM files of certificates, which another process may replace at any time.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Interval at which the files are read. Their content is compared, so that both a swapped symlink and
/// a rewrite in place are detected.
pub(crate) const READ_INTERVAL: Duration = Duration::from_secs(1);

/// Error in the files of the TLS key pair or of the client CA.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file contains no PEM certificate.
    #[error("{path} contains no PEM certificate")]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The key file contains no PEM private key.
    #[error("{path} contains no PEM private key")]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// The private key cannot sign, or does not match the certificate.
    #[error("the private key in {path} does not match the certificate: {source}")]
    Mismatch {
        /// File of the private key.
        path: PathBuf,
        /// Error of rustls.
        source: rustls::Error,
    },
    /// The certificates in the file cannot verify clients.
    #[error("{path} contains no CA that can verify client certificates: {source}")]
    NoCa {
        /// The file.
        path: PathBuf,
        /// Error of rustls.
        source: rustls::Error,
    },
}

/// Reads a file that another process may write.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, CertError> {
    std::fs::read(path).map_err(|source| CertError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// Returns the PEM certificates of a file, at least one.
pub(crate) fn certificates(
    path: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, CertError> {
    CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .ok()
        .filter(|chain| !chain.is_empty())
        .ok_or_else(|| CertError::NoCertificate {
            path: path.to_owned(),
        })
}

//! Serving certificate and private key, loaded from files and reloaded when these change.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::parse_x509_certificate;

use crate::metrics::Metrics;

/// Interval at which the files are read. Their content is compared, so that both a swapped symlink and
/// a rewrite in place are detected.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Error in the files of the TLS key pair or of the client CA.
#[derive(Debug, thiserror::Error)]
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

/// TLS key pair that is currently served, and its reloading.
///
/// # Guarantees
///
/// A handshake always uses the last valid pair. An invalid new pair is reported and not used. A change does not
/// affect open connections.
#[derive(Debug)]
pub struct CertWatcher {
    certificate: PathBuf,
    key: PathBuf,
    current: RwLock<Option<Arc<CertifiedKey>>>,
}

impl CertWatcher {
    /// Creates a key pair to be read from `tls.crt` and `tls.key` in a directory, which may still be empty.
    #[must_use]
    pub fn new(directory: &Path) -> Arc<Self> {
        Arc::new(Self {
            certificate: directory.join("tls.crt"),
            key: directory.join("tls.key"),
            current: RwLock::new(None),
        })
    }

    /// Returns true if a key pair has been loaded.
    pub fn is_ready(&self) -> bool {
        self.get().is_some()
    }

    /// Watches the files for as long as the process lives, and serves each valid new pair.
    pub async fn run(self: Arc<Self>, metrics: Metrics) {
        let mut served = None;
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let found = match self.read_files() {
                Ok(found) => found,
                // Before the first pair has been written, a missing file is not an error.
                Err(error) if served.is_none() => {
                    tracing::debug!(%error, "no serving certificate yet");
                    continue;
                }
                Err(error) => {
                    metrics.certificate_errors.inc();
                    tracing::error!(%error, "cannot reload the serving certificate; the old one remains in use");
                    continue;
                }
            };
            if served.as_ref() == Some(&found) {
                continue;
            }
            match self.parse(&found) {
                Ok(pair) => {
                    metrics.certificates.inc();
                    metrics
                        .certificate_expiry
                        .set(expiry(&pair).unwrap_or_default());
                    *self
                        .current
                        .write()
                        .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(Arc::new(pair));
                    tracing::info!(certificate = %self.certificate.display(), "serving a new certificate");
                }
                Err(error) => {
                    metrics.certificate_errors.inc();
                    tracing::error!(%error, "the new serving certificate is invalid; the old one remains in use");
                }
            }
            served = Some(found);
        }
    }

    fn get(&self) -> Option<Arc<CertifiedKey>> {
        self.current
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    /// Reads both files so that they belong together: they may be replaced between two reads.
    fn read_files(&self) -> Result<(Vec<u8>, Vec<u8>), CertError> {
        let mut certificate = read(&self.certificate)?;
        loop {
            let key = read(&self.key)?;
            let again = read(&self.certificate)?;
            if again == certificate {
                return Ok((certificate, key));
            }
            certificate = again;
        }
    }

    fn parse(&self, (certificate, key): &(Vec<u8>, Vec<u8>)) -> Result<CertifiedKey, CertError> {
        let chain = certificates(&self.certificate, certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| CertError::NoKey {
            path: self.key.clone(),
        })?;
        let mismatch = |source| CertError::Mismatch {
            path: self.key.clone(),
            source,
        };
        let pair = CertifiedKey::new(chain, any_supported_type(&key).map_err(mismatch)?);
        pair.keys_match().map_err(mismatch)?;
        Ok(pair)
    }
}

/// Returns the expiration time of a certificate, in seconds since the Unix epoch.
fn expiry(pair: &CertifiedKey) -> Option<i64> {
    let (_, certificate) = parse_x509_certificate(pair.cert.first()?).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

impl ResolvesServerCert for CertWatcher {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.get()
    }
}

//! The serving certificate and its key, read from files and read again when they change.

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

/// How often the files are looked at. Their content is compared, so that neither a swapped symlink
/// nor a rewrite in place goes unseen.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Why files are no serving pair, or no CA of clients.
#[derive(Debug, thiserror::Error)]
pub enum CertError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file holds no PEM certificate.
    #[error("{path} holds no PEM certificate")]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The key file holds no PEM private key.
    #[error("{path} holds no PEM private key")]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// The key cannot sign, or does not belong to the certificate.
    #[error("the key in {path} does not fit the certificate: {source}")]
    Mismatch {
        /// The key's file.
        path: PathBuf,
        /// What rustls says.
        source: rustls::Error,
    },
    /// What the file holds cannot verify clients.
    #[error("{path} holds no CA to verify clients with: {source}")]
    NoCa {
        /// The file.
        path: PathBuf,
        /// What rustls says.
        source: rustls::Error,
    },
}

/// Reads a file that others may write.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, CertError> {
    std::fs::read(path).map_err(|source| CertError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// The PEM certificates of a file, at least one.
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

/// The pair that is served now.
///
/// # Guarantees
///
/// A handshake always uses the last good pair; a bad new one is reported and left aside. Connections
/// that stand are not touched by a change.
#[derive(Debug)]
pub struct CertWatcher {
    certificate: PathBuf,
    key: PathBuf,
    current: RwLock<Option<Arc<CertifiedKey>>>,
}

impl CertWatcher {
    /// Keys read from `tls.crt` and `tls.key` in a directory, which may still be empty.
    #[must_use]
    pub fn new(directory: &Path) -> Arc<Self> {
        Arc::new(Self {
            certificate: directory.join("tls.crt"),
            key: directory.join("tls.key"),
            current: RwLock::new(None),
        })
    }

    /// Whether there is a pair to serve.
    pub fn is_ready(&self) -> bool {
        self.get().is_some()
    }

    /// Looks at the files for as long as the process lives, and takes every good pair into service.
    pub async fn run(self: Arc<Self>, metrics: Metrics) {
        let mut served = None;
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let found = match self.read_files() {
                Ok(found) => found,
                // Before the first pair has been written there is nothing to complain about.
                Err(error) if served.is_none() => {
                    tracing::debug!(%error, "no serving certificate yet");
                    continue;
                }
                Err(error) => {
                    metrics.certificate_errors.inc();
                    tracing::error!(%error, "cannot reload the serving certificate; the old one stays");
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
                    tracing::error!(%error, "cannot use the new serving certificate; the old one stays");
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

    /// Both files of one moment: whoever swaps them may do so between two reads.
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

/// When a pair expires, in seconds since 1970.
fn expiry(pair: &CertifiedKey) -> Option<i64> {
    let (_, certificate) = parse_x509_certificate(pair.cert.first()?).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

impl ResolvesServerCert for CertWatcher {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.get()
    }
}

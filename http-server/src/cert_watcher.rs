//! Serving certificate and private key, loaded from files and reloaded when these change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::parse_x509_certificate;

use crate::metrics::Metrics;
use crate::pem_file::{self, CertError, READ_INTERVAL};

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
        let mut ticks = tokio::time::interval(READ_INTERVAL);
        loop {
            ticks.tick().await;
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
        let mut certificate = pem_file::read(&self.certificate)?;
        loop {
            let key = pem_file::read(&self.key)?;
            let again = pem_file::read(&self.certificate)?;
            if again == certificate {
                return Ok((certificate, key));
            }
            certificate = again;
        }
    }

    fn parse(&self, (certificate, key): &(Vec<u8>, Vec<u8>)) -> Result<CertifiedKey, CertError> {
        let chain = pem_file::certificates(&self.certificate, certificate)?;
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

//! How TLS is spoken: with the keys that are served now, and with clients that show a certificate where
//! that is asked for.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};

use crate::keys::ServingKeys;
use crate::metrics::Metrics;

/// How often the file of the clients' CA is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Why clients cannot be told apart by a file.
#[derive(Debug, thiserror::Error)]
pub enum ClientCaError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It holds no PEM certificate.
    #[error("{path} holds no PEM certificate")]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// rustls refuses what it holds.
    #[error("{path} holds no CA to verify clients with: {source}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What rustls says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// TLS 1.2 and 1.3, with one provider of cryptography.
///
/// # Guarantees
///
/// Where a client CA is given, nobody without a certificate of it is served, also before the file is
/// there. A file that is no CA is reported, and the last good one stays.
pub struct Tls {
    keys: Arc<ServingKeys>,
    client_ca: Option<PathBuf>,
    current: RwLock<Option<Arc<ServerConfig>>>,
}

impl Tls {
    /// TLS for everyone who trusts the keys.
    ///
    /// # Errors
    ///
    /// When rustls refuses the configuration.
    pub fn new(keys: Arc<ServingKeys>) -> Result<Self, rustls::Error> {
        let everyone = Self::config(&keys, None)?;
        Ok(Self {
            keys,
            client_ca: None,
            current: RwLock::new(Some(everyone)),
        })
    }

    /// TLS for clients whose certificate a CA in this file has signed. The file is read by
    /// [`keep_fresh`](Self::keep_fresh).
    #[must_use]
    pub fn for_clients_of(keys: Arc<ServingKeys>, client_ca: PathBuf) -> Self {
        Self {
            keys,
            client_ca: Some(client_ca),
            current: RwLock::new(None),
        }
    }

    /// Whether anybody can be served.
    pub fn is_loaded(&self) -> bool {
        self.current().is_some() && self.keys.are_loaded()
    }

    pub(crate) fn current(&self) -> Option<Arc<ServerConfig>> {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Looks at the client CA for as long as the process lives.
    pub async fn keep_fresh(self: Arc<Self>, metrics: Metrics) {
        let Some(path) = &self.client_ca else { return };
        let mut seen = None;
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let found = std::fs::read(path).map_err(|error| error.kind());
            if seen.as_ref() == Some(&found) {
                continue;
            }
            match self.read(path, &found) {
                Ok(config) => {
                    *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(config);
                    tracing::info!(path = %path.display(), "asking clients for a certificate of this CA");
                }
                Err(error) => {
                    metrics.certificate_errors.inc();
                    tracing::error!(%error, "cannot use the clients' CA; the old one stays");
                }
            }
            seen = Some(found);
        }
    }

    fn read(
        &self,
        path: &std::path::Path,
        found: &Result<Vec<u8>, io::ErrorKind>,
    ) -> Result<Arc<ServerConfig>, ClientCaError> {
        let path = path.to_owned();
        let bytes = match found {
            Ok(bytes) => bytes,
            Err(kind) => {
                let source = io::Error::from(*kind);
                return Err(ClientCaError::Unreadable { path, source });
            }
        };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(bytes) {
            let added = certificate
                .map_err(|_| rustls::Error::General("not PEM".to_owned()))
                .and_then(|certificate| roots.add(certificate));
            if let Err(source) = added {
                let source = source.into();
                return Err(ClientCaError::Unusable { path, source });
            }
        }
        if roots.is_empty() {
            return Err(ClientCaError::NoCertificate { path });
        }
        Self::config(&self.keys, Some(roots)).map_err(|source| ClientCaError::Unusable {
            path,
            source: source.into(),
        })
    }

    fn config(
        keys: &Arc<ServingKeys>,
        clients: Option<RootCertStore>,
    ) -> Result<Arc<ServerConfig>, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13, &TLS12])?;
        let config = match clients {
            None => config.with_no_client_auth(),
            Some(roots) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
                    .build()
                    .map_err(|error| rustls::Error::General(error.to_string()))?;
                config.with_client_cert_verifier(verifier)
            }
        };
        let mut config = config.with_cert_resolver(Arc::clone(keys) as _);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

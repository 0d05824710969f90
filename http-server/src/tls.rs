//! TLS configuration: the current serving certificate and, if configured, client certificates.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};

use crate::cert_watcher::CertWatcher;
use crate::metrics::Metrics;
use crate::pem_file::{self, CertError, READ_INTERVAL};

/// TLS configuration of the server: TLS 1.2 and 1.3, with one cryptography provider.
///
/// # Guarantees
///
/// If a client CA file is given, only clients with a certificate that this CA has signed are served; before the
/// file exists, no client is. A file that is not a valid CA is reported, and the last valid CA remains in use.
pub struct ServerTls {
    keys: Arc<CertWatcher>,
    client_ca: Option<PathBuf>,
    current: RwLock<Option<Arc<ServerConfig>>>,
}

impl ServerTls {
    /// Creates a configuration without client authentication.
    ///
    /// # Errors
    ///
    /// Returns an error if rustls rejects the configuration.
    pub fn new(keys: Arc<CertWatcher>) -> Result<Self, rustls::Error> {
        let everyone = Self::config(&keys, None)?;
        Ok(Self {
            keys,
            client_ca: None,
            current: RwLock::new(Some(everyone)),
        })
    }

    /// Creates a configuration that accepts only clients whose certificate a CA in this file has signed. The file
    /// is read by [`watch_client_ca`](Self::watch_client_ca).
    #[must_use]
    pub fn with_client_ca(keys: Arc<CertWatcher>, client_ca: PathBuf) -> Self {
        Self {
            keys,
            client_ca: Some(client_ca),
            current: RwLock::new(None),
        }
    }

    /// Returns true if the certificates are loaded, so that clients can be served.
    pub fn is_loaded(&self) -> bool {
        self.current().is_some() && self.keys.is_ready()
    }

    pub(crate) fn current(&self) -> Option<Arc<ServerConfig>> {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Watches the client CA file for as long as the process lives.
    pub async fn watch_client_ca(self: Arc<Self>, metrics: Metrics) {
        let Some(path) = &self.client_ca else { return };
        let mut logged = None;
        let mut ticks = tokio::time::interval(READ_INTERVAL);
        loop {
            ticks.tick().await;
            let found = pem_file::read(path);
            // Log a state only if it differs from the last one.
            let state = found.as_ref().map(Vec::clone).map_err(ToString::to_string);
            if logged.as_ref() == Some(&state) {
                continue;
            }
            logged = Some(state);
            match found.and_then(|pem| self.config_with_client_ca(path, &pem)) {
                Ok(config) => {
                    *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(config);
                    tracing::info!(path = %path.display(), "requiring client certificates signed by this CA");
                }
                Err(error) => {
                    metrics.certificate_errors.inc();
                    tracing::error!(%error, "cannot use the client CA; the last valid one remains in use");
                }
            }
        }
    }

    fn config_with_client_ca(
        &self,
        path: &Path,
        pem: &[u8],
    ) -> Result<Arc<ServerConfig>, CertError> {
        let unusable = |source| CertError::NoCa {
            path: path.to_owned(),
            source,
        };
        let mut roots = RootCertStore::empty();
        for certificate in pem_file::certificates(path, pem)? {
            roots.add(certificate).map_err(unusable)?;
        }
        Self::config(&self.keys, Some(roots)).map_err(unusable)
    }

    fn config(
        keys: &Arc<CertWatcher>,
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

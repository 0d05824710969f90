//! Error of the certificate manager.

use std::path::PathBuf;

use crate::ca::authority::AuthorityError;

/// Error in synchronizing the Secret, the serving certificate and the CA bundles.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertError {
    /// The API server rejected a request or cannot be reached.
    #[error("request to the API server failed: {0}")]
    Api(#[from] kube::Error),
    /// A certificate or a key cannot be created or parsed.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The TLS key pair cannot be written.
    #[error("cannot write the TLS key pair to {directory}: {source}")]
    Write {
        /// Directory shared with the webhook.
        directory: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The CA file cannot be read.
    #[error("cannot read the CA in {path}: {source}")]
    ReadCa {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Other clients write too often for an update without conflict.
    #[error("too many write conflicts: other clients keep changing the Secret or a configuration")]
    Conflict,
    /// The Secret that the certificate issuer creates does not exist.
    #[error("the Secret does not exist yet; the certificate issuer must create it")]
    SecretNotFound,
    /// The Secret that the certificate issuer fills is incomplete.
    #[error("the Secret has no {0}; the certificate issuer must complete it")]
    MissingKey(&'static str),
    /// The CA, its key and the serving certificate in the Secret do not belong together, and are not from Lockstep.
    #[error(
        "the Secret cannot be used ({damage}), belongs to another owner ({reason}) and was not modified. \
         Delete it to let Lockstep generate new certificates, or use `--cert-source=secret`"
    )]
    UnmanagedSecret {
        /// Sign of the other owner.
        reason: &'static str,
        /// Reason why the content cannot be used.
        damage: &'static str,
    },
    /// The Secret that the certificate issuer fills contains a pair that cannot be served.
    #[error("the TLS key pair in the Secret is invalid: {0}; the previous pair remains in use")]
    InvalidKeyPair(String),
}

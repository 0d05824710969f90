//! Master user of an instance: its name, and its password or who knows it.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use lockstep_controller::{ReadObject, ReconcileError};
use serde_json::Value;

/// Master user. Neither the name nor the password is ever printed.
pub(crate) struct MasterUser {
    pub(crate) name: String,
    pub(crate) password: MasterPassword,
}

/// Password of the master user, or who knows it.
pub(crate) enum MasterPassword {
    /// Password in a Secret.
    Known(KnownPassword),
    /// The controller has generated a password that is not stored in its Secret yet. It is lost if this process ends, so that
    /// RDS does not get it yet.
    NotStored,
    /// RDS generates it and keeps it in Secrets Manager.
    Managed {
        /// KMS key of the secret.
        kms_key: Option<String>,
    },
}

/// Version of the credentials of an instance whose password is unknown.
pub(crate) const UNKNOWN_VERSION: &str = "unknown";

/// Version of the credentials of an instance whose password RDS manages.
pub(crate) const MANAGED_VERSION: &str = "managed";

impl MasterPassword {
    /// Returns the version to record when an instance has the password.
    pub(crate) fn version(&self) -> Option<&str> {
        match self {
            Self::Known(known) => Some(&known.version),
            Self::NotStored => None,
            Self::Managed { .. } => Some(MANAGED_VERSION),
        }
    }
}

/// Password in a Secret.
pub(crate) struct KnownPassword {
    pub(crate) text: String,
    /// UID and resource version of the Secret. The password cannot be derived from it, in contrast to a hash, which helps
    /// to guess it.
    pub(crate) version: String,
}

impl KnownPassword {
    /// Returns a password with the version of the Secret that has it.
    pub(crate) fn of(secret: &Secret, text: String) -> Self {
        let of = Option::unwrap_or_default;
        Self {
            text,
            version: format!("{}/{}", of(secret.uid()), of(secret.resource_version())),
        }
    }
}

/// Credentials that an object asks for.
pub(crate) struct Credentials {
    pub(crate) user: Result<MasterUser, ReconcileError>,
    /// Secret that is to exist, if the controller generates the password.
    pub(crate) secret: Option<Value>,
    /// Objects that were read, whose changes trigger the next reconciliation.
    pub(crate) reads: Vec<ReadObject>,
}

impl Credentials {
    /// Returns true unless the password is one that the controller has just generated.
    pub(crate) fn is_stored(&self) -> bool {
        let user = self.user.as_ref();
        user.map_or(true, |user| {
            !matches!(user.password, MasterPassword::NotStored)
        })
    }
}

//! Password of the master user of an instance: the one that it has, as far as it is known, and the one that it is to have.
//!
//! recorded version → Secret or RDS? → change → recorded as requested → sent → recorded as accepted
//!
//! If an answer is lost, or the process ends, the instance may have either password. So the request is recorded before it is
//! sent, and another password is set whatever was recorded before.

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::{CloudDatabase, CloudDatabaseSpec};
use lockstep_controller::ReconcileError;

use crate::credentials::connection_secret::Published;
use crate::credentials::master_user::{
    KnownPassword, MANAGED_VERSION, MasterPassword, MasterUser, UNKNOWN_VERSION,
};
use crate::instance::described::is_observed;
use crate::instance::drift;
use crate::instance::instance_reconciler::InstanceReconciler;
use crate::instance::instance_status::{Accepts, Meaning};
use crate::instance::record::Record;
use crate::origin::replication::Replication;
use crate::settings::PasswordChange;

/// Status of an instance whose password RDS is changing.
const RESETTING: &str = "resetting-master-credentials";

/// Result of the comparison of the master user.
pub(crate) struct ComparedUser {
    /// Differences that cannot be changed.
    pub(crate) differences: Vec<String>,
    /// Change of the password.
    pub(crate) password: Option<PasswordChange>,
    /// Version of the credentials that the instance has.
    pub(crate) version: Option<String>,
}

impl InstanceReconciler {
    /// Compares the master user. `version` is the recorded version of the credentials.
    pub(crate) fn compare_user(
        &self,
        id: &str,
        user: &Result<MasterUser, ReconcileError>,
        instance: &DbInstance,
        record: &Record,
        replication: &Replication<'_>,
        mut version: Option<String>,
    ) -> ComparedUser {
        let (differences, password) = match user {
            // A replica has the users of its source.
            _ if replication.has_users_of_source() => (Vec::new(), None),
            Ok(user) => (
                drift::of_master_user(user, instance),
                self.password_change(id, &user.password, instance, record, &mut version),
            ),
            Err(error) => {
                let unknown = format!("the password of the master user is unknown: {error}");
                (vec![unknown], None)
            }
        };
        ComparedUser {
            differences,
            password,
            version,
        }
    }

    /// Returns the version of the credentials that the instance has, as far as it is known.
    pub(crate) fn credentials_version(
        &self,
        id: &str,
        object: &CloudDatabase,
        instance: &DbInstance,
        record: &Record,
    ) -> Option<String> {
        let is_other = record.resource_id.is_some()
            && record.resource_id.as_deref() != instance.dbi_resource_id();
        let is_created = object.spec.adopt.is_none();
        let is_generated = object.spec.credentials.generate.is_some();
        match record.credentials_version.as_deref() {
            // It was restored, with the password of that time.
            Some(_) if is_other => {
                self.passwords.forget(id);
                Some(UNKNOWN_VERSION.to_owned())
            }
            // It was adopted, and does not have a password that was generated here.
            None if is_generated => Some(UNKNOWN_VERSION.to_owned()),
            // The status was erased, and with it the version of the password, or that it is the one of a source.
            None if is_created && !record.is_complete && !is_observed(object) => {
                self.passwords.forget(id);
                Some(UNKNOWN_VERSION.to_owned())
            }
            recorded => recorded.map(String::from),
        }
    }

    /// Returns the change of the password, if the instance has another one, or one that is kept elsewhere. `version` is the
    /// recorded version of the credentials.
    pub(crate) fn password_change(
        &self,
        id: &str,
        password: &MasterPassword,
        instance: &DbInstance,
        record: &Record,
        version: &mut Option<String>,
    ) -> Option<PasswordChange> {
        let is_managed = instance.master_user_secret().is_some();
        if is_managed {
            self.passwords.forget(id);
            *version = Some(MANAGED_VERSION.to_owned());
        }
        match password {
            MasterPassword::NotStored => None,
            MasterPassword::Managed { .. } if is_managed => None,
            MasterPassword::Managed { kms_key } => Some(PasswordChange::Manage {
                kms_key: kms_key.clone(),
            }),
            MasterPassword::Known(known) if is_managed => {
                Some(PasswordChange::Unmanage(known.text.clone()))
            }
            MasterPassword::Known(known) => {
                let requested = record.requested_credentials_version.as_deref();
                self.password_to_set(id, known, requested, version)
            }
        }
    }

    /// Returns the password to set, if the Secret has another one than the instance, or if another one was `requested` and
    /// RDS may have accepted it. `version` is the recorded version of the Secret. If none is recorded, the instance was
    /// adopted, and keeps its password.
    fn password_to_set(
        &self,
        id: &str,
        known: &KnownPassword,
        requested: Option<&str>,
        version: &mut Option<String>,
    ) -> Option<PasswordChange> {
        let is_recorded =
            version.as_ref().is_none_or(|it| *it == known.version) && requested.is_none();
        if is_recorded || self.passwords.has(id, &known.text) {
            self.passwords.record(id, &known.text);
            *version = Some(known.version.clone());
            return None;
        }
        Some(PasswordChange::Set(known.text.clone()))
    }
}

/// Returns true if an instance is a replica, which does not have a password that was generated for it.
pub(crate) fn is_unknown_password(spec: &CloudDatabaseSpec, replication: &Replication<'_>) -> bool {
    replication.has_users_of_source() && spec.credentials.secret_name.is_none()
}

/// Returns true if the status says that the instance may have a password, so that it can be requested. RDS reports whether it
/// manages one.
pub(crate) fn is_noted(password: &MasterPassword, record: &Record) -> bool {
    match password {
        MasterPassword::Known(_) => {
            record.credentials_version.as_deref() == Some(UNKNOWN_VERSION)
                || record.requested_credentials_version.is_some()
        }
        MasterPassword::NotStored | MasterPassword::Managed { .. } => true,
    }
}

/// Returns true if a change of the password can be requested in a status.
pub(crate) fn accepts_password(meaning: &Meaning) -> bool {
    matches!(meaning.accepts, Accepts::All | Accepts::AllButStorage)
}

/// Returns true while RDS has accepted a change of the password and has not applied it.
pub(crate) fn has_pending_password(instance: &DbInstance) -> bool {
    let pending = instance.pending_modified_values();
    let secret = instance.master_user_secret();
    pending.is_some_and(|it| it.master_user_password().is_some())
        || secret.is_some_and(|it| it.secret_status() == Some("creating"))
}

/// Returns true while RDS may be changing the password.
pub(crate) fn is_changing_password(instance: &DbInstance) -> bool {
    has_pending_password(instance) || instance.db_instance_status() == Some(RESETTING)
}

/// Returns the password of an instance that has it, or where it is.
pub(crate) fn published_by(password: &MasterPassword, instance: &DbInstance) -> Option<Published> {
    match password {
        MasterPassword::Known(known) => Some(Published::Password(known.text.clone())),
        MasterPassword::NotStored => None,
        MasterPassword::Managed { .. } => {
            let arn = instance.master_user_secret()?.secret_arn()?;
            Some(Published::SecretArn(arn.to_owned()))
        }
    }
}

/// Returns true if a password that is not changed is the one that the instance has.
pub(crate) fn is_known(password: &MasterPassword, replication: &Replication<'_>) -> bool {
    !replication.has_users_of_source() && !matches!(password, MasterPassword::NotStored)
}

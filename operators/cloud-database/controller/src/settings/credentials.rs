//! Password of the master user. Its change is not found here: the spec says where the password is.

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::CloudDatabaseSpec;

use crate::aws::rds_client::request::Request;
use crate::settings::setting::Setting;

pub(crate) struct Password;

/// Change of the password. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum PasswordChange {
    /// Sets another password.
    Set(String),
    /// Sets a password on an instance whose password RDS manages, which ends that.
    Unmanage(String),
    /// Lets RDS manage the password in Secrets Manager.
    Manage {
        /// KMS key of the secret.
        kms_key: Option<String>,
    },
}

impl Setting for Password {
    type Value = PasswordChange;
    /// No field of the spec: for messages.
    const FIELD: &'static str = "the password of the master user";

    fn desired(_: &CloudDatabaseSpec) -> Option<PasswordChange> {
        None
    }

    fn put(value: &PasswordChange, request: Request) -> Request {
        match value {
            PasswordChange::Set(password) => request.master_user_password(password),
            PasswordChange::Unmanage(password) => request
                .master_user_password(password)
                .manage_master_user_password(false),
            PasswordChange::Manage { kms_key: None } => request.manage_master_user_password(true),
            PasswordChange::Manage {
                kms_key: Some(kms_key),
            } => request
                .manage_master_user_password(true)
                .master_user_secret_kms_key_id(kms_key),
        }
    }

    fn is_pending(instance: &DbInstance) -> bool {
        let pending = instance.pending_modified_values();
        pending.is_some_and(|pending| pending.master_user_password().is_some())
    }
}

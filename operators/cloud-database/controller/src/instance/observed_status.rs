//! Status fields that show an instance as RDS describes it.

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::{CloudDatabaseStatus, MasterUserSecret};

use crate::instance::{certificate, drift};

/// Records an instance as RDS describes it. What RDS does not show stays as it is.
pub(crate) fn record(status: &mut CloudDatabaseStatus, instance: &DbInstance) {
    fn set<T>(field: &mut Option<T>, shown: Option<T>) {
        if shown.is_some() {
            *field = shown;
        }
    }
    let arn = instance.db_instance_arn();
    let of_arn = |part: usize| Some(arn?.split(':').nth(part)?.to_owned());
    let text = |text: Option<&str>| text.map(String::from);
    set(&mut status.phase, text(instance.db_instance_status()));
    set(&mut status.engine_version, text(instance.engine_version()));
    set(
        &mut status.instance_class,
        text(instance.db_instance_class()),
    );
    set(
        &mut status.allocated_storage_gib,
        instance.allocated_storage(),
    );
    set(&mut status.arn, text(arn));
    set(&mut status.region, of_arn(3));
    set(&mut status.account_id, of_arn(4));
    set(&mut status.resource_id, text(instance.dbi_resource_id()));
    set(
        &mut status.publicly_accessible,
        instance.publicly_accessible(),
    );
    set(&mut status.storage_encrypted, instance.storage_encrypted());
    set(&mut status.certificate, certificate::of(instance));
    status.pending_modifications = drift::pending(instance);
    let window = text(instance.preferred_maintenance_window());
    status.pending_modifications_window =
        window.filter(|_| !status.pending_modifications.is_empty());
    let secret = instance.master_user_secret();
    status.master_user_secret = secret.map(|secret| MasterUserSecret {
        arn: secret.secret_arn().unwrap_or_default().to_owned(),
        status: text(secret.secret_status()),
    });
}

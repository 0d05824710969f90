//! Calls that create an instance from a backup or as a replica of another one, and the one that promotes a replica.
//!
//! They set what the spec says of network access, groups, the class, the port and backups. The storage, the version and the password
//! are those of the source: they are modified once the instance is available.

use aws_sdk_rds::operation::create_db_instance_read_replica::CreateDBInstanceReadReplicaError;
use aws_sdk_rds::operation::restore_db_instance_from_db_snapshot::RestoreDBInstanceFromDBSnapshotError;
use aws_sdk_rds::operation::restore_db_instance_to_point_in_time::RestoreDBInstanceToPointInTimeError;
use aws_sdk_rds::primitives::{DateTime, DateTimeFormat};
use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::{CloudDatabase, PointInTime};

use crate::call_error::CallError;
use crate::rds_client::attempts::Attempts;
use crate::rds_client::{RETENTION_DAYS, RdsClient, without_instance};
use crate::settings::names_minor_version;
use crate::tags;

/// Sets what each of the calls takes. Their requests have different types with the same methods.
macro_rules! with_settings {
    ($request:expr, $object:expr, $cluster_name:expr) => {{
        let spec = &$object.spec;
        let network = &spec.network;
        let groups = &network.security_groups;
        let upgrades = spec.auto_minor_version_upgrade;
        $request
            .auto_minor_version_upgrade(upgrades.unwrap_or(!names_minor_version(spec)))
            // What cannot be changed later, and what would interrupt the database once more.
            .set_availability_zone(network.availability_zone.clone())
            .set_network_type(network.network_type.map(|it| it.as_str().to_owned()))
            .set_ca_certificate_identifier(spec.ca_certificate.clone())
            .set_enable_iam_database_authentication(spec.iam_authentication)
            .db_instance_class(&spec.instance_class)
            .multi_az(spec.multi_az.unwrap_or_default())
            .set_port(spec.port)
            .set_db_subnet_group_name(network.subnet_group.clone())
            .set_vpc_security_group_ids((!groups.is_empty()).then(|| groups.clone()))
            .publicly_accessible(network.publicly_accessible)
            .copy_tags_to_snapshot(spec.backup.copy_tags_to_snapshot)
            .deletion_protection(spec.deletion_protection.unwrap_or_default())
            .set_tags(Some(tags::at_creation($object, $cluster_name)))
    }};
}

impl RdsClient {
    /// Requests a new instance, owned by the object, with the data of a snapshot.
    pub(crate) async fn restore_snapshot(
        &self,
        id: &str,
        object: &CloudDatabase,
        snapshot: &str,
    ) -> Result<DbInstance, CallError> {
        self.may_write().await?;
        let _write = self.descriptions.write(id);
        let spec = &object.spec;
        // The groups of the spec are those of another major version: the upgrade sets them.
        let is_upgraded = spec.allow_major_version_upgrade.is_some();
        let request = self
            .client
            .restore_db_instance_from_db_snapshot()
            .db_instance_identifier(id)
            .db_snapshot_identifier(snapshot)
            .engine(spec.engine.as_str())
            .set_db_parameter_group_name(spec.parameter_group.clone().filter(|_| !is_upgraded))
            .set_option_group_name(spec.option_group.clone().filter(|_| !is_upgraded))
            .set_engine_lifecycle_support(
                spec.engine_lifecycle_support
                    .map(|it| it.as_str().to_owned()),
            )
            .set_backup_retention_period(spec.backup.retention_days)
            .set_preferred_backup_window(spec.backup.window.clone());
        let request = with_settings!(request, object, self.cluster_name());
        let attempts = Attempts::<RestoreDBInstanceFromDBSnapshotError>::default();
        let call = request.customize().interceptor(attempts.clone());
        let response = call.send().await;
        let response = response.map_err(|error| CallError::from(error).after(&attempts))?;
        response.db_instance.ok_or_else(without_instance)
    }

    /// Requests a new instance, owned by the object, with an earlier state of another one.
    pub(crate) async fn restore_point_in_time(
        &self,
        id: &str,
        object: &CloudDatabase,
        source: &PointInTime,
    ) -> Result<DbInstance, CallError> {
        let time = source.time.as_deref();
        let time = time.map(|time| DateTime::from_str(time, DateTimeFormat::DateTimeWithOffset));
        let time = time.transpose().map_err(|error| {
            CallError::not_sent(&format!("the time of the restore is invalid: {error}"))
        })?;
        self.may_write().await?;
        let _write = self.descriptions.write(id);
        let spec = &object.spec;
        // The groups of the spec are those of another major version: the upgrade sets them.
        let is_upgraded = spec.allow_major_version_upgrade.is_some();
        let request = self
            .client
            .restore_db_instance_to_point_in_time()
            .target_db_instance_identifier(id)
            .set_source_db_instance_identifier(source.source_instance.clone())
            .set_source_dbi_resource_id(source.source_resource_id.clone())
            .set_restore_time(time)
            .set_use_latest_restorable_time(source.latest)
            .engine(spec.engine.as_str())
            .set_db_parameter_group_name(spec.parameter_group.clone().filter(|_| !is_upgraded))
            .set_option_group_name(spec.option_group.clone().filter(|_| !is_upgraded))
            .set_engine_lifecycle_support(
                spec.engine_lifecycle_support
                    .map(|it| it.as_str().to_owned()),
            )
            .set_backup_retention_period(spec.backup.retention_days)
            .set_preferred_backup_window(spec.backup.window.clone());
        let request = with_settings!(request, object, self.cluster_name());
        let attempts = Attempts::<RestoreDBInstanceToPointInTimeError>::default();
        let call = request.customize().interceptor(attempts.clone());
        let response = call.send().await;
        let response = response.map_err(|error| CallError::from(error).after(&attempts))?;
        response.db_instance.ok_or_else(without_instance)
    }

    /// Requests a new instance, owned by the object, that replicates another one.
    pub(crate) async fn create_replica(
        &self,
        id: &str,
        object: &CloudDatabase,
        source: &str,
    ) -> Result<DbInstance, CallError> {
        self.may_write().await?;
        let _write = self.descriptions.write(id);
        let request = self
            .client
            .create_db_instance_read_replica()
            .db_instance_identifier(id)
            .source_db_instance_identifier(source);
        let request = with_settings!(request, object, self.cluster_name());
        let attempts = Attempts::<CreateDBInstanceReadReplicaError>::default();
        let call = request.customize().interceptor(attempts.clone());
        let response = call.send().await;
        let response = response.map_err(|error| CallError::from(error).after(&attempts))?;
        response.db_instance.ok_or_else(without_instance)
    }

    /// Requests the promotion of a replica to an instance of its own. Its automated backups are those of the spec, or those
    /// that it has, or those of a new instance: by RDS' own default, they would be retained for a day.
    pub(crate) async fn promote(
        &self,
        id: &str,
        object: &CloudDatabase,
        replica: &DbInstance,
    ) -> Result<DbInstance, CallError> {
        self.may_write().await?;
        let _write = self.descriptions.write(id);
        let backup = &object.spec.backup;
        let present = replica.backup_retention_period().filter(|days| *days > 0);
        let retention = backup.retention_days.or(present);
        let response = self
            .client
            .promote_read_replica()
            .db_instance_identifier(id)
            .backup_retention_period(retention.unwrap_or(RETENTION_DAYS))
            .set_preferred_backup_window(backup.window.clone())
            .send()
            .await?;
        response.db_instance.ok_or_else(without_instance)
    }
}

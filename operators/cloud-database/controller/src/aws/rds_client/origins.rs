//! Calls that create an instance from a backup or as a replica of another one, and the one that promotes a replica.
//!
//! They set what the spec says, as far as they take it. The storage, the version and the password are those of the source: they
//! are modified once the instance is available.

use aws_sdk_rds::primitives::{DateTime, DateTimeFormat};
use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::{CloudDatabase, PointInTime};

use crate::aws::call_error::CallError;
use crate::aws::rds_client::RdsClient;
use crate::aws::rds_client::request::{Request, without_instance};
use crate::instance::tags;
use crate::settings::{self, NewInstance, RETENTION_DAYS};

/// Sets what each of the calls takes and is no setting, because it cannot be changed later. Their requests have different types
/// with the same methods.
macro_rules! with_place_and_tags {
    ($request:expr, $object:expr, $cluster_name:expr) => {{
        let network = &$object.spec.network;
        $request
            .set_availability_zone(network.availability_zone.clone())
            .set_db_subnet_group_name(network.subnet_group.clone())
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
        let request = self
            .client
            .restore_db_instance_from_db_snapshot()
            .db_instance_identifier(id)
            .db_snapshot_identifier(snapshot)
            .engine(spec.engine.as_str());
        let request = with_place_and_tags!(request, object, self.cluster_name());
        let request = Request::RestoreSnapshot(request);
        let request = settings::put_at_creation(spec, NewInstance::Restored, request);
        self.api.send(request).await
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
        let request = self
            .client
            .restore_db_instance_to_point_in_time()
            .target_db_instance_identifier(id)
            .set_source_db_instance_identifier(source.source_instance.clone())
            .set_source_dbi_resource_id(source.source_resource_id.clone())
            .set_restore_time(time)
            .set_use_latest_restorable_time(source.latest)
            .engine(spec.engine.as_str());
        let request = with_place_and_tags!(request, object, self.cluster_name());
        let request = Request::RestorePointInTime(request);
        let request = settings::put_at_creation(spec, NewInstance::Restored, request);
        self.api.send(request).await
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
        let request = with_place_and_tags!(request, object, self.cluster_name());
        let request = Request::Replicate(request);
        let request = settings::put_at_creation(&object.spec, NewInstance::Replica, request);
        self.api.send(request).await
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
        let request = self
            .client
            .promote_read_replica()
            .db_instance_identifier(id)
            .backup_retention_period(retention.unwrap_or(RETENTION_DAYS))
            .set_preferred_backup_window(backup.window.clone());
        let response = self.api.promote_read_replica(request).await?;
        response.db_instance.ok_or_else(without_instance)
    }
}

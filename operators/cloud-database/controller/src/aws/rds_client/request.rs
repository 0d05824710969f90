//! Calls that create or modify an instance, with their parameters as far as they are settings.

use aws_sdk_rds::operation::create_db_instance::CreateDBInstanceError;
use aws_sdk_rds::operation::create_db_instance::builders::CreateDBInstanceFluentBuilder;
use aws_sdk_rds::operation::create_db_instance_read_replica::CreateDBInstanceReadReplicaError;
use aws_sdk_rds::operation::create_db_instance_read_replica::builders::CreateDBInstanceReadReplicaFluentBuilder;
use aws_sdk_rds::operation::modify_db_instance::ModifyDBInstanceError;
use aws_sdk_rds::operation::modify_db_instance::builders::ModifyDBInstanceFluentBuilder;
use aws_sdk_rds::operation::restore_db_instance_from_db_snapshot::RestoreDBInstanceFromDBSnapshotError;
use aws_sdk_rds::operation::restore_db_instance_from_db_snapshot::builders::RestoreDBInstanceFromDBSnapshotFluentBuilder;
use aws_sdk_rds::operation::restore_db_instance_to_point_in_time::RestoreDBInstanceToPointInTimeError;
use aws_sdk_rds::operation::restore_db_instance_to_point_in_time::builders::RestoreDBInstanceToPointInTimeFluentBuilder;
use aws_sdk_rds::types::{CloudwatchLogsExportConfiguration, DatabaseInsightsMode, DbInstance};

use crate::aws::call_error::CallError;
use crate::aws::rds_client::attempts::Attempts;

/// Request of one of the calls. Their types have the same methods.
pub(crate) enum Request {
    Create(CreateDBInstanceFluentBuilder),
    Modify(ModifyDBInstanceFluentBuilder),
    RestoreSnapshot(RestoreDBInstanceFromDBSnapshotFluentBuilder),
    RestorePointInTime(RestoreDBInstanceToPointInTimeFluentBuilder),
    Replicate(CreateDBInstanceReadReplicaFluentBuilder),
}

/// Declares parameters, each with the calls that take it. Any other call leaves it out.
macro_rules! parameters {
    ($($name:ident($value:ty): $($call:ident)+;)+) => {
        impl Request {
            $(#[allow(unreachable_patterns, reason = "some parameters are taken by each call")]
            pub(crate) fn $name(self, value: $value) -> Self {
                match self {
                    $(Self::$call(request) => Self::$call(request.$name(value)),)+
                    request => request,
                }
            })+
        }
    };
}

parameters! {
    allocated_storage(i32): Create Modify RestoreSnapshot RestorePointInTime Replicate;
    allow_major_version_upgrade(bool): Modify;
    auto_minor_version_upgrade(bool): Create Modify RestoreSnapshot RestorePointInTime Replicate;
    backup_retention_period(i32): Create Modify RestoreSnapshot RestorePointInTime;
    ca_certificate_identifier(&str): Create Modify RestoreSnapshot RestorePointInTime Replicate;
    cloudwatch_logs_export_configuration(CloudwatchLogsExportConfiguration): Modify;
    copy_tags_to_snapshot(bool): Create Modify RestoreSnapshot RestorePointInTime Replicate;
    database_insights_mode(DatabaseInsightsMode): Create Modify Replicate;
    db_instance_class(&str): Create Modify RestoreSnapshot RestorePointInTime Replicate;
    db_parameter_group_name(&str): Create Modify RestoreSnapshot RestorePointInTime Replicate;
    db_port_number(i32): Modify;
    dedicated_log_volume(bool): Create Modify RestoreSnapshot RestorePointInTime Replicate;
    deletion_protection(bool): Create Modify RestoreSnapshot RestorePointInTime Replicate;
    enable_cloudwatch_logs_exports(&str): Create RestoreSnapshot RestorePointInTime Replicate;
    enable_customer_owned_ip(bool): Create Modify RestoreSnapshot RestorePointInTime Replicate;
    enable_iam_database_authentication(bool): Create Modify RestoreSnapshot RestorePointInTime Replicate;
    enable_performance_insights(bool): Create Modify Replicate;
    engine_lifecycle_support(&str): Create Modify RestoreSnapshot RestorePointInTime;
    engine_version(&str): Create Modify;
    iops(i32): Create Modify RestoreSnapshot RestorePointInTime Replicate;
    manage_master_user_password(bool): Create Modify RestoreSnapshot RestorePointInTime;
    master_user_password(&str): Create Modify;
    master_user_secret_kms_key_id(&str): Create Modify RestoreSnapshot RestorePointInTime;
    max_allocated_storage(i32): Create Modify RestorePointInTime Replicate;
    monitoring_interval(i32): Create Modify Replicate;
    monitoring_role_arn(&str): Create Modify Replicate;
    multi_az(bool): Create Modify RestoreSnapshot RestorePointInTime Replicate;
    network_type(&str): Create Modify RestoreSnapshot RestorePointInTime Replicate;
    option_group_name(&str): Create Modify RestoreSnapshot RestorePointInTime Replicate;
    performance_insights_kms_key_id(&str): Create Modify Replicate;
    performance_insights_retention_period(i32): Create Modify Replicate;
    port(i32): Create RestoreSnapshot RestorePointInTime Replicate;
    preferred_backup_window(&str): Create Modify RestoreSnapshot RestorePointInTime;
    preferred_maintenance_window(&str): Create Modify;
    publicly_accessible(bool): Create Modify RestoreSnapshot RestorePointInTime Replicate;
    storage_throughput(i32): Create Modify RestoreSnapshot RestorePointInTime Replicate;
    storage_type(&str): Create Modify RestoreSnapshot RestorePointInTime Replicate;
    vpc_security_group_ids(&str): Create Modify RestoreSnapshot RestorePointInTime Replicate;
}

/// Sends the request of an operation, whose attempts tell whether it may have been carried out in spite of an error.
macro_rules! send {
    ($request:expr, $error:ty) => {{
        let attempts = Attempts::<$error>::default();
        let call = $request.customize().interceptor(attempts.clone());
        match Box::pin(call.send()).await {
            Ok(response) => response.db_instance,
            Err(error) => return Err(CallError::from(error).after(&attempts)),
        }
    }};
}

impl Request {
    /// Sends the request, and returns the instance as RDS describes it in its answer.
    pub(crate) async fn send(self) -> Result<DbInstance, CallError> {
        let instance = match self {
            Self::Create(request) => send!(request, CreateDBInstanceError),
            Self::Modify(request) => send!(request, ModifyDBInstanceError),
            Self::RestoreSnapshot(request) => send!(request, RestoreDBInstanceFromDBSnapshotError),
            Self::RestorePointInTime(request) => {
                send!(request, RestoreDBInstanceToPointInTimeError)
            }
            Self::Replicate(request) => send!(request, CreateDBInstanceReadReplicaError),
        };
        instance.ok_or_else(without_instance)
    }
}

/// Returns the error for a response without the instance.
pub(crate) fn without_instance() -> CallError {
    CallError::without_response("the response contains no instance")
}

//! Parameters of the calls that create or modify an instance, as far as they are settings.

use aws_sdk_rds::operation::create_db_instance::builders::CreateDBInstanceFluentBuilder;
use aws_sdk_rds::operation::create_db_instance_read_replica::builders::CreateDBInstanceReadReplicaFluentBuilder;
use aws_sdk_rds::operation::modify_db_instance::builders::ModifyDBInstanceFluentBuilder;
use aws_sdk_rds::operation::restore_db_instance_from_db_snapshot::builders::RestoreDBInstanceFromDBSnapshotFluentBuilder;
use aws_sdk_rds::operation::restore_db_instance_to_point_in_time::builders::RestoreDBInstanceToPointInTimeFluentBuilder;
use aws_sdk_rds::types::{CloudwatchLogsExportConfiguration, DatabaseInsightsMode};

/// Request to which parameters are added. The builders of the SDK take themselves and return themselves.
pub(crate) struct Request<B>(Option<B>);

impl<B> Request<B>
where
    Self: Parameters,
{
    /// Returns the request with the parameters that a function adds.
    pub(crate) fn with(builder: B, add: impl FnOnce(&mut dyn Parameters)) -> B {
        let mut request = Self(Some(builder));
        add(&mut request);
        request.0.expect("each parameter returns the builder")
    }
}

/// Declares parameters: a call that does not take one leaves it out.
macro_rules! parameters {
    ($($value:ty: $($name:ident)+;)+) => {
        /// Parameters of a call, by their names in the SDK.
        pub(crate) trait Parameters {
            $($(fn $name(&mut self, _: $value) {})+)+
        }
    };
}

/// Declares the parameters that a call takes.
macro_rules! takes {
    ($builder:ty: $($value:ty: $($name:ident)+;)+) => {
        impl Parameters for Request<$builder> {
            $($(fn $name(&mut self, value: $value) {
                self.0 = self.0.take().map(|request| request.$name(value));
            })+)+
        }
    };
}

parameters! {
    bool: allow_major_version_upgrade auto_minor_version_upgrade copy_tags_to_snapshot dedicated_log_volume deletion_protection
        enable_iam_database_authentication enable_performance_insights manage_master_user_password multi_az publicly_accessible;
    i32: allocated_storage backup_retention_period db_port_number iops max_allocated_storage monitoring_interval
        performance_insights_retention_period port storage_throughput;
    &str: ca_certificate_identifier db_instance_class db_parameter_group_name enable_cloudwatch_logs_exports
        engine_lifecycle_support engine_version master_user_password master_user_secret_kms_key_id monitoring_role_arn
        network_type option_group_name performance_insights_kms_key_id preferred_backup_window preferred_maintenance_window
        storage_type vpc_security_group_ids;
    DatabaseInsightsMode: database_insights_mode;
    CloudwatchLogsExportConfiguration: cloudwatch_logs_export_configuration;
}

takes! { CreateDBInstanceFluentBuilder:
    bool: auto_minor_version_upgrade copy_tags_to_snapshot dedicated_log_volume deletion_protection
        enable_iam_database_authentication enable_performance_insights manage_master_user_password multi_az publicly_accessible;
    i32: allocated_storage backup_retention_period iops max_allocated_storage monitoring_interval
        performance_insights_retention_period port storage_throughput;
    &str: ca_certificate_identifier db_instance_class db_parameter_group_name enable_cloudwatch_logs_exports
        engine_lifecycle_support engine_version master_user_password master_user_secret_kms_key_id monitoring_role_arn
        network_type option_group_name performance_insights_kms_key_id preferred_backup_window preferred_maintenance_window
        storage_type vpc_security_group_ids;
    DatabaseInsightsMode: database_insights_mode;
}

takes! { ModifyDBInstanceFluentBuilder:
    bool: allow_major_version_upgrade auto_minor_version_upgrade copy_tags_to_snapshot dedicated_log_volume deletion_protection
        enable_iam_database_authentication enable_performance_insights manage_master_user_password multi_az publicly_accessible;
    i32: allocated_storage backup_retention_period db_port_number iops max_allocated_storage monitoring_interval
        performance_insights_retention_period storage_throughput;
    &str: ca_certificate_identifier db_instance_class db_parameter_group_name engine_lifecycle_support engine_version
        master_user_password master_user_secret_kms_key_id monitoring_role_arn network_type option_group_name
        performance_insights_kms_key_id preferred_backup_window preferred_maintenance_window storage_type
        vpc_security_group_ids;
    DatabaseInsightsMode: database_insights_mode;
    CloudwatchLogsExportConfiguration: cloudwatch_logs_export_configuration;
}

takes! { RestoreDBInstanceFromDBSnapshotFluentBuilder:
    bool: auto_minor_version_upgrade copy_tags_to_snapshot dedicated_log_volume deletion_protection
        enable_iam_database_authentication manage_master_user_password multi_az publicly_accessible;
    i32: allocated_storage backup_retention_period iops port storage_throughput;
    &str: ca_certificate_identifier db_instance_class db_parameter_group_name enable_cloudwatch_logs_exports
        engine_lifecycle_support master_user_secret_kms_key_id network_type option_group_name preferred_backup_window
        storage_type vpc_security_group_ids;
}

takes! { RestoreDBInstanceToPointInTimeFluentBuilder:
    bool: auto_minor_version_upgrade copy_tags_to_snapshot dedicated_log_volume deletion_protection
        enable_iam_database_authentication manage_master_user_password multi_az publicly_accessible;
    i32: allocated_storage backup_retention_period iops max_allocated_storage port storage_throughput;
    &str: ca_certificate_identifier db_instance_class db_parameter_group_name enable_cloudwatch_logs_exports
        engine_lifecycle_support master_user_secret_kms_key_id network_type option_group_name preferred_backup_window
        storage_type vpc_security_group_ids;
}

takes! { CreateDBInstanceReadReplicaFluentBuilder:
    bool: auto_minor_version_upgrade copy_tags_to_snapshot dedicated_log_volume deletion_protection
        enable_iam_database_authentication enable_performance_insights multi_az publicly_accessible;
    i32: allocated_storage iops max_allocated_storage monitoring_interval performance_insights_retention_period port
        storage_throughput;
    &str: ca_certificate_identifier db_instance_class db_parameter_group_name enable_cloudwatch_logs_exports monitoring_role_arn
        network_type option_group_name performance_insights_kms_key_id storage_type vpc_security_group_ids;
    DatabaseInsightsMode: database_insights_mode;
}

//! Prometheus metrics of the requests to AWS.

use aws_sdk_rds::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_rds::error::ProvideErrorMetadata;
use aws_sdk_rds::operation::{
    add_tags_to_resource::AddTagsToResourceError, create_db_instance::CreateDBInstanceError,
    create_db_instance_read_replica::CreateDBInstanceReadReplicaError,
    delete_db_instance::DeleteDBInstanceError,
    describe_db_engine_versions::DescribeDBEngineVersionsError,
    describe_db_instance_automated_backups::DescribeDBInstanceAutomatedBackupsError,
    describe_db_instances::DescribeDBInstancesError,
    describe_db_snapshots::DescribeDBSnapshotsError,
    describe_orderable_db_instance_options::DescribeOrderableDBInstanceOptionsError,
    modify_db_instance::ModifyDBInstanceError, promote_read_replica::PromoteReadReplicaError,
    remove_tags_from_resource::RemoveTagsFromResourceError,
    restore_db_instance_from_db_snapshot::RestoreDBInstanceFromDBSnapshotError,
    restore_db_instance_to_point_in_time::RestoreDBInstanceToPointInTimeError,
};
use aws_sdk_sqs::operation::delete_message_batch::DeleteMessageBatchError;
use aws_sdk_sqs::operation::receive_message::ReceiveMessageError;
use aws_sdk_sts::operation::get_caller_identity::GetCallerIdentityError;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{
    Error, FinalizerInterceptorContextRef,
};
use aws_smithy_runtime_api::client::orchestrator::Metadata;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// Counter of the requests to AWS, by service, operation and code: the HTTP status of a success, and the error code
/// of AWS for a failure. Each attempt counts, also those that the AWS SDK repeats.
pub type AwsRequests = Family<AwsRequestLabels, Counter>;

/// Labels of [`AwsRequests`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct AwsRequestLabels {
    service: String,
    operation: String,
    code: String,
}

impl AwsRequestLabels {
    /// Creates the labels of the requests for an operation of RDS with one result.
    #[cfg(test)]
    pub(crate) fn of_rds(operation: &str, code: &str) -> Self {
        Self {
            service: "RDS".to_owned(),
            operation: operation.to_owned(),
            code: code.to_owned(),
        }
    }
}

/// Name of the metric, without the suffix of counters.
pub const AWS_REQUESTS: &str = "lockstep_aws_requests";

/// Help text of the metric.
pub const AWS_REQUESTS_HELP: &str =
    "Total number of requests to AWS by service, operation and code, including retries";

/// Operations of RDS that this operator calls.
#[cfg(test)]
pub(crate) const OPERATIONS: &[&str] = &[
    "AddTagsToResource",
    "CreateDBInstance",
    "CreateDBInstanceReadReplica",
    "DeleteDBInstance",
    "DescribeDBInstanceAutomatedBackups",
    "DescribeDBInstances",
    "DescribeDBSnapshots",
    "ModifyDBInstance",
    "PromoteReadReplica",
    "RemoveTagsFromResource",
    "RestoreDBInstanceFromDBSnapshot",
    "RestoreDBInstanceToPointInTime",
];

/// Interceptor that counts the attempts of a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountRequests(pub(crate) AwsRequests);

impl Intercept for CountRequests {
    fn name(&self) -> &'static str {
        "CountRequests"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Some(call) = config.load::<Metadata>() else {
            return Ok(());
        };
        let labels = AwsRequestLabels {
            service: call.service().to_owned(),
            operation: call.name().to_owned(),
            code: code(context),
        };
        self.0.get_or_create(&labels).inc();
        Ok(())
    }
}

/// Returns the error code of AWS if the response contains one, and otherwise the HTTP status. Without a response, the
/// code is the one that client-go uses.
fn code(context: &FinalizerInterceptorContextRef<'_>) -> String {
    let error = context.output_or_error().and_then(Result::err);
    let error = error.and_then(|error| error.as_operation_error());
    if let Some(code) = error.and_then(error_code) {
        return code.to_owned();
    }
    match context.response() {
        Some(response) => response.status().as_u16().to_string(),
        None => "<error>".to_owned(),
    }
}

/// Returns the code of an error of one of the operations that this operator calls.
fn error_code(error: &Error) -> Option<&str> {
    fn of<E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static>(
        error: &Error,
    ) -> Option<&str> {
        error.downcast_ref::<E>()?.code()
    }
    let operations = [
        of::<AddTagsToResourceError>,
        of::<CreateDBInstanceError>,
        of::<CreateDBInstanceReadReplicaError>,
        of::<DeleteDBInstanceError>,
        of::<DeleteMessageBatchError>,
        of::<DescribeDBEngineVersionsError>,
        of::<DescribeDBInstanceAutomatedBackupsError>,
        of::<DescribeDBInstancesError>,
        of::<DescribeDBSnapshotsError>,
        of::<DescribeOrderableDBInstanceOptionsError>,
        of::<GetCallerIdentityError>,
        of::<ModifyDBInstanceError>,
        of::<PromoteReadReplicaError>,
        of::<ReceiveMessageError>,
        of::<RemoveTagsFromResourceError>,
        of::<RestoreDBInstanceFromDBSnapshotError>,
        of::<RestoreDBInstanceToPointInTimeError>,
    ];
    operations.into_iter().find_map(|code| code(error))
}

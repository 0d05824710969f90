//! Calls to RDS as the operator makes them, apart from their transport: in production the AWS SDK sends them, and in the
//! exploration of all interleavings a model answers.

use std::fmt::Debug;

use async_trait::async_trait;
use aws_sdk_rds::operation as rds;
use aws_sdk_rds::types::DbInstance;

use crate::aws::call_error::CallError;
use crate::aws::rds_client::request::Request;

/// Declares calls by their names in the SDK, each with the names of its module, request and answer.
macro_rules! calls {
    ($($call:ident: $request:ident -> $answer:ident;)+) => {
        /// Service that answers calls.
        #[async_trait]
        pub(crate) trait RdsApi: Debug + Send + Sync {
            /// Sends a call that creates or modifies an instance, and returns the instance as RDS describes it in its answer.
            async fn send(&self, request: Request) -> Result<DbInstance, CallError>;

            $(async fn $call(
                &self,
                request: rds::$call::builders::$request,
            ) -> Result<rds::$call::$answer, CallError>;)+
        }

        /// RDS itself.
        #[derive(Debug)]
        pub(crate) struct Aws;

        #[async_trait]
        impl RdsApi for Aws {
            async fn send(&self, request: Request) -> Result<DbInstance, CallError> {
                request.send().await
            }

            $(async fn $call(
                &self,
                request: rds::$call::builders::$request,
            ) -> Result<rds::$call::$answer, CallError> {
                Ok(request.send().await?)
            })+
        }
    };
}

calls! {
    add_tags_to_resource: AddTagsToResourceFluentBuilder -> AddTagsToResourceOutput;
    delete_db_instance: DeleteDBInstanceFluentBuilder -> DeleteDbInstanceOutput;
    describe_db_engine_versions: DescribeDBEngineVersionsFluentBuilder -> DescribeDbEngineVersionsOutput;
    describe_db_instance_automated_backups: DescribeDBInstanceAutomatedBackupsFluentBuilder -> DescribeDbInstanceAutomatedBackupsOutput;
    describe_db_instances: DescribeDBInstancesFluentBuilder -> DescribeDbInstancesOutput;
    describe_db_snapshots: DescribeDBSnapshotsFluentBuilder -> DescribeDbSnapshotsOutput;
    describe_orderable_db_instance_options: DescribeOrderableDBInstanceOptionsFluentBuilder -> DescribeOrderableDbInstanceOptionsOutput;
    promote_read_replica: PromoteReadReplicaFluentBuilder -> PromoteReadReplicaOutput;
    remove_tags_from_resource: RemoveTagsFromResourceFluentBuilder -> RemoveTagsFromResourceOutput;
}

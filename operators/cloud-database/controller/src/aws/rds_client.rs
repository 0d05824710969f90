//! RDS client: the calls that the operator makes.

pub(crate) mod attempts;
pub(crate) mod left;
mod offers;
mod origins;
pub(crate) mod request;
mod sources;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws_config::{Region, SdkConfig};
use aws_sdk_rds::Client;
use aws_sdk_rds::types::{DbInstance, DbSnapshot, Filter};
use lockstep_cloud_database_api::{ApplyChanges, CloudDatabase};
use lockstep_controller::{Leadership, ReconcileError};
use tokio::time::Instant;

use crate::aws::account::Account;
use crate::aws::call_error::{CallError, ROLE_NOT_ASSUMED};
use crate::aws::descriptions::{Descriptions, PAGE_SIZE};
use crate::aws::location::Location;
use crate::aws::metrics::{AwsRequests, CountRequests};
use crate::aws::rate_limits::RateLimits;
use crate::aws::rds_api::{Aws, RdsApi};
use crate::aws::rds_client::request::Request;
use crate::credentials::master_user::{MasterPassword, MasterUser};
use crate::instance::modification::Modification;
use crate::instance::tags;
use crate::settings::{self, NewInstance, Password, PasswordChange, Setting};

/// Time-out of a call. RDS responds within seconds, so a later response counts as lost. It is shorter than the
/// remaining time of a lease that is renewed in time.
pub(crate) const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// Client of the RDS API.
#[derive(Clone, Debug)]
pub struct RdsClient {
    /// Builder of calls, which `api` answers.
    client: Client,
    api: Arc<dyn RdsApi>,
    account: Account,
    region: Option<String>,
    /// Distinguishes the instances of this cluster from those of other clusters in the same account.
    cluster_name: Option<String>,
    leadership: Leadership,
    limits: RateLimits,
    pub(crate) descriptions: Descriptions,
}

/// Page of the instances of a region.
pub(crate) struct Page {
    pub(crate) instances: Vec<DbInstance>,
    /// Marker of the next page. The last page has none.
    pub(crate) marker: Option<String>,
    /// Time at which the page was requested, before which its descriptions cannot have been made.
    pub(crate) requested: Instant,
}

impl RdsClient {
    /// Creates a client with the region and the credentials of a configuration. STS is called in `sts_region`, or in
    /// the same one.
    ///
    /// A call that modifies something is not sent if it might be executed after the `leadership` has ended.
    /// Every call takes a token of the bucket that `limits` have for its account and region.
    pub(crate) fn of(
        config: SdkConfig,
        sts_region: Option<Region>,
        leadership: Leadership,
        limits: RateLimits,
        cluster_name: Option<String>,
        requests: AwsRequests,
    ) -> Self {
        let count = CountRequests(requests);
        let (account, config) = Account::of(config, sts_region, count.clone());
        let counted = aws_sdk_rds::config::Builder::from(&config).interceptor(count);
        Self {
            client: Client::from_conf(counted.build()),
            api: Arc::new(Aws),
            account,
            region: config.region().map(ToString::to_string),
            cluster_name,
            leadership,
            limits,
            descriptions: Descriptions::default(),
        }
    }

    /// Returns the region and account of this process.
    pub(crate) async fn location(&self) -> Result<Location, ReconcileError> {
        let region = self.region.clone().ok_or(ReconcileError::Permanent {
            reason: "RegionUnknown",
            message:
                "the controller has no AWS region; set AWS_REGION in the ConfigMap `lockstep-aws`"
                    .to_owned(),
        })?;
        let account_id = self.account.id().await.map_err(|error| {
            let message = format!(
                "STS GetCallerIdentity failed, so the AWS account of the controller is unknown; RDS was not called: {}",
                error.message
            );
            match ReconcileError::from(error) {
                denied if denied.reason() == ROLE_NOT_ASSUMED => denied,
                _ => ReconcileError::Transient {
                    reason: "AccountUnknown",
                    message,
                },
            }
        })?;
        Ok(Location { region, account_id })
    }

    /// Takes over the account of another client.
    #[cfg(test)]
    pub(crate) fn copy_account(&mut self, other: &Self) {
        self.account = other.account.clone();
    }

    /// Knows the account without a call to STS.
    #[cfg(test)]
    pub(crate) fn know_account(&self, id: &str) {
        self.account.know(id);
    }

    /// Returns a client that remembers nothing, and whose calls are answered by a model.
    #[cfg(test)]
    pub(crate) fn answered_by(&self, api: Arc<dyn RdsApi>) -> Self {
        Self {
            api,
            descriptions: Descriptions::default(),
            ..self.clone()
        }
    }

    pub(crate) fn cluster_name(&self) -> Option<&str> {
        self.cluster_name.as_deref()
    }

    /// Waits for a token of the account, if it is known, and the region.
    async fn acquire(&self) {
        let account = self.account.known_id();
        let bucket = self.limits.of(account, self.region.clone());
        bucket.acquire().await;
    }

    /// Waits for the rate limiter. Returns an error if a call that modifies something might end after this replica's
    /// leadership.
    async fn may_write(&self) -> Result<(), CallError> {
        self.acquire().await;
        if self.leadership.outlasts(CALL_DEADLINE) {
            return Ok(());
        }
        Err(CallError::not_sent(
            "the lease may expire before the response",
        ))
    }

    /// Returns the instance with an identifier, or `None` if it does not exist.
    pub(crate) async fn describe(&self, id: &str) -> Result<Option<DbInstance>, CallError> {
        self.acquire().await;
        let call = self
            .client
            .describe_db_instances()
            .db_instance_identifier(id);
        match self.api.describe_db_instances(call).await {
            Ok(response) => Ok(response.db_instances.unwrap_or_default().into_iter().next()),
            Err(error) if error.is("DBInstanceNotFound") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the instance with a resource ID, which stays the same when its identifier is changed.
    pub(crate) async fn by_resource_id(
        &self,
        resource_id: &str,
    ) -> Result<Vec<DbInstance>, CallError> {
        self.filtered("dbi-resource-id", resource_id).await
    }

    /// Returns the instance with an identifier, by another question than [`describe`](Self::describe).
    pub(crate) async fn by_identifier(&self, id: &str) -> Result<Vec<DbInstance>, CallError> {
        self.filtered("db-instance-id", id).await
    }

    async fn filtered(&self, filter: &str, value: &str) -> Result<Vec<DbInstance>, CallError> {
        self.acquire().await;
        let filter = Filter::builder().name(filter).values(value).build();
        let call = self.client.describe_db_instances().filters(filter);
        match self.api.describe_db_instances(call).await {
            Ok(response) => Ok(response.db_instances.unwrap_or_default()),
            Err(error) if error.is("DBInstanceNotFound") => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Returns the page of all instances that a marker leads to, or the first one.
    pub(crate) async fn page(&self, marker: Option<String>) -> Result<Page, CallError> {
        self.acquire().await;
        let requested = Instant::now();
        let call = self.client.describe_db_instances();
        let call = call.max_records(PAGE_SIZE.into()).set_marker(marker);
        let page = self.api.describe_db_instances(call).await?;
        Ok(Page {
            instances: page.db_instances.unwrap_or_default(),
            marker: page.marker.filter(|marker| !marker.is_empty()),
            requested,
        })
    }

    /// Returns the snapshots of an instance, even of a deleted one.
    pub(crate) async fn snapshots(&self, id: &str) -> Result<Vec<DbSnapshot>, CallError> {
        let mut found = Vec::new();
        let mut marker = None;
        loop {
            self.acquire().await;
            let call = self.client.describe_db_snapshots();
            let call = call.db_instance_identifier(id).set_marker(marker);
            let call = call.max_records(PAGE_SIZE.into());
            let page = match self.api.describe_db_snapshots(call).await {
                Ok(page) => page,
                Err(error) if error.is("DBInstanceNotFound") => return Ok(found),
                Err(error) => return Err(error),
            };
            found.extend(page.db_snapshots.unwrap_or_default());
            marker = page.marker;
            if marker.is_none() {
                return Ok(found);
            }
        }
    }

    /// Returns the snapshot with a name, if it exists.
    pub(crate) async fn snapshot(&self, name: &str) -> Result<Option<DbSnapshot>, CallError> {
        self.acquire().await;
        let call = self.client.describe_db_snapshots();
        let call = call.db_snapshot_identifier(name);
        match self.api.describe_db_snapshots(call).await {
            Ok(page) => Ok(page.db_snapshots.unwrap_or_default().into_iter().next()),
            Err(error) if error.is("DBSnapshotNotFound") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Requests a new instance, owned by the object.
    pub(crate) async fn create(
        &self,
        id: &str,
        object: &CloudDatabase,
        user: &MasterUser,
    ) -> Result<DbInstance, CallError> {
        self.may_write().await?;
        let _write = self.descriptions.write(id);
        let spec = &object.spec;
        let password = match &user.password {
            MasterPassword::Known(known) => PasswordChange::Set(known.text.clone()),
            MasterPassword::Managed { kms_key } => PasswordChange::Manage {
                kms_key: kms_key.clone(),
            },
            // It would be lost if this process ended now.
            MasterPassword::NotStored => {
                return Err(CallError::not_sent("the password is not stored"));
            }
        };
        let network = &spec.network;
        let request = self
            .client
            .create_db_instance()
            .db_instance_identifier(id)
            .engine(spec.engine.as_str())
            .set_availability_zone(network.availability_zone.clone())
            .set_db_name(spec.database_name.clone())
            .master_username(&user.name)
            .set_db_subnet_group_name(network.subnet_group.clone())
            // Without this, RDS creates an instance that is not encrypted.
            .storage_encrypted(spec.encryption.enabled)
            .set_kms_key_id(spec.encryption.kms_key.clone())
            .set_tags(Some(tags::at_creation(object, self.cluster_name())));
        let request = Request::Create(request);
        let request = settings::put_at_creation(spec, NewInstance::Empty, request);
        self.api.send(Password::put(&password, request)).await
    }

    /// Requests a modification of an instance, to be applied immediately or in its maintenance window.
    pub(crate) async fn modify(
        &self,
        id: &str,
        change: &Modification,
        when: ApplyChanges,
    ) -> Result<DbInstance, CallError> {
        self.may_write().await?;
        let _write = self.descriptions.write(id);
        let request = self
            .client
            .modify_db_instance()
            .db_instance_identifier(id)
            .apply_immediately(when == ApplyChanges::Immediately);
        self.api.send(change.put(Request::Modify(request))).await
    }

    /// Removes tags from an instance.
    pub(crate) async fn untag(&self, arn: &str, keys: Vec<String>) -> Result<(), CallError> {
        self.may_write().await?;
        let _write = self.descriptions.write(name_of(arn));
        let call = self.client.remove_tags_from_resource();
        let call = call.resource_name(arn).set_tag_keys(Some(keys));
        self.api.remove_tags_from_resource(call).await?;
        Ok(())
    }

    /// Adds tags to an instance or a snapshot, or changes their values.
    pub(crate) async fn tag(
        &self,
        arn: &str,
        tags: &BTreeMap<String, String>,
    ) -> Result<(), CallError> {
        self.may_write().await?;
        let _write = self.descriptions.write(name_of(arn));
        let tags = tags.iter();
        let tags = tags.map(|(key, value)| tags::tag(key, value)).collect();
        let call = self.client.add_tags_to_resource();
        let call = call.resource_name(arn).set_tags(Some(tags));
        self.api.add_tags_to_resource(call).await?;
        Ok(())
    }

    /// Requests the deletion of an instance, with a final snapshot if its identifier is given. RDS deletes its automated
    /// backups unless they are to be retained.
    pub(crate) async fn delete(
        &self,
        id: &str,
        final_snapshot: Option<String>,
        retain_backups: Option<bool>,
    ) -> Result<(), CallError> {
        self.may_write().await?;
        let _write = self.descriptions.write(id);
        let call = self
            .client
            .delete_db_instance()
            .db_instance_identifier(id)
            .skip_final_snapshot(final_snapshot.is_none())
            .set_final_db_snapshot_identifier(final_snapshot)
            .set_delete_automated_backups(retain_backups.map(|retain| !retain));
        self.api.delete_db_instance(call).await?;
        Ok(())
    }
}

/// Returns the identifier at the end of an ARN.
fn name_of(arn: &str) -> &str {
    arn.rsplit(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests;

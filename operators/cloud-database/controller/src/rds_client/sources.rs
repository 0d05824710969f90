//! Tags of the sources of data, and of what they were made from.

use aws_sdk_rds::types::{DbInstance, DbSnapshot, Tag};
use lockstep_cloud_database_api::PointInTime;

use crate::call_error::CallError;
use crate::rds_client::RdsClient;
use crate::tags;

impl RdsClient {
    /// Returns the tags of a snapshot. RDS does not always copy those of the instance, for example not for a snapshot that is made
    /// with other tags: without an owner among them, those of the instance count, or of its other snapshots. A snapshot that
    /// another account shares has none.
    pub(crate) async fn tags_of_snapshot(&self, snapshot: &str) -> Result<Vec<Tag>, CallError> {
        if let Some(account) = snapshot
            .strip_prefix("arn:")
            .and_then(|arn| arn.split(':').nth(3))
            && self.account.known_id().as_deref() != Some(account)
        {
            return Ok(Vec::new());
        }
        self.acquire().await;
        let call = self.client.describe_db_snapshots();
        let page = call.db_snapshot_identifier(snapshot).send().await?;
        let Some(snapshot) = page.db_snapshots.unwrap_or_default().into_iter().next() else {
            return Err(CallError::without_response(
                "RDS does not list the snapshot",
            ));
        };
        let tags = snapshot.tag_list.clone().unwrap_or_default();
        if self.has_owner(&tags) {
            return Ok(tags);
        }
        let Some(resource_id) = &snapshot.dbi_resource_id else {
            return Ok(tags);
        };
        self.tags_of_resource(resource_id).await
    }

    /// Returns the tags of an instance by its resource ID. Those of a deleted one are taken from its newest snapshot that names an
    /// object of this cluster.
    async fn tags_of_resource(&self, resource_id: &str) -> Result<Vec<Tag>, CallError> {
        if let Some(tags) = tags_of(self.by_resource_id(resource_id).await?) {
            return Ok(tags);
        }
        let mut newest: Option<DbSnapshot> = None;
        let mut marker = None;
        loop {
            self.acquire().await;
            let call = self.client.describe_db_snapshots();
            let call = call.dbi_resource_id(resource_id).set_marker(marker);
            let page = call.send().await?;
            let snapshots = page.db_snapshots.unwrap_or_default().into_iter();
            let snapshots = snapshots.filter(|it| self.has_owner(it.tag_list()));
            let all = newest.into_iter().chain(snapshots);
            newest = all.max_by_key(|it| it.snapshot_create_time);
            marker = page.marker;
            if marker.is_none() {
                break;
            }
        }
        Ok(newest.and_then(|it| it.tag_list).unwrap_or_default())
    }

    /// Returns the tags of the instance whose earlier state is restored. Those of a deleted one are taken from its automated
    /// snapshots.
    pub(crate) async fn tags_of_point_in_time(
        &self,
        source: &PointInTime,
    ) -> Result<Vec<Tag>, CallError> {
        let Some(resource_id) = &source.source_resource_id else {
            return self
                .tags_of_instance(source.source_instance.as_deref().unwrap_or_default())
                .await;
        };
        self.tags_of_resource(resource_id).await
    }

    /// Returns true if tags name an object of this cluster.
    fn has_owner(&self, tags: &[Tag]) -> bool {
        tags::owner_of(tags, self.cluster_name()).is_some()
    }

    /// Returns the tags of an instance.
    ///
    /// # Errors
    ///
    /// The instance does not exist, or the error of the call.
    pub(crate) async fn tags_of_instance(&self, id: &str) -> Result<Vec<Tag>, CallError> {
        self.acquire().await;
        let call = self.client.describe_db_instances();
        let response = call.db_instance_identifier(id).send().await?;
        Ok(tags_of(response.db_instances.unwrap_or_default()).unwrap_or_default())
    }
}

fn tags_of(instances: Vec<DbInstance>) -> Option<Vec<Tag>> {
    let instance = instances.into_iter().next()?;
    Some(instance.tag_list.unwrap_or_default())
}

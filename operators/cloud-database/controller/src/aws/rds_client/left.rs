//! Lists of what the instances of objects have left in a region.

use aws_sdk_rds::types::{DbInstance, DbInstanceAutomatedBackup, DbSnapshot, Filter, Tag};

use crate::aws::call_error::CallError;
use crate::aws::descriptions::PAGE_SIZE;
use crate::aws::rds_client::RdsClient;
use crate::instance::identity;
use crate::instance::tags;

/// Instance of an object, or data that one has left.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    /// Description for users.
    pub(crate) what: String,
    /// Identifier of the instance.
    pub(crate) instance: String,
    /// Resource ID of the instance.
    pub(crate) resource_id: String,
    /// Tags that name the object.
    pub(crate) tags: Vec<Tag>,
}

impl Left {
    /// Returns true if the tags or the identifier name an object. Only these are kept of a region.
    fn is_of_object(&self) -> bool {
        !self.tags.is_empty() || identity::uid_of(&self.instance).is_some()
    }
}

impl From<DbInstance> for Left {
    fn from(instance: DbInstance) -> Self {
        let id = instance.db_instance_identifier.unwrap_or_default();
        Self {
            what: format!("the RDS instance '{id}'"),
            instance: id,
            resource_id: instance.dbi_resource_id.unwrap_or_default(),
            tags: tags::naming_an_object(instance.tag_list),
        }
    }
}

impl From<DbSnapshot> for Left {
    fn from(snapshot: DbSnapshot) -> Self {
        let id = snapshot.db_snapshot_identifier.unwrap_or_default();
        Self {
            what: format!("the snapshot '{id}'"),
            instance: snapshot.db_instance_identifier.unwrap_or_default(),
            resource_id: snapshot.dbi_resource_id.unwrap_or_default(),
            tags: tags::naming_an_object(snapshot.tag_list),
        }
    }
}

impl From<DbInstanceAutomatedBackup> for Left {
    fn from(backup: DbInstanceAutomatedBackup) -> Self {
        let resource_id = backup.dbi_resource_id.unwrap_or_default();
        Self {
            what: format!("the retained automated backups of '{resource_id}'"),
            instance: backup.db_instance_identifier.unwrap_or_default(),
            resource_id,
            tags: tags::naming_an_object(backup.tag_list),
        }
    }
}

impl RdsClient {
    /// Returns the instances that name an object in their tags, except those that RDS is deleting. RDS has no filter for tags,
    /// so all instances of the region are listed.
    pub(crate) async fn instances_of_objects(&self) -> Result<Vec<Left>, CallError> {
        let mut found = Vec::new();
        let mut marker = None;
        loop {
            let page = self.page(marker).await?;
            let instances = page.instances.into_iter();
            let instances =
                instances.filter(|instance| instance.db_instance_status() != Some("deleting"));
            let left = instances.map(Left::from);
            found.extend(left.filter(|left| !left.tags.is_empty()));
            marker = page.marker;
            if marker.is_none() {
                return Ok(found);
            }
        }
    }

    /// Returns the snapshots of the instances of objects, except those that RDS deletes with an instance.
    pub(crate) async fn snapshots_of_objects(&self) -> Result<Vec<Left>, CallError> {
        let mut found = Vec::new();
        let mut marker = None;
        loop {
            self.acquire().await;
            let call = self.client.describe_db_snapshots().set_marker(marker);
            let call = call.max_records(PAGE_SIZE.into());
            let page = self.api.describe_db_snapshots(call).await?;
            let snapshots = page.db_snapshots.unwrap_or_default().into_iter();
            let kept = snapshots.filter(|snapshot| snapshot.snapshot_type() != Some("automated"));
            found.extend(kept.map(Left::from).filter(Left::is_of_object));
            marker = page.marker.filter(|marker| !marker.is_empty());
            if marker.is_none() {
                return Ok(found);
            }
        }
    }

    /// Returns the automated backups of the deleted instances of objects.
    pub(crate) async fn backups_of_objects(&self) -> Result<Vec<Left>, CallError> {
        let found = self.backups("status", "retained").await?;
        Ok(found.into_iter().filter(Left::is_of_object).collect())
    }

    /// Returns the snapshots of the instance with an identifier, by another question than the list of a region.
    pub(crate) async fn snapshots_left_by(&self, id: &str) -> Result<Vec<Left>, CallError> {
        let snapshots = self.snapshots(id).await?.into_iter();
        Ok(snapshots.map(Left::from).collect())
    }

    /// Returns the automated backups of the instance with an identifier, by another question than the list of a region.
    pub(crate) async fn backups_left_by(&self, id: &str) -> Result<Vec<Left>, CallError> {
        self.backups("db-instance-id", id).await
    }

    async fn backups(&self, filter: &str, value: &str) -> Result<Vec<Left>, CallError> {
        let filter = Filter::builder().name(filter).values(value).build();
        let mut found = Vec::new();
        let mut marker = None;
        loop {
            self.acquire().await;
            let call = self.client.describe_db_instance_automated_backups();
            let call = call.filters(filter.clone()).set_marker(marker);
            let call = call.max_records(PAGE_SIZE.into());
            let page = self
                .api
                .describe_db_instance_automated_backups(call)
                .await?;
            let backups = page.db_instance_automated_backups.unwrap_or_default();
            found.extend(backups.into_iter().map(Left::from));
            marker = page.marker.filter(|marker| !marker.is_empty());
            if marker.is_none() {
                return Ok(found);
            }
        }
    }
}

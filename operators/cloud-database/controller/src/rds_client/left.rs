//! Lists of what earlier objects have left in a region.

use aws_sdk_rds::types::{Filter, Tag};

use crate::call_error::CallError;
use crate::descriptions::PAGE_SIZE;
use crate::rds_client::RdsClient;
use crate::tags;

/// Instance that has the tag of an object, or what is left of one.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    /// Description for users.
    pub(crate) what: String,
    /// Identifier of the instance.
    pub(crate) instance: String,
    /// Resource ID of the instance.
    pub(crate) resource_id: String,
    pub(crate) tags: Vec<Tag>,
}

impl RdsClient {
    /// Returns the instances that name an object in their tags, except those that RDS is deleting. RDS has no filter for tags,
    /// so all instances of the region are listed.
    pub(crate) async fn instances_of_objects(&self) -> Result<Vec<Left>, CallError> {
        let mut found = Vec::new();
        let mut marker = None;
        loop {
            let page = self.page(marker).await?;
            let instances = page.instances.into_iter().filter(|instance| {
                instance.db_instance_status() != Some("deleting")
                    && tags::owner_of(instance.tag_list()).is_some()
            });
            found.extend(instances.map(|instance| {
                let id = instance.db_instance_identifier.unwrap_or_default();
                Left {
                    what: format!("the RDS instance '{id}'"),
                    instance: id,
                    resource_id: instance.dbi_resource_id.unwrap_or_default(),
                    tags: instance.tag_list.unwrap_or_default(),
                }
            }));
            marker = page.marker;
            if marker.is_none() {
                return Ok(found);
            }
        }
    }

    /// Returns the snapshots of all instances, except those that RDS deletes with them.
    pub(crate) async fn all_snapshots(&self) -> Result<Vec<Left>, CallError> {
        let mut found = Vec::new();
        let mut marker = None;
        loop {
            self.acquire().await;
            let call = self.client.describe_db_snapshots().set_marker(marker);
            let page = call.max_records(PAGE_SIZE.into()).send().await?;
            let snapshots = page.db_snapshots.unwrap_or_default().into_iter();
            let kept = snapshots.filter(|snapshot| snapshot.snapshot_type() != Some("automated"));
            found.extend(kept.map(|snapshot| Left {
                what: format!(
                    "the snapshot '{}'",
                    snapshot.db_snapshot_identifier.unwrap_or_default()
                ),
                instance: snapshot.db_instance_identifier.unwrap_or_default(),
                resource_id: snapshot.dbi_resource_id.unwrap_or_default(),
                tags: snapshot.tag_list.unwrap_or_default(),
            }));
            marker = page.marker.filter(|marker| !marker.is_empty());
            if marker.is_none() {
                return Ok(found);
            }
        }
    }

    /// Returns the automated backups of all deleted instances.
    pub(crate) async fn retained_backups(&self) -> Result<Vec<Left>, CallError> {
        let mut found = Vec::new();
        let mut marker = None;
        loop {
            self.acquire().await;
            let retained = Filter::builder().name("status").values("retained").build();
            let call = self.client.describe_db_instance_automated_backups();
            let call = call.filters(retained).set_marker(marker);
            let page = call.max_records(PAGE_SIZE.into()).send().await?;
            let backups = page.db_instance_automated_backups.unwrap_or_default();
            found.extend(backups.into_iter().map(|backup| {
                let resource_id = backup.dbi_resource_id.unwrap_or_default();
                Left {
                    what: format!("the retained automated backups of '{resource_id}'"),
                    instance: backup.db_instance_identifier.unwrap_or_default(),
                    resource_id,
                    tags: backup.tag_list.unwrap_or_default(),
                }
            }));
            marker = page.marker.filter(|marker| !marker.is_empty());
            if marker.is_none() {
                return Ok(found);
            }
        }
    }
}

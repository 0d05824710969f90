//! Sources of data: their tags, or those of what they were made from, and what keeps RDS from using them.

use aws_sdk_rds::types::{DbInstance, DbInstanceAutomatedBackup, DbSnapshot, Tag};
use lockstep_cloud_database_api::PointInTime;

use crate::aws::call_error::CallError;
use crate::aws::rds_client::RdsClient;
use crate::deletion::final_snapshot;
use crate::instance::identity;
use crate::instance::tags::{self, OWNER_TAG};
use crate::quota::usage::Usage;

/// Source of data.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// None of a snapshot that another account shares.
    pub(crate) arn: Option<String>,
    pub(crate) tags: Vec<Tag>,
    /// Reason why RDS does not use it, which does not pass by itself. RDS has the same error code for those that pass.
    pub(crate) problem: Option<String>,
    /// If false, an instance that is made from it is not encrypted, and never will be. None if it is not known, as of a
    /// snapshot that another account shares.
    pub(crate) is_encrypted: Option<bool>,
    /// Part of a quota that an instance takes with its storage.
    pub(crate) usage: Usage,
}

fn usage_of(instance: &DbInstance) -> Usage {
    let size = instance.allocated_storage();
    Usage::of_storage(size, instance.storage_type(), instance.iops())
}

impl Source {
    /// Returns an instance as a source of an earlier state.
    fn of_earlier_state(instance: DbInstance) -> Self {
        Self {
            is_encrypted: instance.storage_encrypted(),
            usage: usage_of(&instance),
            arn: instance.db_instance_arn,
            tags: instance.tag_list.unwrap_or_default(),
            problem: None,
        }
    }
}

impl RdsClient {
    /// Returns a snapshot as a source. RDS does not always copy the tags of the instance, for example not for a snapshot that is
    /// made with other tags: without an owner among them, those of the instance count, or of its other snapshots. A snapshot
    /// that another account shares has none.
    pub(crate) async fn source_snapshot(&self, snapshot: &str) -> Result<Source, CallError> {
        if let Some(account) = snapshot
            .strip_prefix("arn:")
            .and_then(|arn| arn.split(':').nth(3))
            && self.account.known_id().as_deref() != Some(account)
        {
            return Ok(Source::default());
        }
        self.acquire().await;
        let call = self.client.describe_db_snapshots();
        let call = call.db_snapshot_identifier(snapshot);
        let page = self.api.describe_db_snapshots(call).await?;
        let Some(snapshot) = page.db_snapshots.unwrap_or_default().into_iter().next() else {
            return Err(CallError::without_response(
                "RDS does not list the snapshot",
            ));
        };
        let mut source = Source {
            arn: snapshot.db_snapshot_arn.clone(),
            tags: snapshot.tag_list.clone().unwrap_or_default(),
            problem: problem_of_snapshot(&snapshot),
            is_encrypted: snapshot.encrypted(),
            usage: Usage::of_storage(
                snapshot.allocated_storage(),
                snapshot.storage_type(),
                snapshot.iops(),
            ),
        };
        if has_owner(&source.tags) {
            return Ok(source);
        }
        if let Some(resource_id) = &snapshot.dbi_resource_id {
            source.tags = self.tags_of_resource(resource_id).await?;
        }
        // A final snapshot may get its tags only after the instance is deleted.
        let name = snapshot.db_snapshot_identifier().unwrap_or_default();
        if !has_owner(&source.tags)
            && let Some(uid) = final_snapshot::uid_of_object(name)
        {
            source.tags.push(tags::tag(OWNER_TAG, uid));
        }
        Ok(source)
    }

    /// Returns the tags of an instance by its resource ID. Those of a deleted one are taken from its newest snapshot that names an
    /// object.
    async fn tags_of_resource(&self, resource_id: &str) -> Result<Vec<Tag>, CallError> {
        if let Some(tags) = tags_of(self.by_resource_id(resource_id).await?) {
            return Ok(tags);
        }
        self.tags_of_snapshots(resource_id).await
    }

    /// Returns the tags of the newest snapshot of an instance that names an object.
    async fn tags_of_snapshots(&self, resource_id: &str) -> Result<Vec<Tag>, CallError> {
        let mut newest: Option<DbSnapshot> = None;
        let mut marker = None;
        loop {
            self.acquire().await;
            let call = self.client.describe_db_snapshots();
            let call = call.dbi_resource_id(resource_id).set_marker(marker);
            let page = self.api.describe_db_snapshots(call).await?;
            let snapshots = page.db_snapshots.unwrap_or_default().into_iter();
            let snapshots = snapshots.filter(|it| has_owner(it.tag_list()));
            let all = newest.into_iter().chain(snapshots);
            newest = all.max_by_key(|it| it.snapshot_create_time);
            marker = page.marker;
            if marker.is_none() {
                break;
            }
        }
        Ok(newest.and_then(|it| it.tag_list).unwrap_or_default())
    }

    /// Returns the automated backups of a deleted instance.
    ///
    /// # Errors
    ///
    /// No automated backups are retained, or the error of the call.
    async fn automated_backups(
        &self,
        resource_id: &str,
    ) -> Result<Vec<DbInstanceAutomatedBackup>, CallError> {
        self.acquire().await;
        let call = self.client.describe_db_instance_automated_backups();
        let call = call.dbi_resource_id(resource_id);
        let page = self
            .api
            .describe_db_instance_automated_backups(call)
            .await?;
        let backups = page.db_instance_automated_backups.unwrap_or_default();
        if backups.is_empty() {
            return Err(CallError::without_response(
                "RDS does not list the automated backups",
            ));
        }
        Ok(backups)
    }

    /// Returns the instance whose earlier state is restored as a source. The tags of a deleted one are taken from its snapshots,
    /// or else from its automated backups. These alone say whether it was encrypted: a snapshot may be an encrypted copy.
    pub(crate) async fn source_point_in_time(
        &self,
        source: &PointInTime,
    ) -> Result<Source, CallError> {
        if let Some(resource_id) = &source.source_resource_id {
            let found = self.by_resource_id(resource_id).await?;
            if let Some(instance) = found.into_iter().next() {
                return Ok(Source::of_earlier_state(instance));
            }
            let mut tags = self.tags_of_snapshots(resource_id).await?;
            let backups = self.automated_backups(resource_id).await?;
            let is_encrypted = backups
                .iter()
                .find_map(DbInstanceAutomatedBackup::encrypted);
            let usages = backups.iter().map(|backup| {
                Usage::of_storage(
                    backup.allocated_storage(),
                    backup.storage_type(),
                    backup.iops(),
                )
            });
            let usage = usages.fold(Usage::default(), Usage::max);
            let mut arns = backups.iter().filter_map(|backup| backup.db_instance_arn());
            let arn = arns.next().map(String::from);
            if !has_owner(&tags) {
                tags = tags_of_backups(backups);
            }
            return Ok(Source {
                arn,
                tags,
                problem: None,
                is_encrypted,
                usage,
            });
        }
        let id = source.source_instance.as_deref().unwrap_or_default();
        Ok(Source::of_earlier_state(self.existing(id).await?))
    }

    /// Returns an instance that is to be replicated as a source.
    ///
    /// # Errors
    ///
    /// The instance does not exist, or the error of the call.
    pub(crate) async fn source_instance(&self, id: &str) -> Result<Source, CallError> {
        let instance = self.existing(id).await?;
        let problem = problem_of_instance(id, &instance);
        Ok(Source {
            is_encrypted: instance.storage_encrypted(),
            usage: usage_of(&instance),
            arn: instance.db_instance_arn,
            tags: instance.tag_list.unwrap_or_default(),
            problem,
        })
    }

    /// Returns an instance.
    ///
    /// # Errors
    ///
    /// RDS does not list it: an empty list says nothing about its tags and its encryption. Or the error of the call.
    async fn existing(&self, id: &str) -> Result<DbInstance, CallError> {
        self.acquire().await;
        let call = self.client.describe_db_instances();
        let call = call.db_instance_identifier(id);
        let response = self.api.describe_db_instances(call).await?;
        let found = response.db_instances.unwrap_or_default().into_iter().next();
        found.ok_or_else(|| CallError::without_response("RDS does not list the instance"))
    }
}

/// Returns what keeps RDS from replicating an instance until its settings are changed.
fn problem_of_instance(id: &str, instance: &DbInstance) -> Option<String> {
    // One that is being created may get backups.
    let is_available = instance.db_instance_status() == Some("available");
    if is_available && instance.backup_retention_period() == Some(0) {
        return Some(format!(
            "the RDS instance '{id}' has no automated backups, without which RDS replicates no instance; set their retention (`spec.backup.retentionDays`) to at least one day"
        ));
    }
    // No engine of CloudDatabase is an exception:
    // https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/rds-secrets-manager.html#rds-secrets-manager-limitations
    instance.master_user_secret().map(|_| {
        format!(
            "RDS manages the password of the RDS instance '{id}' in Secrets Manager, and replicates no such instance; let it have a password of its own (`spec.credentials.secretName` or `spec.credentials.generate` in place of `spec.credentials.managed`)"
        )
    })
}

/// Returns the problem of a snapshot whose status does not pass.
fn problem_of_snapshot(snapshot: &DbSnapshot) -> Option<String> {
    let status = snapshot.status().unwrap_or_default();
    let name = snapshot.db_snapshot_identifier().unwrap_or_default();
    let is_final = status == "failed" || status.starts_with("incompatible-");
    is_final.then(|| {
        format!(
            "the snapshot '{name}' has the status '{status}', in which RDS restores nothing; create the object with another one"
        )
    })
}

/// Returns the tags of automated backups of a deleted instance. They have only tags of their own: without an owner
/// among them, the object counts whose UID is in the identifier of the instance.
fn tags_of_backups(backups: Vec<DbInstanceAutomatedBackup>) -> Vec<Tag> {
    for backup in backups {
        let id = backup.db_instance_identifier.unwrap_or_default();
        let mut tags = backup.tag_list.unwrap_or_default();
        if !has_owner(&tags)
            && let Some(uid) = identity::uid_of(&id)
        {
            tags.push(tags::tag(OWNER_TAG, uid));
        }
        if has_owner(&tags) {
            return tags;
        }
    }
    Vec::new()
}

/// Returns true if tags name an object.
fn has_owner(tags: &[Tag]) -> bool {
    tags::owner_of(tags).is_some()
}

fn tags_of(instances: Vec<DbInstance>) -> Option<Vec<Tag>> {
    let instance = instances.into_iter().next()?;
    Some(instance.tag_list.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use aws_sdk_rds::types::MasterUserSecret;

    use super::*;

    #[test]
    fn an_instance_is_replicated_if_it_has_backups_and_a_password_of_its_own() {
        let instance = |status: &str, days: i32| {
            let builder = DbInstance::builder().backup_retention_period(days);
            builder.db_instance_status(status)
        };
        let problem = |instance: DbInstance| problem_of_instance("orders", &instance);
        assert_eq!(problem(instance("available", 7).build()), None);
        assert_eq!(problem(instance("creating", 0).build()), None);
        let without_backups = problem(instance("available", 0).build());
        assert!(without_backups.is_some_and(|it| it.contains("retentionDays")));
        let secret = MasterUserSecret::builder().build();
        let managed = instance("creating", 7).master_user_secret(secret).build();
        assert!(problem(managed).is_some_and(|it| it.contains("credentials.managed")));
    }
}

//! Spec of a CloudDatabase: the desired state.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::connection_secret::ConnectionSecret;
use crate::credentials::Credentials;
use crate::engine::{Engine, EngineLifecycleSupport};
use crate::monitoring::Monitoring;
use crate::network::Network;
use crate::origin::{Adopt, ManagementPolicy, ReplicaOf, RestoreFrom};
use crate::status::CloudDatabaseStatus;

/// A managed relational database: an AWS RDS instance.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "database.example.com",
    version = "v1alpha1",
    kind = "CloudDatabase",
    plural = "clouddatabases",
    shortname = "cdb",
    category = "all",
    namespaced,
    status = "CloudDatabaseStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Engine","type":"string","jsonPath":".spec.engine"}"#,
    printcolumn = r#"{"name":"Class","type":"string","jsonPath":".spec.instanceClass"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Synced","type":"string","jsonPath":".status.conditions[?(@.type=='Synced')].status"}"#,
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".status.engineVersion","priority":1}"#,
    printcolumn = r#"{"name":"Size","type":"integer","jsonPath":".status.allocatedStorageGib","priority":1}"#,
    printcolumn = r#"{"name":"Ready Reason","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason","priority":1}"#,
    printcolumn = r#"{"name":"Synced Reason","type":"string","jsonPath":".status.conditions[?(@.type=='Synced')].reason","priority":1}"#,
    printcolumn = r#"{"name":"Endpoint","type":"string","jsonPath":".status.endpoint.host"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.databaseName) == has(oldSelf.databaseName) && (!has(self.databaseName) || self.databaseName == oldSelf.databaseName)")
        .message("is immutable: RDS sets it at creation only; restore the old value [database-name-immutable]")
        .field_path(".databaseName"),
    validation = Rule::new("[has(self.adopt), has(self.restoreFrom), has(self.replicaOf)].filter(it, it).size() <= 1")
        .message("must have at most one of `adopt`, `restoreFrom` and `replicaOf` [one-origin]"),
    validation = Rule::new("(has(self.adopt) && has(self.adopt.identifier) ? self.adopt.identifier : '') == (has(oldSelf.adopt) && has(oldSelf.adopt.identifier) ? oldSelf.adopt.identifier : '')")
        .message("is immutable: an object adopts an instance at its creation only; restore the old value, or create another CloudDatabase [adopt-immutable]")
        .field_path(".adopt"),
    validation = Rule::new("(has(self.restoreFrom) && has(self.restoreFrom.snapshot) ? self.restoreFrom.snapshot : '') == (has(oldSelf.restoreFrom) && has(oldSelf.restoreFrom.snapshot) ? oldSelf.restoreFrom.snapshot : '') && (has(self.restoreFrom) && has(self.restoreFrom.pointInTime) && has(self.restoreFrom.pointInTime.sourceInstance) ? self.restoreFrom.pointInTime.sourceInstance : '') == (has(oldSelf.restoreFrom) && has(oldSelf.restoreFrom.pointInTime) && has(oldSelf.restoreFrom.pointInTime.sourceInstance) ? oldSelf.restoreFrom.pointInTime.sourceInstance : '') && (has(self.restoreFrom) && has(self.restoreFrom.pointInTime) && has(self.restoreFrom.pointInTime.sourceResourceId) ? self.restoreFrom.pointInTime.sourceResourceId : '') == (has(oldSelf.restoreFrom) && has(oldSelf.restoreFrom.pointInTime) && has(oldSelf.restoreFrom.pointInTime.sourceResourceId) ? oldSelf.restoreFrom.pointInTime.sourceResourceId : '') && (has(self.restoreFrom) && has(self.restoreFrom.pointInTime) && has(self.restoreFrom.pointInTime.time) ? self.restoreFrom.pointInTime.time : timestamp(0)) == (has(oldSelf.restoreFrom) && has(oldSelf.restoreFrom.pointInTime) && has(oldSelf.restoreFrom.pointInTime.time) ? oldSelf.restoreFrom.pointInTime.time : timestamp(0)) && (has(self.restoreFrom) && has(self.restoreFrom.pointInTime) && has(self.restoreFrom.pointInTime.latest) ? self.restoreFrom.pointInTime.latest : false) == (has(oldSelf.restoreFrom) && has(oldSelf.restoreFrom.pointInTime) && has(oldSelf.restoreFrom.pointInTime.latest) ? oldSelf.restoreFrom.pointInTime.latest : false)")
        .message("is immutable: an instance is restored at its creation only; restore the old value, or create another CloudDatabase [restore-from-immutable]")
        .field_path(".restoreFrom"),
    validation = Rule::new("!has(self.replicaOf) || ((has(self.replicaOf) && has(self.replicaOf.identifier) ? self.replicaOf.identifier : '') == (has(oldSelf.replicaOf) && has(oldSelf.replicaOf.identifier) ? oldSelf.replicaOf.identifier : '') && (has(self.replicaOf) && has(self.replicaOf.name) ? self.replicaOf.name : '') == (has(oldSelf.replicaOf) && has(oldSelf.replicaOf.name) ? oldSelf.replicaOf.name : ''))")
        .message("can only be removed, which promotes the replica; restore the old value, or create another CloudDatabase [replica-of-immutable]")
        .field_path(".replicaOf"),
    validation = Rule::new("!has(self.replicaOf) || !has(self.databaseName)")
        .message("must not be set for a replica: it has the databases of its source [replica-database-name]")
        .reason(Reason::FieldValueForbidden)
        .field_path(".databaseName"),
    validation = Rule::new("!has(self.replicaOf) || !has(self.encryption) || !has(self.encryption.kmsKey)")
        .message("must not be set for a replica: it has the key of its source [replica-kms-key]")
        .reason(Reason::FieldValueForbidden)
        .field_path(".encryption.kmsKey"),
    validation = Rule::new("!has(self.replicaOf) || self.deletionPolicy != 'Snapshot'")
        .message("must be Retain or Delete for a replica: RDS takes no final snapshot of it [replica-final-snapshot]")
        .field_path(".deletionPolicy"),
    validation = Rule::new("!has(self.network.availabilityZone) || !has(self.multiAz) || !self.multiAz")
        .message("may not be set if `multiAz` is true: RDS chooses the zones of a Multi-AZ instance [availability-zone-multi-az]")
        .reason(Reason::FieldValueForbidden)
        .field_path(".network.availabilityZone"),
    validation = Rule::new("!has(self.dedicatedLogVolume) || !self.dedicatedLogVolume || self.storage.type.startsWith('io')")
        .message("may be true only if `storage.type` is io1 or io2 [dedicated-log-volume-storage]")
        .field_path(".dedicatedLogVolume")
)]
pub struct CloudDatabaseSpec {
    /// Database engine.
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("is immutable: create a new CloudDatabase and migrate the data [engine-immutable]"))]
    pub engine: Engine,

    /// Engine version: a major version such as `17`, or an exact one such as `16.4`. RDS chooses the
    /// components that are not set. Defaults to a current major version of the engine for a new, empty instance; any
    /// other one keeps its version if this is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 32),
        regex(pattern = r"^[0-9]+([.-][0-9A-Za-z]+)*$")
    )]
    pub engine_version: Option<String>,

    /// Major version, such as `17`, to which the instance may be upgraded. Without it, or with another one, an upgrade to
    /// another major version is not requested: it cannot be undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[0-9]+(\.[0-9]+)?$"))]
    pub allow_major_version_upgrade: Option<String>,

    /// If true, RDS upgrades minor versions automatically, in the maintenance window. If not set, it does so unless
    /// `engineVersion` is an exact version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_minor_version_upgrade: Option<bool>,

    /// Enrolment in RDS Extended Support, for PostgreSQL and MySQL. If not set, RDS enrols a new instance, and later
    /// changes made in RDS are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_lifecycle_support: Option<EngineLifecycleSupport>,

    /// DB parameter group, of the family of the engine version. If not set, RDS assigns the default group, and later
    /// changes made in RDS are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 255),
        regex(pattern = r"^([A-Za-z](-?[A-Za-z0-9])*|default\.[a-z0-9.-]+)$")
    )]
    pub parameter_group: Option<String>,

    /// Option group, of the engine and its major version. If not set, RDS assigns the default group, and later changes
    /// made in RDS are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 255),
        regex(pattern = r"^([A-Za-z](-?[A-Za-z0-9])*|default:[a-z0-9-]+)$")
    )]
    pub option_group: Option<String>,

    /// Instance class, such as `db.t4g.micro`.
    #[schemars(
        length(min = 1, max = 32),
        regex(pattern = r"^db\.[a-z0-9]+\.[a-z0-9]+$")
    )]
    pub instance_class: String,

    /// Storage of the instance.
    pub storage: Storage,

    /// If true, the transaction logs have a volume of their own, for io1 and io2. If not set, the instance is created
    /// without one, and later changes made in RDS are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedicated_log_volume: Option<bool>,

    /// Name of the database that is created with the instance. If not set, only the engine's own database exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z][A-Za-z0-9_]*$"))]
    pub database_name: Option<String>,

    /// Credentials of the master user.
    pub credentials: Credentials,

    /// Secret that the controller creates for applications, with everything that they need to connect. If not set, there is
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_secret: Option<ConnectionSecret>,

    /// If true, users can log in with IAM. If not set, the instance is created without it, and later changes made in RDS
    /// are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iam_authentication: Option<bool>,

    /// Certificate authority of the server certificate, such as `rds-ca-rsa2048-g1`. If not set, RDS chooses one, and
    /// later changes made in RDS are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 255),
        regex(pattern = r"^[A-Za-z](-?[A-Za-z0-9])*$")
    )]
    pub ca_certificate: Option<String>,

    /// Network placement and access.
    #[serde(default)]
    pub network: Network,

    /// Encryption of the storage. RDS sets it at creation only.
    #[serde(default)]
    pub encryption: Encryption,

    /// If true, a standby runs in another availability zone (Multi-AZ). If not set, the instance is created without
    /// one, and later changes made in RDS are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multi_az: Option<bool>,

    /// Monitoring of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitoring: Option<Monitoring>,

    /// Automated backups.
    #[serde(default)]
    pub backup: Backup,

    /// Time at which RDS applies changes of the class, the storage, the version and the port.
    #[serde(default)]
    pub apply_changes: ApplyChanges,

    /// Weekly maintenance window, in UTC, such as `sun:05:00-sun:06:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 19, max = 19),
        regex(
            pattern = r"^([Mm]on|[Tt]ue|[Ww]ed|[Tt]hu|[Ff]ri|[Ss]at|[Ss]un):([01][0-9]|2[0-3]):[0-5][0-9]-([Mm]on|[Tt]ue|[Ww]ed|[Tt]hu|[Ff]ri|[Ss]at|[Ss]un):([01][0-9]|2[0-3]):[0-5][0-9]$"
        )
    )]
    pub maintenance_window: Option<String>,

    /// Port that the database listens on. Defaults to the default port of the engine for a new, empty instance; any
    /// other one keeps its port if this is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1150, max = 65535))]
    pub port: Option<i32>,

    /// If true, RDS does not allow the instance to be deleted. If not set, changes made in RDS are kept, and a
    /// protection that was enabled there blocks the deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_protection: Option<bool>,

    /// Policy for the instance when this object is deleted.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,

    /// Extent of the management of the instance.
    #[serde(default)]
    pub management_policy: ManagementPolicy,

    /// Existing instance that the object takes over. No instance is created then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Adopt>,

    /// Backup from which the instance is created. What RDS does not restore, such as the password, is applied to the new
    /// instance afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_from: Option<RestoreFrom>,

    /// Instance that the instance replicates. If it is removed, the replica is promoted to an instance of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_of: Option<ReplicaOf>,

    /// If true, automated backups are retained when the instance is deleted, for their retention period. If not set, RDS
    /// deletes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retain_automated_backups: Option<bool>,

    /// Tags of the instance.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 40), schema_with = "crate::schemas::tags")]
    #[x_kube(
        validation = Rule::new("self.all(k, k.matches('(?s)^.{1,128}$'))")
            .message("keys must have 1 to 128 characters [tag-key-length]"),
        validation = Rule::new("self.all(k, !k.matches('^(aws:|rds:|database[.]example[.]com/)'))")
            .message("keys must not start with the reserved prefixes 'aws:', 'rds:' and 'database.example.com/' [tag-key-reserved]")
    )]
    pub tags: BTreeMap<String, String>,
}

impl CloudDatabaseSpec {
    /// Returns true if the spec allows an upgrade to the major version of this version.
    #[must_use]
    pub fn allows_major_version(&self, version: &str) -> bool {
        self.allow_major_version_upgrade.as_deref() == Some(self.engine.major_version(version))
    }

    /// Returns true if the spec lets RDS upgrade the instance to later minor versions.
    #[must_use]
    pub fn lets_rds_upgrade(&self) -> bool {
        self.auto_minor_version_upgrade == Some(true)
    }
}

/// Storage of an instance.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.maxSizeGib) || self.maxSizeGib * 10 >= self.sizeGib * 11")
        .message("must be at least 10 % above `sizeGib`; raise it, or remove it to switch autoscaling off [max-size-above-size]")
        .field_path(".maxSizeGib"),
    validation = Rule::new("!self.type.startsWith('io') || has(self.iops)")
        .message("is required for io1 and io2 [provisioned-iops-required]")
        .reason(Reason::FieldValueRequired)
        .field_path(".iops"),
    validation = Rule::new("!self.type.startsWith('io') || self.sizeGib >= 100")
        .message("must be at least 100 for io1 and io2 [provisioned-size-minimum]")
        .field_path(".sizeGib"),
    validation = Rule::new("!has(self.iops) || self.type.startsWith('io') || (self.type == 'gp3' && self.sizeGib >= 400)")
        .message("may be set only for io1 and io2, and for gp3 from 400 GiB [iops-not-provisioned]")
        .reason(Reason::FieldValueForbidden)
        .field_path(".iops"),
    validation = Rule::new("!has(self.throughputMibps) || (self.type == 'gp3' && self.sizeGib >= 400)")
        .message("may be set only for gp3 from 400 GiB [throughput-not-provisioned]")
        .reason(Reason::FieldValueForbidden)
        .field_path(".throughputMibps"),
    validation = Rule::new("!has(self.iops) || !self.type.startsWith('io') || (self.iops * 2 >= self.sizeGib && self.iops <= self.sizeGib * (self.type == 'io1' ? 50 : 1000))")
        .message("must be 0.5 to 50 times `sizeGib` for io1, and 0.5 to 1000 times for io2 [iops-ratio]")
        .field_path(".iops"),
    validation = Rule::new("!has(self.iops) || !has(self.maxSizeGib) || !self.type.startsWith('io') || self.iops * 2 >= self.maxSizeGib")
        .message("must be at least half of `maxSizeGib`: the ratio of 0.5 also holds after RDS has increased the storage [iops-ratio-autoscaling]")
        .field_path(".iops"),
    validation = Rule::new("!has(self.iops) || self.type != 'gp3' || self.sizeGib < 400 || (self.iops >= 12000 && self.iops <= 64000 && self.iops <= self.sizeGib * 500)")
        .message("must be 12000 to 64000, and at most 500 times `sizeGib`, for gp3 [gp3-iops-range]")
        .field_path(".iops"),
    validation = Rule::new("!has(self.throughputMibps) || self.type != 'gp3' || self.sizeGib < 400 || self.throughputMibps >= 500")
        .message("must be 500 to 4000 for gp3 [gp3-throughput-range]")
        .field_path(".throughputMibps"),
    validation = Rule::new("!has(self.throughputMibps) || self.type != 'gp3' || self.sizeGib < 400 || self.throughputMibps * 4 <= (has(self.iops) ? self.iops : 12000)")
        .message("must be at most a quarter of `iops`, which are 12000 if they are not set [gp3-throughput-ratio]")
        .field_path(".throughputMibps")
)]
pub struct Storage {
    /// Storage type.
    #[serde(default, rename = "type")]
    pub storage_type: StorageType,

    /// Allocated storage in GiB. It can be increased, and decreased only if RDS has not allocated the old value yet.
    #[schemars(range(min = 20, max = 65536))]
    pub size_gib: i32,

    /// Size in GiB up to which RDS may increase the storage automatically (storage autoscaling).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 22, max = 65536))]
    pub max_size_gib: Option<i32>,

    /// Provisioned I/O operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1000, max = 256_000))]
    pub iops: Option<i32>,

    /// Provisioned throughput in MiB per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 125, max = 4000))]
    pub throughput_mibps: Option<i32>,
}

/// Storage type of RDS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum StorageType {
    /// General Purpose, previous generation.
    Gp2,
    /// General Purpose.
    #[default]
    Gp3,
    /// Provisioned IOPS, previous generation.
    Io1,
    /// Provisioned IOPS.
    Io2,
}

impl StorageType {
    /// Returns the name of the storage type in RDS.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gp2 => "gp2",
            Self::Gp3 => "gp3",
            Self::Io1 => "io1",
            Self::Io2 => "io2",
        }
    }
}

/// Encryption of an instance's storage, its backups and snapshots.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.kmsKey) == has(oldSelf.kmsKey) && (!has(self.kmsKey) || self.kmsKey == oldSelf.kmsKey)")
        .message("is immutable: RDS sets it at creation only; restore the old value [kms-key-immutable]")
        .field_path(".kmsKey"),
    validation = Rule::new("!has(self.kmsKey) || self.enabled")
        .message("may be set only if `enabled` is true [kms-key-without-encryption]")
        .reason(Reason::FieldValueForbidden)
        .field_path(".kmsKey")
)]
pub struct Encryption {
    /// If true, the storage is encrypted.
    #[serde(default = "default_true")]
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("is immutable: RDS sets it at creation only; restore the old value, or create a new CloudDatabase and migrate the data [encryption-immutable]"))]
    pub enabled: bool,

    /// KMS key, by key ID, ARN, alias or alias ARN. Defaults to the account's default KMS key for RDS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048), regex(pattern = r"^[A-Za-z0-9:/_-]+$"))]
    pub kms_key: Option<String>,
}

impl Default for Encryption {
    fn default() -> Self {
        Self {
            enabled: default_true(),
            kms_key: None,
        }
    }
}

fn default_true() -> bool {
    true
}

/// Automated backups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// Number of days for which automated backups are retained. 0 disables them. If not set, the instance is created
    /// with 7 days, and later changes made in RDS are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 35))]
    pub retention_days: Option<i32>,

    /// Daily backup window, in UTC, such as `03:00-04:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 11, max = 11),
        regex(pattern = r"^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]$")
    )]
    pub window: Option<String>,

    /// If true, snapshots of the instance get its tags.
    #[serde(default = "default_true")]
    pub copy_tags_to_snapshot: bool,
}

impl Default for Backup {
    fn default() -> Self {
        Self {
            retention_days: None,
            window: None,
            copy_tags_to_snapshot: default_true(),
        }
    }
}

/// Time at which RDS applies changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ApplyChanges {
    /// Changes are applied as soon as possible, also if they restart the database. This includes what other clients have
    /// scheduled for the maintenance window.
    #[default]
    Immediately,
    /// Changes that can interrupt clients wait for the maintenance window. The password, network access and the deletion
    /// protection do not wait, and the port is not changed.
    MaintenanceWindow,
}

/// Policy for the instance when the object is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum DeletionPolicy {
    /// The instance is deleted after a final snapshot has been taken.
    #[default]
    Snapshot,
    /// The instance is retained.
    Retain,
    /// The instance is deleted with all its data.
    Delete,
}

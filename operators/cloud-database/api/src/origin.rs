//! Origin of the instance of a CloudDatabase: an existing instance, a backup, or another instance that it replicates.
//! Without one, RDS creates an empty instance.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Extent of the management of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ManagementPolicy {
    /// The instance is created, changed and deleted as the object says.
    #[default]
    Manage,
    /// The instance is only read. It is neither created nor changed, tagged or deleted, and the condition `Synced` lists
    /// the fields that differ.
    Observe,
}

/// Existing instance that an object takes over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Adopt {
    /// Identifier of the instance in RDS, in lower case.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$")
    )]
    pub identifier: String,
}

/// Backup from which an instance is created.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.snapshot) != has(self.pointInTime)")
    .message("must have exactly one of `snapshot` and `pointInTime` [restore-from-one]"))]
pub struct RestoreFrom {
    /// Identifier of a DB snapshot, or the ARN of a snapshot that another account shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 255),
        regex(pattern = r"^[A-Za-z][A-Za-z0-9:-]*$")
    )]
    pub snapshot: Option<String>,

    /// Earlier state of an instance, from its automated backups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point_in_time: Option<PointInTime>,
}

/// Earlier state of an instance.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.sourceInstance) != has(self.sourceResourceId)")
        .message("must have exactly one of `sourceInstance` and `sourceResourceId` [point-in-time-source]"),
    validation = Rule::new("has(self.time) != (has(self.latest) && self.latest)")
        .message("must have either `time` or `latest: true` [point-in-time-time]")
)]
pub struct PointInTime {
    /// Identifier of the instance in RDS, in lower case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$")
    )]
    pub source_instance: Option<String>,

    /// Resource ID of the instance, such as `db-ABCDEFGHIJKLMNOPQRSTUVWXYZ`: also of one that was deleted and whose
    /// automated backups are retained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 4, max = 255), regex(pattern = r"^db-[A-Z0-9]+$"))]
    pub source_resource_id: Option<String>,

    /// Time of the state, such as `2026-11-26T08:00:00Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("format" = "date-time"))]
    pub time: Option<String>,

    /// If true, the latest state that RDS can restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<bool>,
}

/// Instance that the instance of the object replicates.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.identifier) != has(self.name)")
    .message("must have exactly one of `identifier` and `name` [replica-of-one]"))]
pub struct ReplicaOf {
    /// Identifier of the instance in RDS, in lower case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$")
    )]
    pub identifier: Option<String>,

    /// Name of another CloudDatabase in the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub name: Option<String>,
}

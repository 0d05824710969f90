//! Status of a CloudDatabase, as the controller reports it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Observed state of the instance, in addition to the status fields of every kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudDatabaseStatus {
    /// Status of the instance as reported by RDS, such as `creating` or `available`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub phase: Option<String>,

    /// Human-readable description of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub message: Option<String>,

    /// Endpoint that clients connect to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,

    /// Identifier of the instance in RDS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub instance_id: Option<String>,

    /// ARN of the instance, recorded once RDS has returned it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub arn: Option<String>,

    /// Resource ID of the instance (DbiResourceId), recorded with the ARN. Unlike the identifier, it is never
    /// reused by RDS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub resource_id: Option<String>,

    /// AWS region of the instance, recorded before it is created and removed if RDS rejects its creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub region: Option<String>,

    /// ID of the AWS account of the instance, recorded with the region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 12))]
    pub account_id: Option<String>,

    /// If true, the DNS name of the instance resolves to a public IP address outside its VPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publicly_accessible: Option<bool>,

    /// If true, the storage of the instance is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_encrypted: Option<bool>,

    /// Fields with a secure default in which the instance has matched the spec before. Only these are enforced. An
    /// instance that was created with other values keeps its values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 16), inner(length(max = 64)))]
    pub enforced_fields: Vec<String>,

    /// Version of the engine that the instance runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub engine_version: Option<String>,

    /// Class of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub instance_class: Option<String>,

    /// Allocated storage in GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_storage_gib: Option<i32>,

    /// Last size of the storage that RDS has accepted, in GiB, even if it is not allocated yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_storage_gib: Option<i32>,

    /// Server certificate of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,

    /// Fields whose change RDS has accepted and not applied yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 32), inner(length(max = 64)))]
    pub pending_modifications: Vec<String>,

    /// Weekly maintenance window, in UTC, such as `sun:05:00-sun:06:00`, while `pendingModifications` has fields. RDS
    /// applies in it those that it does not apply earlier, and that need no restart by a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub pending_modifications_window: Option<String>,

    /// Last change of the instance that RDS has accepted from this controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_change: Option<LastChange>,

    /// Time at which RDS last accepted a change of the storage. It accepts the next one some hours later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("format" = "date-time"))]
    pub storage_modified_at: Option<String>,

    /// Settings of the storage of the spec that have been in effect. If IOPS or throughput are removed from the spec, those
    /// of RDS are restored, and if the maximum size is removed, storage autoscaling is switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_storage: Option<AppliedStorage>,

    /// Keys of the tags of the spec that the instance has. If they are removed from the spec, they are removed from the
    /// instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 50), inner(length(max = 128)))]
    pub applied_tags: Vec<String>,

    /// Version of the Secret with the password that the instance has: the UID and the resource version. The password
    /// cannot be derived from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub credentials_version: Option<String>,

    /// Version of the Secret whose password was requested from RDS, until RDS has accepted it. The instance may have this
    /// password or the one of `credentialsVersion`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub requested_credentials_version: Option<String>,

    /// Secret in AWS Secrets Manager with the password, if RDS manages it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master_user_secret: Option<MasterUserSecret>,

    /// Names of the Secrets that the controller has created for the object, in its namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 8), inner(length(max = 253)))]
    pub owned_secrets: Vec<String>,
    /// Identifier of the instance that the instance replicates, recorded while `spec.replicaOf` is set. If it is removed
    /// from the spec, the replica is promoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub replica_of: Option<String>,

    /// Request to delete the instance, recorded before it is sent and removed if RDS rejects it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_request: Option<DeletionRequest>,

    /// UID of the object, recorded before the finalizer is added. While it is there, the status records every request to
    /// RDS for the object. Without it, the status may have been erased, and proves nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub complete_for: Option<String>,

    /// Changes that can interrupt clients, recorded before they are requested from RDS, until the instance has them. One
    /// that RDS takes back, or whose outcome is unknown, is not requested again before the field or its consent changes,
    /// or a user requests a reconciliation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 16))]
    pub accepted_changes: Vec<AcceptedChange>,
}

/// Change that can interrupt clients and that is requested from RDS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedChange {
    /// Changed field of the spec.
    #[schemars(length(max = 64))]
    pub field: String,

    /// Requested value.
    #[schemars(length(max = 255))]
    pub target: String,

    /// Consent in the spec: `applyChanges`, and `allowMajorVersionUpgrade` for the version.
    #[schemars(length(max = 64))]
    pub consent: String,

    /// Time at which it was recorded, before the request was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("format" = "date-time"))]
    pub requested_at: Option<String>,

    /// Time at which RDS has accepted it, or at which a description of the instance has shown that. If not set, it may
    /// have been accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("format" = "date-time"))]
    pub accepted_at: Option<String>,

    /// If true, RDS has shown that the change waits or is in progress.
    #[serde(default)]
    pub began: bool,

    /// Time since which RDS shows an idle instance without the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("format" = "date-time"))]
    pub absent_since: Option<String>,

    /// If true, RDS has taken the change back, or has never shown it.
    #[serde(default)]
    pub failed: bool,
}

/// Server certificate of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Certificate {
    /// Certificate authority that has signed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub ca_identifier: Option<String>,
    /// Time at which it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("format" = "date-time"))]
    pub valid_till: Option<String>,
}

/// Settings of the storage of the spec that have been in effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedStorage {
    /// Provisioned I/O operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<i32>,
    /// Provisioned throughput in MiB per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_mibps: Option<i32>,
    /// Maximum size of storage autoscaling in GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_size_gib: Option<i32>,
}

/// Secret in AWS Secrets Manager that RDS manages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MasterUserSecret {
    /// ARN of the secret.
    #[schemars(length(max = 2048))]
    pub arn: String,
    /// Status of the secret as reported by RDS: `creating`, `active`, `rotating` or `impaired`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub status: Option<String>,
}

/// Change of an instance that RDS has accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastChange {
    /// Time at which RDS has accepted it. Some changes are applied later.
    #[schemars(length(max = 64), extend("format" = "date-time"))]
    pub time: String,

    /// Changed fields of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 32), inner(length(max = 64)))]
    pub fields: Vec<String>,
}

/// Request to RDS to delete an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletionRequest {
    /// Identifier of the final snapshot. If not set, no final snapshot is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub final_snapshot_id: Option<String>,

    /// Time at which RDS has accepted the request. Until then, it may not have been executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("format" = "date-time"))]
    pub accepted_at: Option<String>,

    /// If true, RDS has shown the instance as `deleting` since it accepted the request.
    #[serde(default)]
    pub seen_deleting: bool,
}

/// Endpoint that clients connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Host name.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,
    /// Port number.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
}

//! What the controller reports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the controller last observed, besides what the loop tells of every kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudDatabaseStatus {
    /// Where the instance is in its life, in RDS' own word, such as `creating` or `available`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub phase: Option<String>,

    /// The phase, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub message: Option<String>,

    /// Where clients connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,

    /// The identifier of the instance in RDS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub instance_id: Option<String>,

    /// The ARN of the instance, recorded once RDS has returned it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub arn: Option<String>,

    /// The resource ID of the instance (DbiResourceId), recorded with the ARN. Unlike the identifier, RDS never uses one
    /// again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub resource_id: Option<String>,

    /// The AWS region of the instance, recorded before it is created and removed when RDS refuses to create it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub region: Option<String>,

    /// The ID of the AWS account of the instance, recorded with the region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 12))]
    pub account_id: Option<String>,

    /// If true, the DNS name of the instance resolves to a public IP address outside its VPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publicly_accessible: Option<bool>,

    /// If true, the storage of the instance is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_encrypted: Option<bool>,

    /// Fields with a secure default in which the instance has agreed with the spec, so that they are kept as the spec
    /// says. An instance that was made otherwise keeps what it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 16), inner(length(max = 64)))]
    pub enforced_fields: Vec<String>,

    /// The request to delete the instance, recorded before it is sent and removed when RDS refuses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_request: Option<DeletionRequest>,
}

/// A request to RDS to delete an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletionRequest {
    /// The identifier of the final snapshot; without one, none is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub final_snapshot_id: Option<String>,
}

/// Where clients connect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// The host name.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,
    /// The port.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
}

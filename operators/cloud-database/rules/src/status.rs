//! What the controller reports.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the controller last observed.
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

    /// The generation that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,

    /// `Valid`: the object keeps its rules. `Ready`: the database can be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,

    /// The last accepted values of the fields whose changes are restricted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<AcceptedValues>,
}

/// The last accepted values of the fields whose changes are restricted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedValues {
    /// The generation that was accepted.
    #[schemars(range(min = 0))]
    pub generation: i64,

    /// The values by dotted field name.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 16), schema_with = "crate::crd::accepted_values")]
    pub values: BTreeMap<String, Value>,

    /// Errors in spite of which the generation was accepted: a stricter rule came later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub inherited: Vec<InheritedError>,
}

/// An error that stays a warning as long as nothing that it depends on changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InheritedError {
    /// The rule that is broken.
    #[schemars(length(max = 512))]
    pub rule: String,
    /// Where it is broken.
    #[schemars(length(max = 512))]
    pub at: String,
    /// A fingerprint of what the error depends on.
    #[schemars(length(max = 16))]
    pub inputs: String,
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

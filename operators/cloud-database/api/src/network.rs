//! Network placement and access of an instance.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Network placement and access of an instance.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.subnetGroup) == has(oldSelf.subnetGroup) && (!has(self.subnetGroup) || self.subnetGroup == oldSelf.subnetGroup)")
        .message("is immutable: the operator does not move instances between subnet groups; restore the old value [subnet-group-immutable]")
        .field_path(".subnetGroup"),
    validation = Rule::new("!has(self.availabilityZone) || (has(oldSelf.availabilityZone) && self.availabilityZone == oldSelf.availabilityZone)")
        .message("is immutable: RDS sets it at creation only; restore the old value, or remove the field to leave the zone to RDS [availability-zone-immutable]")
        .field_path(".availabilityZone")
)]
pub struct Network {
    /// DB subnet group, which determines the VPC. Defaults to the subnet group of the default VPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 255),
        regex(pattern = r"^[A-Za-z][A-Za-z0-9._ -]*$")
    )]
    pub subnet_group: Option<String>,

    /// IDs of the VPC security groups. If empty, RDS assigns the default group of the VPC, and later changes made
    /// in RDS are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schemas::security_groups")]
    pub security_groups: Vec<String>,

    /// If true, the DNS name of the instance resolves to a public IP address outside its VPC.
    #[serde(default)]
    pub publicly_accessible: bool,

    /// Availability zone, such as `eu-central-1a`. RDS sets it at creation only, and chooses one if it is not set. A
    /// Multi-AZ instance has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 64),
        regex(pattern = r"^[a-z]{2}(-[a-z0-9]+)+[a-z]$")
    )]
    pub availability_zone: Option<String>,

    /// Network type. `DUAL` needs a subnet group with IPv6. If not set, the instance is created with `IPV4`, and later
    /// changes made in RDS are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_type: Option<NetworkType>,

    /// If true, an instance on an AWS Outpost has an address of the pool of customer-owned IP addresses, by which the local
    /// network reaches it. If not set, it is created without one, and later changes made in RDS are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer_owned_ip: Option<bool>,
}

/// Network type of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub enum NetworkType {
    /// IPv4 only.
    Ipv4,
    /// IPv4 and IPv6.
    Dual,
}

impl NetworkType {
    /// Returns the name of the network type in RDS.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ipv4 => "IPV4",
            Self::Dual => "DUAL",
        }
    }
}

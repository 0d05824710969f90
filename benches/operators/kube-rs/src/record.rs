//! Kind `DnsRecord`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dns_api::RecordContent;

/// Label of the records of this operator.
const LABEL: &str = "kube-rs";

/// DNS record.
#[derive(CustomResource, KubeSchema, Clone, Debug, Deserialize, Serialize)]
#[kube(
    group = "dns.example.com",
    version = "v1",
    kind = "DnsRecord",
    namespaced
)]
#[kube(plural = "dnsrecords", status = "DnsRecordStatus")]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.type != 'CNAME' || self.values.size() == 1")
    .message("a CNAME record must have exactly one value"))]
#[x_kube(validation = Rule::new("self.type == oldSelf.type")
    .message("the type of a record cannot change"))]
#[x_kube(validation = Rule::new("self.type != 'A' || self.values.all(value, isIP(value) && ip(value).family() == 4)")
    .message("the values of an A record must be IPv4 addresses"))]
#[x_kube(validation = Rule::new("self.type != 'AAAA' || self.values.all(value, isIP(value) && ip(value).family() == 6)")
    .message("the values of an AAAA record must be IPv6 addresses"))]
pub(crate) struct DnsRecordSpec {
    /// Fully qualified name, without a dot at the end.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    )]
    pub(crate) name: String,
    /// Type of the record.
    pub(crate) r#type: RecordType,
    /// Time to live in seconds.
    #[serde(default = "five_minutes")]
    #[schemars(range(min = 60, max = 86_400))]
    pub(crate) ttl: u32,
    /// Values: addresses, a name or texts.
    #[schemars(length(min = 1, max = 10), inner(length(min = 1, max = 255)))]
    pub(crate) values: Vec<String>,
}

/// Type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum RecordType {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// Another name.
    Cname,
    /// Texts.
    Txt,
}

/// State of the record.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DnsRecordStatus {
    /// Generation that was reconciled last.
    pub(crate) observed_generation: Option<i64>,
    /// Conditions.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub(crate) conditions: Vec<Condition>,
    /// Id of the record at the provider.
    pub(crate) record_id: Option<String>,
    /// Name that is served.
    pub(crate) served_name: Option<String>,
}

fn five_minutes() -> u32 {
    300
}

impl DnsRecord {
    /// Returns the record that the object wants.
    pub(crate) fn desired(&self) -> RecordContent {
        let kind = match self.spec.r#type {
            RecordType::A => "A",
            RecordType::Aaaa => "AAAA",
            RecordType::Cname => "CNAME",
            RecordType::Txt => "TXT",
        };
        RecordContent {
            name: self.spec.name.clone(),
            r#type: kind.to_owned(),
            ttl: self.spec.ttl,
            values: self.spec.values.clone(),
            owner: self.uid().unwrap_or_default(),
            label: LABEL.to_owned(),
        }
    }
}

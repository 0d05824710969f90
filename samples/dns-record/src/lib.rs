//! Sample operator: DNS records in a zone that an HTTP API manages.

mod dns_api;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, CustomResource, KubeSchema, ResourceExt};
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, Leadership, OwnedType, ReconcileError, ReconcileOutput,
    Reconciler, SyncRequest, require_existing,
};
use lockstep_shared_validation::{
    Diagnostics, Rule, RuleContext, Severity, ValidatedResource, field, fields,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use crate::dns_api::{DnsApi, DnsError, RecordContent, StoredRecord};

/// Label of the records of this operator.
pub const LABEL: &str = "lockstep";

/// Default interval at which changes that were made outside the cluster are looked for.
pub const RESYNC: Duration = Duration::from_mins(10);

/// DNS record.
#[derive(CustomResource, KubeSchema, ValidatedResource, Clone, Debug, Deserialize, Serialize)]
#[kube(
    group = "dns.example.com",
    version = "v1",
    kind = "DnsRecord",
    namespaced
)]
#[kube(plural = "dnsrecords", status = "DnsRecordStatus")]
#[validated(example = example, rules = rules)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.type != 'CNAME' || self.values.size() == 1")
    .message("a CNAME record must have exactly one value [single-cname]"))]
#[x_kube(validation = Rule::new("self.type == oldSelf.type")
    .message("the type of a record cannot change [immutable-type]"))]
pub struct DnsRecordSpec {
    /// Fully qualified name, without a dot at the end.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Type of the record.
    pub r#type: RecordType,
    /// Time to live in seconds.
    #[serde(default = "five_minutes")]
    #[schemars(range(min = 60, max = 86_400))]
    pub ttl: u32,
    /// Values: addresses, a name or texts.
    #[schemars(length(min = 1, max = 10), inner(length(min = 1, max = 255)))]
    pub values: Vec<String>,
}

/// Type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum RecordType {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    #[serde(rename = "AAAA")]
    Aaaa,
    /// Another name.
    #[serde(rename = "CNAME")]
    Cname,
    /// Texts.
    #[serde(rename = "TXT")]
    Txt,
}

/// State of the record.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DnsRecordStatus {
    /// Id of the record at the provider.
    pub record_id: Option<String>,
    /// Name that is served.
    pub served_name: Option<String>,
}

fn five_minutes() -> u32 {
    300
}

fn example() -> Value {
    json!({"spec": {"name": "www.example.com", "type": "A", "values": ["192.0.2.1"]}})
}

fn rules() -> Vec<Rule<DnsRecord>> {
    vec![Rule {
        id: "value-of-type",
        description: "The values of an A record must be IPv4 addresses, and those of an AAAA record IPv6 addresses.",
        severity: Severity::Error,
        reference: "https://www.rfc-editor.org/rfc/rfc3596",
        fields: fields!(DnsRecord, "spec.type", "spec.values"),
        validate: have_type,
    }]
}

fn have_type(context: &RuleContext<'_, DnsRecord>, diagnostics: &mut Diagnostics) {
    let spec = &context.object.spec;
    for (at, value) in spec.values.iter().enumerate() {
        let expected = match spec.r#type {
            RecordType::A if value.parse::<Ipv4Addr>().is_err() => "must be an IPv4 address",
            RecordType::Aaaa if value.parse::<Ipv6Addr>().is_err() => "must be an IPv6 address",
            _ => continue,
        };
        diagnostics.invalid(
            field!(DnsRecord, "spec.values[{at}]"),
            value.clone(),
            expected,
        );
    }
}

/// Operator of DNS records.
pub struct DnsRecords {
    /// API of the DNS provider.
    pub api: DnsApi,
    /// Client for the API server.
    pub client: Client,
    /// Time until which this process is the leader.
    pub leadership: Leadership,
    /// Interval at which changes that were made outside the cluster are looked for.
    pub resync: Duration,
}

impl DnsRecords {
    /// Brings the records of an object to the desired state and returns the one that is left.
    async fn bring(&self, record: &DnsRecord) -> Result<StoredRecord, ReconcileError> {
        let desired = desired(record);
        let named = self.api.with_name(&desired.name).await?;
        let mut named = named
            .into_iter()
            .filter(|it| it.content.r#type == desired.r#type);
        if let Some(other) = named.find(|it| it.content.owner != desired.owner) {
            let message = format!(
                "the name {} has the record {} of another owner; delete it, or choose another name",
                desired.name, other.id
            );
            let error = ReconcileError::permanent("NameTaken", message);
            // Its owner may delete it there, which no watch reports.
            return Err(error.requeue_after(self.resync));
        }
        let mut own = self.api.of_owner(&desired.owner).await?;
        let kept = own.iter().position(|it| is_same(&it.content, &desired));
        let stored = match kept.map(|at| own.swap_remove(at)) {
            Some(stored) if stored.content == desired => stored,
            Some(stored) => {
                self.leadership.require(self.api.timeout())?;
                self.api.update(&stored, &desired).await?
            }
            None => {
                require_existing(&self.client, record).await?;
                self.leadership.require(self.api.timeout())?;
                self.api.create(&desired).await?
            }
        };
        // Records with an earlier name, and duplicates after a creation without an answer.
        for surplus in own {
            self.leadership.require(self.api.timeout())?;
            self.api.delete(&surplus.id).await?;
        }
        Ok(stored)
    }
}

fn is_same(content: &RecordContent, desired: &RecordContent) -> bool {
    (&content.name, &content.r#type) == (&desired.name, &desired.r#type)
}

/// Returns the record that an object wants.
pub fn desired(record: &DnsRecord) -> RecordContent {
    let kind = serde_json::to_value(record.spec.r#type).unwrap_or_default();
    RecordContent {
        name: record.spec.name.clone(),
        r#type: kind.as_str().unwrap_or_default().to_owned(),
        ttl: record.spec.ttl,
        values: record.spec.values.clone(),
        owner: record.uid().unwrap_or_default(),
        label: LABEL.to_owned(),
    }
}

/// Returns the `ConfigMap` of an object, for programs that need the name.
pub fn config_map(name: &str, served_name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"name": served_name},
    })
}

#[async_trait]
impl Reconciler for DnsRecords {
    type Kind = DnsRecord;

    fn finalizer(&self) -> Option<&'static str> {
        Some("dns.example.com/record")
    }

    fn owns(&self) -> Vec<OwnedType> {
        vec![OwnedType::namespaced::<ConfigMap>()]
    }

    async fn reconcile(
        &self,
        request: &SyncRequest<'_, DnsRecord>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        let record = request.parent();
        let stored = self.bring(record).await?;
        let served_name = stored.content.name;
        let status = json!({"recordId": stored.id, "servedName": served_name});
        Ok(ReconcileOutput {
            status: status.as_object().cloned().unwrap_or_else(Map::new),
            children: vec![config_map(&record.name_any(), &served_name)],
            requeue_after: self.resync,
            ..ReconcileOutput::default()
        })
    }

    async fn finalize(
        &self,
        deleted: &FinalizeRequest<'_>,
    ) -> Result<FinalizeOutcome, ReconcileError> {
        let uid = deleted.object["metadata"]["uid"].as_str();
        for record in self.api.of_owner(uid.unwrap_or_default()).await? {
            self.leadership.require(self.api.timeout())?;
            self.api.delete(&record.id).await?;
        }
        Ok(FinalizeOutcome::Done)
    }
}

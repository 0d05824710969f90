//! Observed objects that run Vector.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::io::Read;

use flate2::read::GzDecoder;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, Resource, ResourceExt};
use lockstep_controller::{Children, ReconcileError, path_segment};
use lockstep_vector_api::WorkloadRole;
use lockstep_vector_assembly::global_options_hash;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::owned::{self, Change, GLOBAL_OPTIONS_CHECKSUM, ObservedAggregator};
use crate::run::migrate::PresentNames;

/// Maximum size of a configuration, after decompression: many times that of the largest Secret.
const MAX_BYTES: u64 = 64 << 20;

/// Observed objects that run Vector. Those that another operator has created are not in the cache before they are
/// adopted: they have no label of ours.
pub(crate) struct Observed {
    workloads: Vec<(&'static str, Value)>,
    event_collector: Option<Value>,
    /// Fingerprint of the options with which Pods run whose template has no fingerprint, see
    /// [`Publication::adopted_hash`](crate::owned::Publication::adopted_hash).
    pub(crate) adopted_hash: Option<String>,
    is_rolled_out: bool,
    /// Kind of the object that is to run Vector.
    desired_kind: &'static str,
}

/// Lookup of the objects of a workload.
pub(crate) struct Lookup<'a> {
    pub(crate) client: &'a Client,
    pub(crate) children: Children<'a>,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// Name of the objects of the event collector.
    pub(crate) event_collector: &'a str,
    /// UID of the workload.
    pub(crate) uid: &'a str,
}

impl Lookup<'_> {
    /// Returns the observed objects. `is_persistent` is true if the workload is to run in a `StatefulSet`.
    ///
    /// # Errors
    ///
    /// The API server did not answer.
    pub(crate) async fn observe(
        &self,
        kind: WorkloadRole,
        is_persistent: bool,
    ) -> Result<Observed, ReconcileError> {
        let workloads = self.workloads(kind).await?;
        let desired_kind = match (kind, is_persistent) {
            (WorkloadRole::Agent, _) => "DaemonSet",
            (WorkloadRole::Aggregator, true) => "StatefulSet",
            (WorkloadRole::Aggregator, false) => "Deployment",
        };
        let event_collector = match kind {
            WorkloadRole::Agent => None,
            WorkloadRole::Aggregator => self.event_collector().await?,
        };
        let live = workloads.iter().find(|(kind, _)| *kind == desired_kind);
        let adopted_hash = match live {
            Some((_, workload)) => self.adopted_hash(workload).await?,
            None => None,
        };
        let desired = json!({
            "apiVersion": "apps/v1",
            "kind": desired_kind,
            "metadata": {"name": self.name, "namespace": self.namespace},
        });
        Ok(Observed {
            workloads,
            event_collector,
            adopted_hash,
            is_rolled_out: self.children.pending_reason(&desired).is_none(),
            desired_kind,
        })
    }

    /// Returns the objects that run Vector, with their kinds.
    async fn workloads(
        &self,
        kind: WorkloadRole,
    ) -> Result<Vec<(&'static str, Value)>, ReconcileError> {
        let found = match kind {
            WorkloadRole::Agent => vec![self.get::<DaemonSet>().await?],
            WorkloadRole::Aggregator => vec![
                self.get::<Deployment>().await?,
                self.get::<StatefulSet>().await?,
            ],
        };
        Ok(found.into_iter().flatten().collect())
    }

    /// Returns the Deployment of the event collector.
    async fn event_collector(&self) -> Result<Option<Value>, ReconcileError> {
        let is_cached = |name| -> Result<_, ReconcileError> {
            let found: Option<Deployment> = self.children.get_namespaced(self.namespace, name)?;
            Ok(found)
        };
        // It is adopted together with the aggregator.
        let found = match is_cached(self.event_collector)? {
            None if is_cached(self.name)?.is_none() => self.get_named(self.event_collector).await?,
            cached => cached,
        };
        Ok(found.map(|found| json!(found)))
    }

    /// Returns the ids of the components in the configuration with which the Pods run. Another operator may have published
    /// it, in Secrets with other names.
    ///
    /// # Errors
    ///
    /// The API server did not answer.
    pub(crate) async fn component_ids(
        &self,
        kind: WorkloadRole,
    ) -> Result<BTreeSet<String>, ReconcileError> {
        let workloads = self.workloads(kind).await?;
        let mounted = workloads
            .iter()
            .flat_map(|(_, live)| owned::live_secrets(live));
        let names: BTreeSet<_> = mounted.chain([self.name]).collect();
        let mut files = Vec::new();
        for name in names {
            let secret = self.get_named::<Secret>(name).await?.unwrap_or_default();
            files.extend(secret.data.unwrap_or_default().into_values());
        }
        let files = files.into_iter();
        let configs = files.filter_map(|content| configuration(&content.0));
        let ids = configs.flat_map(|config| {
            let blocks = ["sources", "transforms", "sinks"].map(|block| config[block].clone());
            let blocks = blocks.into_iter();
            let components =
                blocks.flat_map(|block| block.as_object().cloned().unwrap_or_default());
            components.map(|(id, _)| id).collect::<Vec<_>>()
        });
        Ok(ids.collect())
    }

    async fn adopted_hash(&self, workload: &Value) -> Result<Option<String>, ReconcileError> {
        let checksum = |metadata: &Value| {
            let value = metadata["annotations"][GLOBAL_OPTIONS_CHECKSUM].as_str();
            value.map(str::to_owned)
        };
        let known = checksum(&workload["metadata"]);
        if known.is_some() || checksum(&workload["spec"]["template"]["metadata"]).is_some() {
            return Ok(known);
        }
        let secret = self.get::<Secret>().await?;
        let mut files = secret.iter().flat_map(|(_, secret)| {
            let secret: Secret = serde_json::from_value(secret.clone()).unwrap_or_default();
            secret.data.unwrap_or_default().into_values()
        });
        let config = files.next().and_then(|content| configuration(&content.0));
        Ok(config.as_ref().map(global_options_hash))
    }

    /// Returns the object with the name of most owned objects: from the cache, or one that is not adopted yet.
    async fn get<T>(&self) -> Result<Option<(&'static str, Value)>, ReconcileError>
    where
        T: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + k8s_openapi::Resource
            + Clone
            + Debug
            + DeserializeOwned
            + Serialize,
    {
        let found: Option<T> = self.get_named(self.name).await?;
        Ok(found.map(|found| (T::KIND, json!(found))))
    }

    /// Returns the object with a name: from the cache, or one that is not adopted yet.
    async fn get_named<T>(&self, name: &str) -> Result<Option<T>, ReconcileError>
    where
        T: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + k8s_openapi::Resource
            + Clone
            + Debug
            + DeserializeOwned,
    {
        let cached: Option<T> = self.children.get_namespaced(self.namespace, name)?;
        if cached.is_some() {
            return Ok(cached);
        }
        let api: Api<T> = Api::namespaced(self.client.clone(), &path_segment(self.namespace));
        let live = api.get_opt(&path_segment(name)).await;
        let live = live.map_err(|error| ReconcileError::Transient {
            reason: "ChildUnreadable",
            message: format!("the {} '{name}' cannot be read: {error}", T::KIND),
        })?;
        Ok(live.filter(|it| {
            let mut owners = it.owner_references().iter();
            owners.any(|owner| owner.uid == self.uid)
        }))
    }
}

impl Observed {
    /// Returns the change between the object that runs Vector and the one among the desired children. `published` are the
    /// differences of the configuration.
    pub(crate) fn change(&self, children: &[Value], published: Vec<String>) -> Option<Change> {
        let desired = children.iter().find(|it| it["kind"] == self.desired_kind)?;
        Change::between(self.live(self.desired_kind), desired, published)
    }

    /// Returns the change that remains between the desired children of now and the planned ones. `published` are the
    /// differences of the configuration.
    pub(crate) fn planned_change(
        &self,
        children: &[Value],
        planned: &[Value],
        published: Vec<String>,
    ) -> Option<Change> {
        let kind = self.desired_kind;
        let of = |children: &[Value]| children.iter().find(|it| it["kind"] == kind).cloned();
        let (desired, planned) = (of(children)?, of(planned)?);
        Change::planned(self.live(kind), &desired, &planned, published)
    }

    /// Returns the names with which the Pods run.
    pub(crate) fn names(&self, object_name: &str) -> PresentNames {
        PresentNames::new(
            self.live(self.desired_kind),
            object_name,
            self.is_rolled_out,
        )
    }

    fn live(&self, kind: &str) -> Option<&Value> {
        let mut workloads = self.workloads.iter();
        workloads.find(|(it, _)| *it == kind).map(|(_, it)| it)
    }

    /// Returns the names of the Secrets with the configuration that the Pods mount.
    pub(crate) fn mounted_secrets(&self) -> BTreeSet<String> {
        let live = self.live(self.desired_kind);
        let mounted = live.into_iter().flat_map(owned::live_secrets);
        mounted.map(str::to_owned).collect()
    }

    /// Returns the directory of the nodes for the data of the Pods.
    pub(crate) fn data_directory(&self) -> Option<&str> {
        let mut workloads = self.workloads.iter();
        workloads.find_map(|(_, workload)| owned::live_data_directory(workload))
    }

    /// Returns the directory of the nodes for the data of the desired Pods.
    pub(crate) fn desired_data_directory<'c>(&self, children: &'c [Value]) -> Option<&'c str> {
        let desired = children
            .iter()
            .find(|child| child["kind"] == self.desired_kind);
        desired.and_then(owned::live_data_directory)
    }

    /// Returns the observed objects of an aggregator.
    pub(crate) fn aggregator(&self) -> ObservedAggregator<'_> {
        ObservedAggregator {
            deployment: self.live("Deployment"),
            stateful_set: self.live("StatefulSet"),
            event_collector: self.event_collector.as_ref(),
            is_successor_ready: self.is_rolled_out,
        }
    }
}

/// Returns the configuration in a file, which may be compressed.
fn configuration(content: &[u8]) -> Option<Value> {
    if let Ok(config) = serde_json::from_slice(content) {
        return Some(config);
    }
    serde_json::from_reader(GzDecoder::new(content).take(MAX_BYTES)).ok()
}

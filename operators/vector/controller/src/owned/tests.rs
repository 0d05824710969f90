//! Tests of the owned objects as a whole, and what they share.

mod config_check;
mod data_migration;
mod event_collector;
mod existing_workloads;
mod field_effects;
mod golden;
mod permissions;
mod pod_templates;
mod services;
mod validator;

use std::collections::BTreeMap;

use lockstep_vector_api::{ClusterVectorAggregator, Vector, VectorAggregator, VectorVersion};
use lockstep_vector_assembly::{PipelineKey, PipelineService, Protocol, ServicePort};
use serde_json::{Value, json};

use crate::owned::{
    Cluster, ClusterScopedNames, ConfigurationCheck, ControllerPods, ObservedAggregator,
    OwnedObjects, OwnedObjectsError, Publication, Validator, objects,
};

/// Kind of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Vector,
    VectorAggregator,
    ClusterVectorAggregator,
}

impl Kind {
    const ALL: [Self; 3] = [
        Self::Vector,
        Self::VectorAggregator,
        Self::ClusterVectorAggregator,
    ];
    const AGGREGATORS: [Self; 2] = [Self::VectorAggregator, Self::ClusterVectorAggregator];

    /// Returns the kind of the object that runs Vector by default.
    fn workload(self) -> &'static str {
        match self {
            Self::Vector => "DaemonSet",
            Self::VectorAggregator | Self::ClusterVectorAggregator => "Deployment",
        }
    }

    /// Returns the name of that object.
    fn object_name(self) -> &'static str {
        match self {
            Self::Vector => "logs-agent",
            Self::VectorAggregator | Self::ClusterVectorAggregator => "logs-aggregator",
        }
    }
}

/// Everything that owned objects are made of.
#[derive(Clone)]
struct Input<'a> {
    kind: Kind,
    spec: Value,
    publication: Publication,
    cluster: Cluster,
    observed: ObservedAggregator<'a>,
}

impl Input<'_> {
    /// Returns an input with an empty spec and a published configuration.
    fn new(kind: Kind) -> Self {
        let file = match kind {
            Kind::Vector => "agent.json",
            Kind::VectorAggregator | Kind::ClusterVectorAggregator => "config.json",
        };
        let spec = match kind {
            Kind::ClusterVectorAggregator => json!({"resourceNamespace": "logging"}),
            Kind::Vector | Kind::VectorAggregator => json!({}),
        };
        Self {
            kind,
            spec,
            publication: Publication {
                files: BTreeMap::from([(file.to_owned(), b"{}".to_vec())]),
                roll_hash: "1f".to_owned(),
                ..Publication::default()
            },
            cluster: Cluster {
                vector_version: VectorVersion::parse("0.57").expect("a version"),
                has_pod_monitors: true,
                cluster_scoped_names: ClusterScopedNames::Plain,
                program_image: None,
            },
            observed: ObservedAggregator::default(),
        }
    }

    /// Sets a field of the spec by its path.
    fn with(mut self, path: &str, value: Value) -> Self {
        let mut at = &mut self.spec;
        for name in path.split('.') {
            at = &mut at[name];
        }
        *at = value;
        self
    }

    fn try_objects(&self) -> Result<OwnedObjects, OwnedObjectsError> {
        let Self {
            publication,
            cluster,
            observed,
            ..
        } = self;
        let object = |namespace: Option<&str>| json!({"metadata": {"name": "logs", "namespace": namespace}, "spec": self.spec});
        match self.kind {
            Kind::Vector => {
                let vector: Vector = typed(object(Some("team")));
                objects(&vector, publication, cluster, observed)
            }
            Kind::VectorAggregator => {
                let aggregator: VectorAggregator = typed(object(Some("team")));
                objects(&aggregator, publication, cluster, observed)
            }
            Kind::ClusterVectorAggregator => {
                let aggregator: ClusterVectorAggregator = typed(object(None));
                objects(&aggregator, publication, cluster, observed)
            }
        }
    }

    fn objects(&self) -> OwnedObjects {
        self.try_objects().expect("valid owned objects")
    }

    /// Returns the only child with a kind and a name.
    fn child(&self, kind: &str, name: &str) -> Option<Value> {
        let children = self.objects().children.into_iter();
        let mut found =
            children.filter(|child| child["kind"] == kind && child["metadata"]["name"] == name);
        let child = found.next();
        assert!(found.next().is_none(), "{kind} {name} is desired twice");
        child
    }

    /// Returns the Pod template of the object that runs Vector.
    fn template(&self, kind: &str) -> Value {
        let workload = self.child(kind, self.kind.object_name());
        workload.expect("a workload")["spec"]["template"].clone()
    }
}

fn typed<T: serde::de::DeserializeOwned>(mut object: Value) -> T {
    object["apiVersion"] = json!("observability.kaasops.io/v1alpha1");
    object["kind"] = json!(std::any::type_name::<T>().rsplit("::").next());
    serde_json::from_value(object).expect("a workload")
}

/// Name of the Pod that checks a configuration.
const CHECK: &str = "configcheck-logs-0123456789";

/// Returns a configuration that a Pod checks.
fn check_in_pod() -> ConfigurationCheck {
    ConfigurationCheck {
        name: CHECK.to_owned(),
        fingerprint: "0123456789abcdef".to_owned(),
        files: BTreeMap::from([("agent.json".to_owned(), b"{\"sinks\":{}}".to_vec())]),
        timeout_seconds: 300,
        ..ConfigurationCheck::default()
    }
}

/// Returns a Pod that keeps running for checks.
fn validator() -> Validator {
    let labels = [("app.kubernetes.io/name".to_owned(), "lockstep".to_owned())];
    Validator {
        is_for_schema: false,
        image: "lockstep:1".to_owned(),
        clients: Some(ControllerPods {
            namespace: "system".to_owned(),
            labels: labels.into(),
        }),
        certificate: "c".to_owned(),
        key: "k".to_owned(),
        token: "t".to_owned(),
    }
}

/// Returns a pipeline that listens on a TCP port.
fn listener(pipeline: &str, source: &str, port: u16) -> PipelineService {
    PipelineService {
        pipeline: PipelineKey {
            namespace: Some("team".to_owned()),
            name: pipeline.to_owned(),
        },
        service_name: None,
        ports: vec![ServicePort {
            name: source.to_owned(),
            port,
            protocol: Protocol::Tcp,
            is_for_events: false,
        }],
    }
}

/// Returns a pipeline that receives Kubernetes Events.
fn event_pipeline(namespace: Option<&str>) -> PipelineService {
    let mut pipeline = listener("events", "events", 42000);
    pipeline.pipeline.namespace = namespace.map(str::to_owned);
    pipeline.ports[0].is_for_events = true;
    pipeline
}

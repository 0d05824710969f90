//! Services.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_vector_api::Aggregator;
use lockstep_vector_assembly::{PipelineService, Protocol, kebab_case};
use serde_json::{Value, json};

use crate::owned::dns_label::{dns_label, is_dns_label};
use crate::owned::observed::ObservedAggregator;
use crate::owned::owned_workload::{OwnedWorkload, object};
use crate::owned::ports;

/// Ports of a Service by number and protocol, with their names.
type Ports = BTreeMap<(u16, Protocol), String>;

/// Services of the pipelines of an aggregator.
pub(crate) struct PipelineServices<'a> {
    /// Pipelines with the names of their Services.
    names: Vec<(&'a PipelineService, String)>,
    pub(crate) notices: Vec<String>,
}

impl<'a> PipelineServices<'a> {
    pub(crate) fn new(workload: &OwnedWorkload<'a>) -> Self {
        let mut services = Self {
            names: Vec::new(),
            notices: Vec::new(),
        };
        for service in &workload.publication.services {
            let name = services.name(workload, service);
            services.names.push((service, name));
        }
        services
    }

    /// Returns the pipelines with the names of their Services.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a PipelineService, &str)> {
        self.names.iter().map(|(service, name)| (*service, &**name))
    }

    /// Returns the name of the Service of a pipeline. Reports the name in an annotation that is not used.
    fn name(&mut self, workload: &OwnedWorkload<'_>, service: &PipelineService) -> String {
        let event_collector = workload.event_collector_name();
        let name = service_name(&workload.object_name(), &event_collector, service);
        let unused = service.service_name.as_deref();
        if let Some(unused) = unused.filter(|chosen| !chosen.is_empty() && **chosen != name) {
            let reason = if unused == event_collector {
                "is the name of another Service of the aggregator"
            } else {
                "is not the name of a Service, which has at most 63 lower-case letters, digits and hyphens, and begins with a letter"
            };
            self.notices.push(format!(
                "the Service of the pipeline {} is called {name}: the name `{unused}` in its annotation {reason}",
                service.pipeline.name
            ));
        }
        name
    }
}

/// Returns the name of the Service of a pipeline: that of its annotation, if it is valid. `object_name` is the name of most
/// objects of the aggregator, and `event_collector` that of a Service that a pipeline must not lead to other Pods.
pub(crate) fn service_name(
    object_name: &str,
    event_collector: &str,
    service: &PipelineService,
) -> String {
    let chosen = service.service_name.as_deref();
    match chosen.filter(|name| is_dns_label(name) && *name != event_collector) {
        Some(name) => name.to_owned(),
        None => dns_label(&kebab_case(&format!(
            "{object_name}-{}",
            service.pipeline.name
        ))),
    }
}

/// Returns the Service of the API of agents.
pub(crate) fn of_agent(workload: &OwnedWorkload<'_>) -> Option<Value> {
    let ports = [((ports::API, Protocol::Tcp), "api".to_owned())];
    let ports = ports.into_iter().collect();
    workload
        .has_api()
        .then(|| service(workload, &workload.object_name(), &ports))
}

/// Returns the Services of an aggregator: those of its pipelines, of its API, and of its `StatefulSet`.
pub(crate) fn of_aggregator(
    workload: &OwnedWorkload<'_>,
    aggregator: &Aggregator,
    services: &PipelineServices<'_>,
    observed: &ObservedAggregator<'_>,
) -> Vec<Value> {
    // Pipelines with one Service share it; so do a pipeline and the API.
    let mut by_name = BTreeMap::<String, Ports>::new();
    if workload.has_api() {
        let ports = by_name.entry(workload.object_name()).or_default();
        ports.insert((ports::API, Protocol::Tcp), "api".to_owned());
    }
    for (service, name) in services.iter() {
        let ports = by_name.entry(name.to_owned()).or_default();
        for port in &service.ports {
            let name = dns_label(&kebab_case(&port.name));
            let key = (port.port, port.protocol);
            ports.entry(key).or_insert(name);
        }
    }
    by_name.retain(|_, ports| !ports.is_empty());
    // The headless Service lives as long as the StatefulSet: its Pods are found by it.
    let is_kept = observed.predecessor(workload, aggregator).is_some();
    let headless =
        (aggregator.is_persistent() || is_kept).then(|| workload.headless_service_name());
    let of_headless = headless.map(|name| {
        let ports = by_name.remove(&name).unwrap_or_default();
        let mut headless = service(workload, &name, &ports);
        headless["spec"]["clusterIP"] = json!("None");
        headless["spec"]["publishNotReadyAddresses"] = json!(true);
        headless
    });
    let others = by_name
        .iter()
        .map(|(name, ports)| service(workload, name, ports));
    others.chain(of_headless).collect()
}

fn service(workload: &OwnedWorkload<'_>, name: &str, ports: &Ports) -> Value {
    let mut names = BTreeSet::new();
    let ports = ports.iter().map(|((port, protocol), name)| {
        // Names of ports are unique in a Service; names of sources, in a pipeline.
        let name = if names.insert(name.clone()) {
            name.clone()
        } else {
            dns_label(&format!(
                "{name}-{}-{port}",
                protocol.as_str().to_lowercase()
            ))
        };
        json!({"name": name, "port": port, "protocol": protocol.as_str(), "targetPort": port})
    });
    let ports: Vec<_> = ports.collect();
    let mut spec = json!({"selector": workload.match_labels()});
    if !ports.is_empty() {
        spec["ports"] = json!(ports);
    }
    let service = object("v1", "Service", workload.metadata(name));
    service.with("spec", spec).into()
}

//! Event collector: sends Kubernetes Events to the `kubernetes_events` sources of an aggregator. It is this program, or the event
//! collector of kaasops, whose configuration, log events and metrics are the same.

use lockstep_vector_api::{Aggregator, EventCollector};
use serde_json::{Map, Value, json};

use crate::owned::fields::Fields;
use crate::owned::labels::{self, Component};
use crate::owned::observed::ObservedAggregator;
use crate::owned::owned_workload::{OwnedWorkload, object};
use crate::owned::rbac::{self, Account};
use crate::owned::service::PipelineServices;
use crate::owned::{image, owned_workload, pod};

/// Port of the metrics of the event collector.
const METRICS_PORT: u16 = 8080;

/// Volume with the configuration.
const CONFIG: &str = "event-collector-config";

/// Name of the container.
const CONTAINER: &str = "event-collector";

/// Arguments of this program.
const ARGUMENTS: [&str; 2] = ["vector", "collect-events"];

/// Default number of events in a batch.
const MAX_BATCH_SIZE: i32 = 250;

/// Returns the objects of the event collector, if a pipeline has a `kubernetes_events` source.
pub(crate) fn desired(
    workload: &OwnedWorkload<'_>,
    aggregator: &Aggregator,
    services: &PipelineServices<'_>,
    observed: &ObservedAggregator<'_>,
) -> Vec<Value> {
    let receivers = receivers(services);
    if receivers.is_empty() {
        return Vec::new();
    }
    let name = workload.event_collector_name();
    let labels = labels::match_labels(&workload.name, Component::EventCollector);
    let metadata = || workload.metadata_with_labels(&name, &labels);
    let default = EventCollector::default();
    let settings = aggregator.event_collector.as_ref().unwrap_or(&default);
    let account = Account {
        workload,
        name: name.clone(),
        labels: labels.clone(),
        gives_token: true,
    };
    let mut objects = vec![account.service_account()];
    // Permissions in one namespace suffice unless Events of others are collected.
    let is_own = |receiver: &Receiver| receiver.watched_namespace == workload.namespace;
    let rule = rbac::of_event_collector();
    objects.extend(if receivers.iter().all(is_own) {
        account.in_namespace(&rule)
    } else {
        account.in_cluster(&rule)
    });
    let configuration = configuration(workload, settings, &receivers);
    let config_map = object("v1", "ConfigMap", metadata());
    let config_map = config_map.with("data", json!({"config.json": configuration}));
    objects.push(config_map.into());
    let port = json!({
        "name": "metrics", "port": METRICS_PORT, "protocol": "TCP", "targetPort": METRICS_PORT,
    });
    let spec = json!({"ports": [port], "selector": labels});
    let service = object("v1", "Service", metadata()).with("spec", spec);
    objects.push(service.into());
    objects.push(deployment(workload, aggregator, settings, observed));
    objects
}

/// Source to which the collector sends events.
struct Receiver {
    service: String,
    port: u16,
    /// Namespace of the events. Empty: all namespaces.
    watched_namespace: String,
}

fn receivers(services: &PipelineServices<'_>) -> Vec<Receiver> {
    let mut receivers = Vec::new();
    for (pipeline, service) in services.iter() {
        let ports = pipeline.ports.iter();
        for port in ports.filter(|port| port.is_for_events) {
            receivers.push(Receiver {
                service: service.to_owned(),
                port: port.port,
                watched_namespace: pipeline.pipeline.namespace.clone().unwrap_or_default(),
            });
        }
    }
    receivers.sort_by(|a, b| (a.port, &a.service).cmp(&(b.port, &b.service)));
    receivers
}

/// Returns the configuration, which the event collector reloads.
fn configuration(
    workload: &OwnedWorkload<'_>,
    settings: &EventCollector,
    receivers: &[Receiver],
) -> String {
    let receivers = receivers.iter().map(|receiver| {
        json!({
            "ServiceName": receiver.service,
            "ServiceNamespace": workload.namespace,
            "Port": receiver.port.to_string(),
            "WatchedNamespace": receiver.watched_namespace,
        })
    });
    let receivers: Vec<_> = receivers.collect();
    let size = settings.max_batch_size.filter(|size| *size > 0);
    let size = size.unwrap_or(MAX_BATCH_SIZE);
    json!({"MaxBatchSize": size, "Receivers": receivers}).to_string()
}

/// Returns the image of another event collector that the workload names. One that runs is not replaced: the Pods of a workload
/// that is taken over stay as they are.
fn foreign_image<'a>(
    collector: &'a EventCollector,
    observed: &ObservedAggregator<'a>,
) -> Option<&'a str> {
    let named = image::set(collector.image.as_deref());
    named.or_else(|| {
        let containers = &observed.event_collector?["spec"]["template"]["spec"]["containers"];
        let mut containers = containers.as_array()?.iter();
        let running = containers.find(|container| container["name"] == CONTAINER)?;
        let is_foreign = running["args"] != json!(ARGUMENTS);
        running["image"].as_str().filter(|_| is_foreign)
    })
}

/// Returns the security context of this program if the workload names none.
fn restricted() -> Map<String, Value> {
    let context = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
    });
    context.as_object().cloned().unwrap_or_default()
}

fn deployment(
    workload: &OwnedWorkload<'_>,
    aggregator: &Aggregator,
    collector: &EventCollector,
    observed: &ObservedAggregator<'_>,
) -> Value {
    let settings = workload.settings;
    let name = workload.event_collector_name();
    let labels = labels::match_labels(&workload.name, Component::EventCollector);
    let mut annotations = settings.annotations.clone();
    for (key, value) in [
        ("prometheus.io/port", METRICS_PORT.to_string()),
        ("prometheus.io/scrape", "true".to_owned()),
    ] {
        annotations.insert(key.to_owned(), value);
    }
    let metadata = owned_workload::metadata(&labels, &annotations);
    let policy = image::pull_policy(collector.image_pull_policy).unwrap_or("IfNotPresent");
    let mount = json!({"name": CONFIG, "mountPath": "/etc/event-collector"});
    let container = Fields::new()
        .with("name", CONTAINER)
        .with("imagePullPolicy", policy)
        .with("volumeMounts", vec![mount]);
    let security = settings.container_security_context.clone();
    let program = workload.cluster.program_image.as_deref();
    let container =
        match (foreign_image(collector, observed), program) {
            (None, Some(program)) => {
                let probe = |period_seconds: u32| {
                    let probe = json!({"path": "/healthz", "port": METRICS_PORT});
                    json!({"httpGet": probe, "periodSeconds": period_seconds, "timeoutSeconds": 5})
                };
                container
                .with("image", program)
                .with("args", ARGUMENTS.to_vec())
                .with("livenessProbe", probe(30))
                .with("readinessProbe", probe(10))
                .with("resources", json!({
                    "requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "256Mi"},
                }))
                .with("securityContext", security.unwrap_or_else(restricted))
            }
            (foreign, _) => container
                .with("image", foreign.unwrap_or(image::EVENT_COLLECTOR))
                .with_some("securityContext", security),
        };
    let volume = json!({"name": CONFIG, "configMap": {"name": name}});
    let pod = pod::scheduling(settings, Some(aggregator))
        .with("serviceAccountName", name.as_str())
        .with("volumes", vec![volume])
        .with("containers", vec![Value::from(container)]);
    let metadata = Value::from(metadata);
    let template = json!({"metadata": metadata, "spec": Value::from(pod)});
    let mut deployment_metadata = metadata;
    deployment_metadata["name"] = json!(name);
    deployment_metadata["namespace"] = json!(workload.namespace);
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": deployment_metadata,
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    })
}

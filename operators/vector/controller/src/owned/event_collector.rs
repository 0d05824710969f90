//! Event collector: sends Kubernetes Events to the `kubernetes_events` sources of an aggregator.

use lockstep_vector_api::{Aggregator, EventCollector};
use serde_json::{Value, json};

use crate::owned::fields::Fields;
use crate::owned::labels::{self, Component};
use crate::owned::owned_workload::{OwnedWorkload, object};
use crate::owned::rbac::{self, Account};
use crate::owned::service::PipelineServices;
use crate::owned::{image, owned_workload, pod};

/// Port of the metrics of the event collector.
const METRICS_PORT: u16 = 8080;

/// Volume with the configuration.
const CONFIG: &str = "event-collector-config";

/// Default number of events in a batch.
const MAX_BATCH_SIZE: i32 = 250;

/// Returns the objects of the event collector, if a pipeline has a `kubernetes_events` source.
pub(crate) fn desired(
    workload: &OwnedWorkload<'_>,
    aggregator: &Aggregator,
    services: &PipelineServices<'_>,
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
    objects.push(deployment(workload, aggregator, settings));
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

fn deployment(
    workload: &OwnedWorkload<'_>,
    aggregator: &Aggregator,
    collector: &EventCollector,
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
    let collector_image = image::set(collector.image.as_deref()).unwrap_or(image::EVENT_COLLECTOR);
    let mount = json!({"name": CONFIG, "mountPath": "/etc/event-collector"});
    let container = Fields::new()
        .with("name", "event-collector")
        .with("image", collector_image)
        .with("imagePullPolicy", policy)
        .with("volumeMounts", vec![mount])
        .with_some(
            "securityContext",
            settings.container_security_context.clone(),
        );
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

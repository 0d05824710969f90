//! Global options, and components that belong to no pipeline.

use lockstep_vector_api::WorkloadRole;
use serde_json::{Map, Value, json};

use crate::isolation::KUBERNETES_LOGS;
use crate::names::{DEFAULT_SINK, DEFAULT_SOURCE, METRICS_SINK, METRICS_SOURCE};
use crate::options::AssemblyOptions;
use crate::pipeline::PipelineKey;
use crate::services::{PipelineService, Protocol, ServicePort};

/// Folder in which Vector stores its data.
const DATA_DIR: &str = "/vector-data-dir";

/// Port of the source of an aggregator without pipelines.
const DEFAULT_PORT: u16 = 8989;

/// Address on which Vector serves its own metrics.
pub(crate) const METRICS_ADDRESS: &str = "[::]:9598";

/// Components that belong to no pipeline.
#[derive(Default)]
pub(crate) struct OwnComponents {
    pub(crate) sources: Map<String, Value>,
    pub(crate) sinks: Map<String, Value>,
    pub(crate) service: Option<PipelineService>,
}

/// Returns the global options.
pub(crate) fn options(options: &AssemblyOptions) -> Map<String, Value> {
    let mut global = Map::new();
    global.insert("data_dir".to_owned(), DATA_DIR.into());
    if let Some(api) = options.api {
        let api = json!({"enabled": true, "address": api.address.to_string()});
        global.insert("api".to_owned(), api);
    }
    if let Some(seconds) = options.expire_metrics_secs {
        global.insert("expire_metrics_secs".to_owned(), seconds.into());
    }
    global
}

/// Returns the components with which Vector serves its own metrics.
pub(crate) fn metrics() -> OwnComponents {
    let source = json!({"type": "internal_metrics"});
    let sink = json!({
        "type": "prometheus_exporter", "inputs": [METRICS_SOURCE], "address": METRICS_ADDRESS,
    });
    OwnComponents {
        sources: Map::from_iter([(METRICS_SOURCE.to_owned(), source)]),
        sinks: Map::from_iter([(METRICS_SINK.to_owned(), sink)]),
        service: None,
    }
}

/// Returns the components of a configuration without pipelines: Vector does not start without a source and a sink.
pub(crate) fn default_pipeline(options: &AssemblyOptions) -> OwnComponents {
    let (source, service) = match options.kind {
        WorkloadRole::Agent => {
            let mut source = json!({"type": KUBERNETES_LOGS});
            if options.use_api_server_cache {
                source["use_apiserver_cache"] = true.into();
            }
            (source, None)
        }
        WorkloadRole::Aggregator => {
            let source = json!({"type": "vector", "address": format!("[::]:{DEFAULT_PORT}")});
            (source, Some(default_service()))
        }
    };
    let sink = json!({
        "type": "blackhole", "inputs": [DEFAULT_SOURCE], "rate": 100, "print_interval_secs": 60,
    });
    OwnComponents {
        sources: Map::from_iter([(DEFAULT_SOURCE.to_owned(), source)]),
        sinks: Map::from_iter([(DEFAULT_SINK.to_owned(), sink)]),
        service,
    }
}

/// Returns the Service of an aggregator without pipelines, with the names that the operator of kaasops gives it.
fn default_service() -> PipelineService {
    PipelineService {
        pipeline: PipelineKey {
            namespace: Some("default".to_owned()),
            name: "default-pipeline".to_owned(),
        },
        service_name: None,
        ports: vec![ServicePort {
            name: "internal-metrics-source".to_owned(),
            port: DEFAULT_PORT,
            protocol: Protocol::Tcp,
            is_for_events: false,
        }],
    }
}

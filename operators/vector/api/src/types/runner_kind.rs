//! Role that runs a pipeline, derived from the types of its sources.

use lockstep_vector_config::KUBERNETES_EVENTS;
use serde_json::{Map, Value};

/// Role that runs a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunnerKind {
    /// Vector on every node, next to the data that it reads.
    Agent,
    /// Separate deployment of Vector, to which others send events.
    Aggregator,
}

/// Types of sources that agents run on every node.
const AGENT: &[&str] = &[
    "apache_metrics",
    "demo_logs",
    "dnstap",
    "docker_logs",
    "eventstoredb_metrics",
    "file",
    "host_metrics",
    "http_client",
    "internal_logs",
    "internal_metrics",
    "journald",
    "kubernetes_logs",
    "mongodb_metrics",
    "nginx_metrics",
    "opentelemetry",
    "postgresql_metrics",
    "prometheus_pushgateway",
    "prometheus_remote_write",
    "prometheus_scrape",
];

/// Types of sources that aggregators run: they receive events from others or fetch them from elsewhere.
const AGGREGATOR: &[&str] = &[
    "amqp",
    "aws_kinesis_firehose",
    "aws_s3",
    "aws_sqs",
    "datadog_agent",
    "fluent",
    "gcp_pubsub",
    "heroku_logs",
    "http_client",
    "http_server",
    "internal_logs",
    "internal_metrics",
    "kafka",
    KUBERNETES_EVENTS,
    "logstash",
    "nats",
    "opentelemetry",
    "pulsar",
    "redis",
    "socket",
    "splunk_hec",
    "statsd",
    "syslog",
    "vector",
];

impl RunnerKind {
    /// Returns the name that `status.role` contains.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Aggregator => "aggregator",
        }
    }

    /// Returns the role with a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut all = [Self::Agent, Self::Aggregator].into_iter();
        all.find(|role| role.as_str() == name)
    }

    /// Returns the role of a pipeline with these sources, if one role can run them all.
    #[must_use]
    pub fn of(sources: &Map<String, Value>) -> Option<Self> {
        if sources.is_empty() {
            return None;
        }
        let all = |types: &[&str]| {
            let mut kinds = sources.values().map(|source| source["type"].as_str());
            kinds.all(|kind| kind.is_some_and(|kind| types.contains(&kind)))
        };
        [(AGENT, Self::Agent), (AGGREGATOR, Self::Aggregator)]
            .into_iter()
            .find_map(|(types, role)| all(types).then_some(role))
    }

    /// Returns true if a role can run sources of this type.
    pub(crate) fn can_be_run(kind: &str) -> bool {
        AGENT.contains(&kind) || AGGREGATOR.contains(&kind)
    }
}

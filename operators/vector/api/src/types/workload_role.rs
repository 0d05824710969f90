//! Role that runs a pipeline, derived from the types of its sources.

use lockstep_vector_config::KUBERNETES_EVENTS;
use serde_json::{Map, Value};

/// Role that runs a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadRole {
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

impl WorkloadRole {
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

    /// Returns the role of a pipeline with these sources: agents if they can run them all, and aggregators otherwise,
    /// even if some sources are only for agents, as in the operator of kaasops. None if a source has a
    /// type that no role can run.
    #[must_use]
    pub fn of(sources: &Map<String, Value>) -> Option<Self> {
        let kinds = || sources.values().map(|source| source["type"].as_str());
        let all = |is: fn(&str) -> bool| kinds().all(|kind| kind.is_some_and(is));
        if sources.is_empty() || !all(Self::can_be_run) {
            None
        } else if all(|kind| AGENT.contains(&kind)) {
            Some(Self::Agent)
        } else {
            Some(Self::Aggregator)
        }
    }

    /// Returns true if some sources can be run only by agents and others only by aggregators.
    pub(crate) fn has_both(sources: &Map<String, Value>) -> bool {
        let mut kinds = sources.values().filter_map(|it| it["type"].as_str());
        Self::of(sources) == Some(Self::Aggregator) && kinds.any(Self::is_only_for_agents)
    }

    /// Returns true if only agents can run sources of this type.
    #[must_use]
    pub fn is_only_for_agents(kind: &str) -> bool {
        AGENT.contains(&kind) && !AGGREGATOR.contains(&kind)
    }

    /// Returns true if a role can run sources of this type.
    pub(crate) fn can_be_run(kind: &str) -> bool {
        AGENT.contains(&kind) || AGGREGATOR.contains(&kind)
    }
}

//! Periods and rates of zero, with which Vector panics.

use crate::component::ComponentKind;
use crate::component::ComponentKind::{Sink, Source, Transform};
use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::ComponentOptions;
use crate::start_up::sink_traits::SinkTrait;
use crate::vector_version::VectorVersion;

/// Options that must not be zero: family, type, option.
const POSITIVE: &[(ComponentKind, &str, &str)] = &[
    (Sink, "amqp", "max_channels"),
    (Sink, "kafka", "rate_limit_duration_secs"),
    (Sink, "kafka", "rate_limit_num"),
    (Sink, "nats", "request.rate_limit_duration_secs"),
    (Sink, "nats", "request.rate_limit_num"),
    (Sink, "postgres", "pool_size"),
    (Sink, "prometheus_exporter", "flush_period_secs"),
    (Source, "apache_metrics", "scrape_interval_secs"),
    (Source, "aws_ecs_metrics", "scrape_interval_secs"),
    (Source, "eventstoredb_metrics", "scrape_interval_secs"),
    (Source, "host_metrics", "scrape_interval_secs"),
    (Source, "http_client", "scrape_interval_secs"),
    (Source, "internal_metrics", "scrape_interval_secs"),
    (Source, "mongodb_metrics", "scrape_interval_secs"),
    (Source, "nginx_metrics", "scrape_interval_secs"),
    (Source, "okta", "scrape_interval_secs"),
    (Source, "postgresql_metrics", "scrape_interval_secs"),
    (Source, "prometheus_scrape", "scrape_interval_secs"),
    (Source, "static_metrics", "interval_secs"),
    (Transform, "aggregate", "interval_ms"),
    (Transform, "incremental_to_absolute", "cache.max_bytes"),
    (Transform, "incremental_to_absolute", "cache.max_events"),
    (Transform, "incremental_to_absolute", "cache.time_to_live"),
    (Transform, "reduce", "flush_period_ms"),
];

/// Options of the requests of a sink.
const OF_REQUESTS: [&str; 2] = ["request.rate_limit_num", "request.rate_limit_duration_secs"];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let own = POSITIVE
        .iter()
        .filter(|(family, kind, _)| options.is(*family, kind));
    let own = own.map(|(_, _, option)| *option);
    // From 0.58 on, a period of zero is one that is left out.
    let is_ignored =
        |option: &&str| options.version >= VectorVersion::V0_58 && *option == "flush_period_secs";
    let own = own.filter(|option| !is_ignored(option));
    let scheduled = "scheduled.exec_interval_secs";
    let is_scheduled = options.is_source(&["exec"]) && options.equals("mode", "scheduled");
    let scheduled = is_scheduled.then_some(scheduled);
    let of_requests = OF_REQUESTS
        .iter()
        .filter(|_| options.has_trait(SinkTrait::RateLimit));
    for option in own.chain(scheduled).chain(of_requests.copied()) {
        let found = options.get(option);
        if let Some(found) = found.filter(|found| found.value.as_f64() == Some(0.0)) {
            found.refuse("must be greater than 0: Vector panics at start", problems);
        }
    }
}

//! URIs that a component joins from several options.

use std::sync::LazyLock;

use lockstep_shared_validation::FieldPath;
use regex::Regex;

use crate::start_up::component_options::ComponentOptions;

/// End of an endpoint that is a site of Datadog.
static DATADOG: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?:[a-z]{2}\d\.)?(?:datadoghq\.[a-z]+|ddog-gov\.com)/*$";
    Regex::new(pattern).expect("the pattern is valid")
});

/// Returns the URIs that a component joins from its options: the option to report, its text, the URI.
pub(crate) fn joined<'a>(
    component: &str,
    options: &ComponentOptions<'a>,
) -> Vec<(FieldPath, &'a str, String)> {
    if options.has_text_endpoint() {
        return Vec::new();
    }
    let from = |option: &str, join: &dyn Fn(&str) -> String| {
        // An absolute URL stays one with a path behind it.
        let found = (!options.is_http_endpoint(option))
            .then(|| options.text(option))
            .flatten();
        found
            .map(|(path, text)| (path, text, join(text)))
            .into_iter()
            .collect::<Vec<_>>()
    };
    let below = |text: &str, path: &str| {
        let separator = if text.ends_with('/') { "" } else { "/" };
        format!("{text}{separator}{path}")
    };
    let datadog = |path: &str| {
        let mut found = from("site", &|text| {
            format!("https://api.{text}/api/v1/validate")
        });
        let endpoint = from("endpoint", &|text| format!("{text}{path}"));
        found.extend(
            endpoint
                .into_iter()
                .filter(|(_, text, _)| !is_site(options, text)),
        );
        found
    };
    match component {
        "sinks/appsignal" => from("endpoint", &|text| below(text, "vector/healthcheck")),
        "sinks/gcp_pubsub" => {
            let mut found = from("endpoint", &|text| format!("{text}/v1/projects/p/topics/t"));
            found.extend(from("project", &|text| {
                format!("https://h/v1/projects/{text}/topics/t")
            }));
            found.extend(from("topic", &|text| {
                format!("https://h/v1/projects/p/topics/{text}")
            }));
            found
        }
        "sinks/honeycomb" => {
            let mut found = from("endpoint", &|text| {
                format!("{}/1/batch/d", text.trim_end_matches('/'))
            });
            found.extend(from("dataset", &|text| {
                format!("https://api.honeycomb.io/1/batch/{text}")
            }));
            found
        }
        "sinks/influxdb_logs" | "sinks/influxdb_metrics" => {
            from("endpoint", &|text| below(text, "ping"))
        }
        "sinks/loki" => loki(options),
        "sinks/sematext_metrics" => from("endpoint", &|text| below(text, "write")),
        "sinks/datadog_events" => datadog("/api/v1/events"),
        "sinks/datadog_logs" => datadog("/api/v2/logs"),
        "sinks/datadog_metrics" => datadog("/api/v2/series"),
        "sinks/datadog_traces" => datadog("/api/v0.2/traces"),
        "sinks/gcp_chronicle_unstructured" => from("endpoint", &|text| {
            format!("{}/v2/logtypes", text.trim_end_matches('/'))
        }),
        "sinks/gcp_cloud_storage" => {
            let mut found = from("endpoint", &|text| format!("{text}/bucket/"));
            found.extend(from("bucket", &|text| format!("https://h/{text}/")));
            found
        }
        "sinks/gcp_stackdriver_metrics" => from("project_id", &|text| {
            format!("https://h/v3/projects/{text}/timeSeries")
        }),
        "sinks/azure_monitor_logs" => {
            let mut found = from("customer_id", &|text| format!("https://{text}.example.com"));
            found.extend(from("host", &|text| format!("https://id.{text}")));
            found
        }
        "sinks/new_relic" if options.equals("api", "events") => from("account_id", &|text| {
            format!("https://h/v1/accounts/{text}/events")
        }),
        "sinks/sematext_logs" => from("endpoint", &|text| format!("{text}/_test")),
        "sources/aws_ecs_metrics" => from("endpoint", &|text| format!("{text}/stats")),
        _ => Vec::new(),
    }
}

/// Returns true if an endpoint is a site of Datadog whose API an event is sent to, whatever the rest of the endpoint is.
pub(crate) fn is_site(options: &ComponentOptions<'_>, endpoint: &str) -> bool {
    options.is_sink(&["datadog_events"]) && DATADOG.is_match(endpoint)
}

fn loki<'a>(options: &ComponentOptions<'a>) -> Vec<(FieldPath, &'a str, String)> {
    let push = "loki/api/v1/push";
    let mut found = Vec::new();
    if let Some((path, text)) = options.text("endpoint") {
        // The rest of the endpoint is dropped.
        let kept = text
            .split('#')
            .next()
            .unwrap_or_default()
            .trim_end_matches('/');
        found.push((path, text, format!("{kept}/{push}")));
    }
    if let Some((path, text)) = options.text("path") {
        found.push((
            path,
            text,
            format!("http://h/{}", text.trim_start_matches('/')),
        ));
    }
    found
}

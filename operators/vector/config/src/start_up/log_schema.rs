//! Empty keys in the global option `log_schema`: components that need the key panic.

use lockstep_shared_validation::{FieldError, FieldPath};
use serde_json::{Map, Value};

use crate::component::ComponentKind::{Sink, Source, Transform};
use crate::component::{Component, ComponentKind, components};
use crate::diagnostic::{Check, DiagnosticList};

/// Global option with the keys.
const BLOCK: &str = "log_schema";

/// Component that needs a key.
struct Need {
    family: ComponentKind,
    /// Type of the component.
    kind: &'static str,
    /// Key that must not be empty.
    key: &'static str,
    /// If true, only events in the legacy namespace have the key.
    is_legacy: bool,
    /// Option of the component that takes the place of the key.
    instead: Option<&'static str>,
}

const fn need(family: ComponentKind, kind: &'static str, key: &'static str) -> Need {
    Need {
        family,
        kind,
        key,
        is_legacy: false,
        instead: None,
    }
}

const fn legacy(family: ComponentKind, kind: &'static str, key: &'static str) -> Need {
    Need {
        is_legacy: true,
        ..need(family, kind, key)
    }
}

const fn unless(kind: &'static str, key: &'static str) -> Need {
    Need {
        instead: Some(key),
        ..need(Sink, kind, key)
    }
}

const NEEDS: &[Need] = &[
    legacy(Source, "syslog", "message_key"),
    legacy(Source, "opentelemetry", "message_key"),
    legacy(Source, "kubernetes_logs", "message_key"),
    need(Source, "datadog_agent", "host_key"),
    need(Source, "datadog_agent", "source_type_key"),
    legacy(Transform, "metric_to_log", "host_key"),
    need(Transform, "remap", "metadata_key"),
    unless("influxdb_logs", "host_key"),
    unless("influxdb_logs", "message_key"),
    unless("influxdb_logs", "source_type_key"),
];

/// Codec of any source that needs the key of messages in the legacy namespace.
const SYSLOG: &str = "syslog";

pub(crate) fn validate(config: &Map<String, Value>, problems: &mut DiagnosticList) {
    let Some(schema) = config.get(BLOCK).and_then(Value::as_object) else {
        return;
    };
    for (key, value) in schema {
        if value != "" {
            continue;
        }
        let path = FieldPath::new(BLOCK).child(key);
        let needs = components(config).find(|component| is_needed(config, component, key));
        if let Some(component) = needs {
            let detail = format!(
                "must not be empty: the {} `{}` panics without it",
                component.family.noun(),
                component.id
            );
            problems.add(Check::StartUp, FieldError::required(path, detail));
        }
    }
}

fn is_needed(config: &Map<String, Value>, component: &Component<'_>, key: &str) -> bool {
    let is_legacy = is_legacy(config, component);
    let decodes_syslog = component.family == Source
        && key == "message_key"
        && is_legacy
        && component.value["decoding"]["codec"] == SYSLOG;
    let needs = NEEDS.iter().filter(|need| {
        need.family == component.family && Some(need.kind) == component.kind() && need.key == key
    });
    let has = |option: &str| component.option(option).is_some_and(|value| value != "");
    decodes_syslog
        || needs
            .into_iter()
            .any(|need| (is_legacy || !need.is_legacy) && !need.instead.is_some_and(has))
}

/// Returns true if the events of a component are in the legacy namespace.
fn is_legacy(config: &Map<String, Value>, component: &Component<'_>) -> bool {
    let global = config
        .get("schema")
        .and_then(|schema| schema.get("log_namespace"));
    let own = component.option("log_namespace");
    own.or(global) != Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::catalogue::Catalogue;
    use crate::confinement::OptOut;
    use crate::interpolation::Interpolation;
    use crate::start_up::validate_start_up;

    /// Returns true if an empty key is reported beside a component.
    fn is_reported(key: &str, block: &str, component: &Value) -> bool {
        let config = json!({"log_schema": {(key): ""}, (block): {"x": component}});
        let found = validate_start_up(
            Catalogue::shipped(),
            &config,
            OptOut::Author,
            Interpolation::Off,
        );
        let path = format!("log_schema.{key}");
        found
            .iter()
            .any(|problem| problem.error.path.to_string() == path)
    }

    #[test]
    fn a_key_must_not_be_empty_if_a_component_needs_it() {
        let remap = json!({"type": "remap", "inputs": ["in"], "source": "."});
        assert!(is_reported("metadata_key", "transforms", &remap));
        assert!(!is_reported("timestamp_key", "transforms", &remap));
        let nats = |codec: &str, is_new: bool| {
            json!({"type": "nats", "url": "nats://h", "subject": "s", "connection_name": "c",
                "decoding": {"codec": codec}, "log_namespace": is_new})
        };
        assert!(is_reported(
            "message_key",
            "sources",
            &nats("syslog", false)
        ));
        assert!(!is_reported(
            "message_key",
            "sources",
            &nats("syslog", true)
        ));
        assert!(!is_reported("message_key", "sources", &nats("json", false)));
        let influxdb = |key: &str| {
            json!({"type": "influxdb_logs", "endpoint": "http://h", "measurement": "m", "org": "o", "bucket": "b",
                "token": "t", "host_key": key})
        };
        assert!(is_reported("host_key", "sinks", &influxdb("")));
        assert!(!is_reported("host_key", "sinks", &influxdb("h")));
    }
}

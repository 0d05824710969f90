//! Texts and lists that the schema lets be empty and the start does not.

use serde_json::Value;

use crate::component::ComponentKind;
use crate::component::ComponentKind::{Sink, Source};
use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, require};

/// Options that must not be empty if they are set: family, type, option.
const NOT_EMPTY: &[(ComponentKind, &str, &str)] = &[
    (Sink, "azure_monitor_logs", "azure_resource_id"),
    (Sink, "azure_monitor_logs", "shared_key"),
    (Sink, "databricks_zerobus", "auth.client_id"),
    (Sink, "databricks_zerobus", "auth.client_secret"),
    (Sink, "databricks_zerobus", "ingestion_endpoint"),
    (Sink, "databricks_zerobus", "table_name"),
    (Sink, "databricks_zerobus", "unity_catalog_endpoint"),
    (Sink, "mqtt", "client_id"),
    (Sink, "redis", "endpoint"),
    (Sink, "redis", "key"),
    (Source, "exec", "command"),
    (Source, "file", "include"),
    (Source, "mqtt", "client_id"),
    (Source, "redis", "key"),
];

/// Options by which a sink authenticates in Azure.
const OF_AZURE: [&str; 5] = [
    "auth.azure_client_id",
    "auth.azure_client_secret",
    "auth.azure_tenant_id",
    "auth.client_assertion_client_id",
    "auth.client_assertion_tenant_id",
];

/// Sinks that authenticate in Azure.
const AZURE: &[&str] = &["azure_blob", "azure_logs_ingestion"];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let own = NOT_EMPTY
        .iter()
        .filter(|(family, kind, _)| options.is(*family, kind));
    let own = own.map(|(_, _, option)| *option);
    let of_azure = OF_AZURE.into_iter().filter(|_| options.is_sink(AZURE));
    let is_shuffled = options.is_source(&["demo_logs"]) && options.equals("format", "shuffle");
    let lines = is_shuffled.then_some("lines");
    for option in own.chain(of_azure).chain(lines) {
        let Some(found) = options.get(option) else {
            continue;
        };
        let is_empty = match found.value {
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        if is_empty {
            require(found.path, "must not be empty", problems);
        }
    }
}

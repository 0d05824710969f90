//! Texts of a form that only the start of Vector validates.

use std::sync::LazyLock;

use regex::Regex;

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, forbid, refuse, require};

/// Type of log of Azure Monitor.
static LOG_TYPE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\A[A-Za-z0-9_]{1,100}\z").expect("the pattern is valid"));

/// Options that become the value of an HTTP header: type of sink, option.
const HEADERS: [(&str, &str); 4] = [
    ("azure_monitor_logs", "azure_resource_id"),
    ("datadog_metrics", "default_api_key"),
    ("gcp_cloud_storage", "cache_control"),
    ("gcp_cloud_storage", "content_type"),
];

/// Options that become a part of an HTTP header and may have characters outside ASCII: type of sink, option.
const CONTROLLED: [(&str, &str); 3] = [
    ("axiom", "org_id"),
    ("azure_monitor_logs", "time_generated_key"),
    ("databricks_zerobus", "user_agent"),
];

/// Options that name a tenant of Azure.
const TENANTS: [&str; 2] = ["auth.azure_tenant_id", "auth.client_assertion_tenant_id"];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    for (kind, option) in HEADERS {
        if options.is_sink(&[kind])
            && let Some((path, text)) = options.text(option)
            && !text
                .chars()
                .all(|c| c == '\t' || c == ' ' || c.is_ascii_graphic())
        {
            let detail = "becomes an HTTP header: it cannot have line breaks, control characters and characters outside ASCII";
            forbid(path, detail, problems);
        }
    }
    if options.is_source(&["okta"])
        && let Some((path, text)) = options.text("token")
        && text.chars().any(|c| c != '\t' && c.is_ascii_control())
    {
        let detail = "becomes an HTTP header: it cannot have line breaks and control characters";
        forbid(path, detail, problems);
    }
    if options.is_sink(&["azure_blob", "azure_logs_ingestion"]) {
        for option in TENANTS {
            let Some((path, text)) = options.text(option) else {
                continue;
            };
            if !text
                .chars()
                .all(|c| c.is_alphanumeric() || ['.', '-'].contains(&c))
            {
                let detail = "must have only letters, digits, `.` and `-`";
                refuse(path, text, detail, problems);
            }
        }
    }
    if options.is_sink(&["azure_monitor_logs"])
        && let Some((path, text)) = options.text("log_type")
        && !LOG_TYPE.is_match(text)
    {
        let detail = "must have from 1 to 100 letters, digits and `_`";
        refuse(path, text, detail, problems);
    }
    for (kind, option) in CONTROLLED {
        if options.is_sink(&[kind])
            && let Some((path, text)) = options.text(option)
            && text
                .trim_end()
                .chars()
                .any(|c| c != '\t' && c.is_ascii_control())
        {
            let detail = "becomes a part of an HTTP header: it cannot have line breaks and control characters";
            forbid(path, detail, problems);
        }
    }
    if options.is_sink(&["databricks_zerobus"])
        && let Some((path, text)) = options.text("table_name")
    {
        let parts: Vec<_> = text.split('.').collect();
        if !text.is_empty() && (parts.len() != 3 || parts.contains(&"")) {
            let detail = "must be `catalog.schema.table`";
            refuse(path, text, detail, problems);
        }
    }
    if options.is_sink(&["pulsar"]) {
        pulsar(options, problems);
    }
}

/// Validates that one way to authenticate is complete.
fn pulsar(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if !options.has("auth") {
        return;
    }
    let [name, token, oauth2] =
        ["auth.name", "auth.token", "auth.oauth2"].map(|option| options.has(option));
    if !matches!(
        (name, token, oauth2),
        (true, true, false) | (false, false, true)
    ) {
        let detail = "must have `name` and `token`, or `oauth2`";
        require(options.path("auth"), detail, problems);
    }
}

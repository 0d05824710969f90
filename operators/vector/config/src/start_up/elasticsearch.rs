//! The sink `elasticsearch`.

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, forbid, refuse, require};
use crate::start_up::uri::{has_valid_authority, parse};

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if !options.is_sink(&["elasticsearch"]) {
        return;
    }
    let is_empty = |found: &serde_json::Value| found.as_array().is_some_and(Vec::is_empty);
    let has_list = options
        .get("endpoints")
        .is_some_and(|found| !is_empty(found.value));
    match (options.get("endpoint"), has_list) {
        (Some(found), true) => {
            let detail = "cannot be set beside `endpoints`; add it to that list";
            forbid(found.path, detail, problems);
        }
        (None, false) => {
            let detail =
                "Vector does not start without an endpoint, such as `https://example.com:9200`";
            require(options.path("endpoints"), detail, problems);
        }
        _ => {}
    }
    let mut endpoints = options.texts("endpoints");
    endpoints.extend(options.text("endpoint"));
    let is_basic = options.equals("auth.strategy", "basic");
    for (path, text) in endpoints {
        let Ok(uri) = parse(&format!("{text}/_test")) else {
            let detail =
                "must be a URI with a scheme and a host, such as `https://example.com:9200`";
            refuse(path, text, detail, problems);
            continue;
        };
        let Some(authority) = uri.authority() else {
            refuse(
                path,
                text,
                "must have a host, such as `https://example.com:9200`",
                problems,
            );
            continue;
        };
        if parse(text).is_err() || !has_valid_authority(&uri) {
            let detail = "must have a host and, if any, a port from 0 to 65535";
            refuse(path, text, detail, problems);
            continue;
        }
        if is_basic && authority.as_str().contains('@') {
            let detail = "cannot have a user name beside `auth`; remove one of them";
            forbid(path, detail, problems);
        }
    }
    amazon(options, problems);
    versions(options, problems);
}

/// Validates what Amazon `OpenSearch` requires.
fn amazon(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let is_signed = options.equals("auth.strategy", "aws");
    if is_signed && !options.has("aws.region") {
        let detail = "must be set with `auth.strategy: aws`";
        require(options.path("aws.region"), detail, problems);
    }
    if !options.equals("opensearch_service_type", "serverless") {
        return;
    }
    if !is_signed {
        let detail = "must be `aws` with `opensearch_service_type: serverless`";
        require(options.path("auth.strategy"), detail, problems);
    }
    if let Some(found) = options.get("api_version").filter(|it| it.value != "auto") {
        let detail = "must be `auto` with `opensearch_service_type: serverless`";
        found.refuse(detail, problems);
    }
}

/// Validates that a version is set exactly for external versions.
fn versions(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let kind = options.get("bulk.version_type");
    let kind = kind.as_ref().and_then(|found| found.value.as_str());
    let is_external = match kind {
        None | Some("internal") => false,
        Some("external" | "external_gte") => true,
        Some(_) => return,
    };
    match (is_external, options.get("bulk.version")) {
        (false, Some(found)) => {
            let detail =
                "has no effect with `version_type: internal`; set `external` or `external_gte`";
            forbid(found.path, detail, problems);
        }
        (true, None) => {
            let detail = "must be set with this `version_type`";
            require(options.path("bulk.version"), detail, problems);
        }
        (true, Some(_)) if !options.has("id_key") => {
            let detail = "must be set with this `bulk.version_type`";
            require(options.path("id_key"), detail, problems);
        }
        _ => {}
    }
}

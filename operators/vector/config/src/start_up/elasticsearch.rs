//! The sink `elasticsearch`.

use http_02::Uri;
use lockstep_shared_validation::FieldPath;
use url::form_urlencoded::Serializer;

use crate::diagnostic::DiagnosticList;
use crate::http_endpoint;
use crate::start_up::component_options::{ComponentOptions, forbid, refuse, require};
use crate::start_up::uri::{has_valid_authority, parse};

/// Maximum length of a URI in the library of Vector.
const LONGEST_URI: usize = 65_534;

/// Default of `request.timeout_secs`.
const TIMEOUT_SECS: u64 = 60;

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
        if options.is_http_endpoint("endpoint") {
            with_user(
                path,
                http_endpoint::parse(text).as_ref(),
                is_basic,
                problems,
            );
            continue;
        }
        let Ok(uri) = parse(&format!("{text}/_test")) else {
            let detail =
                "must be a URI with a scheme and a host, such as `https://example.com:9200`";
            refuse(path, text, detail, problems);
            continue;
        };
        if uri.authority().is_none() {
            refuse(
                path,
                text,
                "must have a host, such as `https://example.com:9200`",
                problems,
            );
            continue;
        }
        if parse(text).is_err() || !has_valid_authority(&uri) {
            let detail = "must have a host and, if any, a port from 0 to 65535";
            refuse(path, text, detail, problems);
            continue;
        }
        if text.len() + query_length(options) > LONGEST_URI {
            let detail = "with `query` and `pipeline`, must make a URI of at most 65534 bytes: Vector panics at start";
            forbid(path, detail, problems);
            continue;
        }
        with_user(path, Some(&uri), is_basic, problems);
    }
    amazon(options, problems);
    versions(options, problems);
}

/// Validates that an endpoint has no user beside the one of `auth`.
fn with_user(path: FieldPath, uri: Option<&Uri>, is_basic: bool, problems: &mut DiagnosticList) {
    let authority = uri.and_then(Uri::authority);
    if is_basic && authority.is_some_and(|authority| authority.as_str().contains('@')) {
        let detail = "cannot have a user name beside `auth`; remove one of them";
        forbid(path, detail, problems);
    }
}

/// Returns the length of the part of the URI that the sink adds to an endpoint.
fn query_length(options: &ComponentOptions<'_>) -> usize {
    let mut query = Serializer::new(String::new());
    let parameters = options.get("query");
    let parameters = parameters
        .as_ref()
        .and_then(|found| found.value.as_object());
    for (name, value) in parameters.into_iter().flatten() {
        let values = value
            .as_array()
            .map_or(std::slice::from_ref(value), Vec::as_slice);
        for value in values {
            // A parameter with a type is an object with its value.
            let text = value.as_str().or_else(|| value["value"].as_str());
            query.append_pair(name, text.unwrap_or_default());
        }
    }
    if let Some((_, pipeline)) = options.text("pipeline") {
        query.append_pair("pipeline", pipeline);
    }
    let timeout = options.get("request.timeout_secs");
    let timeout = timeout.and_then(|found| found.value.as_u64());
    query.append_pair("timeout", &format!("{}s", timeout.unwrap_or(TIMEOUT_SECS)));
    "/_bulk?".len() + query.finish().len()
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

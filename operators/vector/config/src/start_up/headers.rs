//! HTTP headers of requests.

use http_02::{HeaderName, HeaderValue};

use crate::diagnostic::DiagnosticList;
use crate::option_path::below;
use crate::start_up::component_options::{ComponentOptions, forbid, refuse};

/// Sinks that validate the headers when they are built: type, option.
const WITH_HEADERS: [(&str, &str); 5] = [
    ("axiom", "request.headers"),
    ("aws_cloudwatch_logs", "request.headers"),
    ("datadog_logs", "request.headers"),
    ("http", "request.headers"),
    ("prometheus_remote_write", "request.headers"),
];

/// Sinks that authorize their requests if `auth` is set.
const AUTHORIZED: [&str; 2] = ["http", "prometheus_remote_write"];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    for (kind, option) in WITH_HEADERS {
        if !options.is_sink(&[kind]) {
            continue;
        }
        let Some(found) = options.get(option) else {
            continue;
        };
        let has_auth = kind == "axiom" || (AUTHORIZED.contains(&kind) && options.has("auth"));
        for (name, value) in found.value.as_object().into_iter().flatten() {
            let path = below(&found.path, name);
            if options.is_replaced(name) {
                continue;
            }
            if HeaderName::from_bytes(name.as_bytes()).is_err() {
                let detail =
                    "the name of an HTTP header has only letters, digits and `-_.!#$%&'*+^|~`";
                refuse(path, name, detail, problems);
                continue;
            }
            if has_auth && name.eq_ignore_ascii_case("authorization") {
                let detail = "cannot be set: the sink authorizes its requests by other options";
                forbid(path, detail, problems);
                continue;
            }
            let text = value.as_str().unwrap_or_default();
            if !options.is_replaced(text) && HeaderValue::from_bytes(text.as_bytes()).is_err() {
                let detail =
                    "the value of an HTTP header cannot have line breaks or control characters";
                forbid(path, detail, problems);
            }
        }
    }
}

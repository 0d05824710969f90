//! HTTP headers of requests.

use http_02::{HeaderName, HeaderValue};

use crate::diagnostic::DiagnosticList;
use crate::option_path::below;
use crate::start_up::after_start::at_once;
use crate::start_up::component_options::{ComponentOptions, forbid, refuse};
use crate::vector_version::VectorVersion;

/// Sinks that validate the headers when they are built: type, option, characters of the values.
const WITH_HEADERS: [(&str, &str, Characters); 6] = [
    ("axiom", "request.headers", Characters::All),
    ("aws_cloudwatch_logs", "request.headers", Characters::Ascii),
    ("datadog_logs", "request.headers", Characters::All),
    ("gcp_cloud_storage", "metadata", Characters::Ascii),
    ("http", "request.headers", Characters::All),
    (
        "prometheus_remote_write",
        "request.headers",
        Characters::All,
    ),
];

/// Characters that a component accepts in the value of a header, besides tabs.
#[derive(Clone, Copy, PartialEq)]
enum Characters {
    /// All but control characters.
    All,
    /// All of ASCII but control characters.
    Ascii,
}

const NAME: &str = "the name of an HTTP header has only letters, digits and `-_.!#$%&'*+^|~`";

const VALUE: &str = "the value of an HTTP header cannot have line breaks or control characters";

/// Sinks that authorize their requests if `auth` is set.
const AUTHORIZED: [&str; 2] = ["http", "prometheus_remote_write"];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if options.is_source(&["http_client"]) {
        of_requests(options, problems);
    }
    for (kind, option, characters) in WITH_HEADERS {
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
                refuse(path, name, NAME, problems);
                continue;
            }
            if has_auth && name.eq_ignore_ascii_case("authorization") {
                let detail = "cannot be set: the sink authorizes its requests by other options";
                forbid(path, detail, problems);
                continue;
            }
            let characters = match kind {
                "aws_cloudwatch_logs" if options.version >= VectorVersion::V0_58 => Characters::All,
                _ => characters,
            };
            let text = value.as_str().unwrap_or_default();
            if !options.is_replaced(text) && !is_value(text, characters) {
                let detail = match characters {
                    Characters::All => VALUE,
                    Characters::Ascii => {
                        "the value of this HTTP header has only characters of ASCII, and no line breaks or control characters"
                    }
                };
                forbid(path, detail, problems);
            }
        }
    }
}

fn is_value(text: &str, characters: Characters) -> bool {
    let is_known = characters == Characters::All || text.is_ascii();
    is_known && HeaderValue::from_bytes(text.as_bytes()).is_ok()
}

/// Validates the headers of a source that sends requests. The first request follows the start, and Vector panics if it
/// has an invalid header.
fn of_requests(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let Some(found) = options.get("headers") else {
        return;
    };
    for (name, values) in found.value.as_object().into_iter().flatten() {
        let path = below(&found.path, name);
        let values = values.as_array().into_iter().flatten().enumerate();
        let values = values.filter_map(|(index, value)| Some((index, value.as_str()?)));
        for (index, text) in values {
            if !options.is_replaced(name) && HeaderName::from_bytes(name.as_bytes()).is_err() {
                at_once(path.clone(), NAME, problems);
                break;
            }
            if !options.is_replaced(text) && !is_value(text, Characters::All) {
                at_once(path.index(index), VALUE, problems);
            }
        }
    }
}

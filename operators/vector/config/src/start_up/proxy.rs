//! HTTP proxies of components.

use lockstep_shared_validation::FieldPath;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use url::Url;

use crate::catalogue::Catalogue;
use crate::component::components;
use crate::diagnostic::DiagnosticList;
use crate::interpolation::Interpolation;
use crate::start_up::component_options::{ComponentOptions, forbid, refuse};
use crate::start_up::sink_traits::SinkTrait;
use crate::start_up::uri::parse;

/// Sources whose HTTP client uses the proxy.
const SOURCES: &[&str] = &[
    "apache_metrics",
    "aws_ecs_metrics",
    "aws_s3",
    "aws_sqs",
    "eventstoredb_metrics",
    "http_client",
    "nginx_metrics",
    "okta",
    "prometheus_scrape",
];

/// Addresses of proxies.
const ADDRESSES: [&str; 2] = ["http", "https"];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if !uses_proxy(options) {
        return;
    }
    for option in ADDRESSES {
        if let Some((path, text)) = options.text(&format!("proxy.{option}")) {
            address(path, text, problems);
        }
    }
}

/// Validates the proxies of all components, if a component uses them.
pub(crate) fn validate_global(
    catalogue: &Catalogue,
    config: &Map<String, Value>,
    interpolation: Interpolation,
    problems: &mut DiagnosticList,
) {
    let Some(proxy) = config.get("proxy") else {
        return;
    };
    if proxy["enabled"] == false {
        return;
    }
    for option in ADDRESSES {
        let Some(text) = proxy[option].as_str() else {
            continue;
        };
        let uses = |component| {
            let options = ComponentOptions::new(catalogue, &component, interpolation);
            options.is_some_and(|it| uses_proxy(&it) && !it.has(&format!("proxy.{option}")))
        };
        if !interpolation.is_replaced(text) && components(config).any(uses) {
            address(FieldPath::new("proxy").child(option), text, problems);
        }
    }
}

/// Returns true if the HTTP client of a component uses a proxy.
fn uses_proxy(options: &ComponentOptions<'_>) -> bool {
    let is_client = options.has_trait(SinkTrait::Proxy) || options.is_source(SOURCES);
    is_client && !options.is_false("proxy.enabled")
}

fn address(path: FieldPath, text: &str, problems: &mut DiagnosticList) {
    if parse(text).is_err() {
        let detail = "must be a URI, such as `http://proxy:3128`";
        refuse(path, text, detail, problems);
    } else if !has_text_as_user(text) {
        let detail = "the user name and the password, with `%` as escape, must be UTF-8";
        forbid(path, detail, problems);
    }
}

/// Returns true if the user name and the password of a URL can be decoded. Without a password, Vector decodes neither.
fn has_text_as_user(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else {
        return true;
    };
    url.password().is_none_or(|password| {
        let parts = [url.username(), password];
        let mut parts = parts.into_iter();
        parts.all(|part| percent_decode_str(part).decode_utf8().is_ok())
    })
}

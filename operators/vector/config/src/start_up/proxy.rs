//! HTTP proxies of components.

use percent_encoding::percent_decode_str;
use url::Url;

use crate::diagnostic::DiagnosticList;
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

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let is_disabled = options
        .get("proxy.enabled")
        .is_some_and(|found| found.value == false);
    if is_disabled || !(options.has_trait(SinkTrait::Proxy) || options.is_source(SOURCES)) {
        return;
    }
    for option in ["proxy.http", "proxy.https"] {
        let Some((path, text)) = options.text(option) else {
            continue;
        };
        if parse(text).is_err() {
            refuse(
                path,
                text,
                "must be a URI, such as `http://proxy:3128`",
                problems,
            );
        } else if !has_text_as_user(text) {
            let detail = "the user name and the password, with `%` as escape, must be UTF-8";
            forbid(path, detail, problems);
        }
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

//! Endpoints that Vector reads as a text and, from 0.58 on, requires to be absolute URLs when it validates a sink.

use http_02::Uri;

use crate::diagnostic::DiagnosticList;
use crate::http_endpoint;
use crate::start_up::component_options::{ComponentOptions, refuse};
use crate::start_up::joined_uri;
use crate::start_up::uri::parse;
use crate::vector_version::VectorVersion;

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if options.version >= VectorVersion::V0_58 && options.is_sink(&["doris"]) {
        // The scheme must be written, and the port may be empty.
        let is_http = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https"));
        for (path, text) in options.texts("endpoints") {
            if !parse(text).is_ok_and(|uri| is_http(&uri) && uri.host().is_some()) {
                refuse(path, text, http_endpoint::EXPECTED, problems);
            }
        }
    }
    if !options.has_text_endpoint() {
        return;
    }
    if let Some((path, text)) = options.text("endpoint")
        && http_endpoint::parse(text).is_none()
        && !joined_uri::is_site(options, text)
    {
        refuse(path, text, http_endpoint::EXPECTED, problems);
    }
    // The site matters only without an endpoint.
    if !options.has("endpoint")
        && let Some((path, text)) = options.text("site")
        && http_endpoint::parse(&format!("https://api.{text}")).is_none()
    {
        let detail = "must be the name of a host, such as `datadoghq.com`";
        refuse(path, text, detail, problems);
    }
}

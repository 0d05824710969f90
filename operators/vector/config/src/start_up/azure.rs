//! Sinks for the logs of Azure.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http_02::uri::PathAndQuery;

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, forbid, refuse};

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if options.is_sink(&["azure_logs_ingestion"]) {
        for option in ["stream_name", "dcr_immutable_id"] {
            let Some((path, text)) = options.text(option) else {
                continue;
            };
            let is_part = format!("/dataCollectionRules/d/streams/{text}").parse::<PathAndQuery>();
            if is_part.is_err() {
                let detail = "must be a part of a URI: without spaces and characters outside ASCII";
                refuse(path, text, detail, problems);
            }
        }
    }
    if options.is_sink(&["azure_monitor_logs"])
        && let Some((path, key)) = options.text("shared_key")
        && BASE64_STANDARD.decode(key.trim()).is_err()
    {
        forbid(path, "must be base64, as Azure shows it", problems);
    }
}

//! Sinks for Azure.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http_02::uri::PathAndQuery;

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, forbid, refuse, require};

/// Options of `azure_blob`, one of which selects the account.
const ACCOUNT: [&str; 3] = ["connection_string", "account_name", "blob_endpoint"];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if options.is_sink(&["azure_blob"]) {
        blob(options, problems);
    }
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

fn blob(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if !ACCOUNT.iter().any(|option| options.has(option)) {
        let detail =
            "or `account_name` or `blob_endpoint`: Vector does not start without one of them";
        require(options.path(ACCOUNT[0]), detail, problems);
    }
    for option in ["account_name", "blob_endpoint"] {
        if options.has(option) && !options.has("auth") {
            let detail = format!("must be set together with `{option}`");
            require(options.path("auth"), detail, problems);
        }
    }
    let Some((path, text)) = options.text("connection_string") else {
        return;
    };
    let segments = text
        .split(';')
        .map(str::trim)
        .filter(|segment| !segment.is_empty());
    let mut account_key = None;
    let mut names_account = false;
    for segment in segments {
        let Some((name, value)) = segment.split_once('=') else {
            let detail = "must have the form `name=value`, separated by `;`";
            return forbid(path, detail, problems);
        };
        names_account |=
            ["accountname", "blobendpoint"].contains(&name.trim().to_ascii_lowercase().as_str());
        if name.trim().eq_ignore_ascii_case("AccountKey") {
            account_key = Some(value.trim());
        }
    }
    if !names_account {
        return forbid(path, "must have `AccountName` or `BlobEndpoint`", problems);
    }
    let is_base64 = |key: &str| BASE64_STANDARD.decode(key).is_ok();
    if !options.has("auth") && !account_key.is_none_or(is_base64) {
        forbid(
            path,
            "the value of `AccountKey` must be base64, as Azure shows it",
            problems,
        );
    }
}

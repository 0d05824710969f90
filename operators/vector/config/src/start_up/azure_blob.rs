//! The sink `azure_blob`: its connection string, its URL, and its proxies.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use url::{ParseError, Url};

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, forbid, refuse, require};

/// Options, one of which selects the account.
const ACCOUNT: [&str; 3] = ["connection_string", "account_name", "blob_endpoint"];

const URL: &str = "must make a URL with a host, such as `https://example.com/account`";

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if !options.is_sink(&["azure_blob"]) {
        return;
    }
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
    proxies(options, problems);
    let container = options.text("container_name");
    if let Some((path, endpoint)) = options.text("blob_endpoint") {
        // The container is a part of the path: it is never the reason for a URL without host.
        let name = container.as_ref().map_or("c", |(_, name)| *name);
        if let Some(detail) = wrong_url(&container_url(endpoint, name, None), options.has("auth")) {
            refuse(path, endpoint, detail, problems);
        }
    }
    let Some((path, text)) = options.text("connection_string") else {
        return;
    };
    let name = container.map_or("c", |(_, name)| name);
    if let Some(detail) = wrong_connection_string(text, name, options.has("auth")) {
        forbid(path, detail, problems);
    }
}

/// Returns the error of a connection string. `has_auth` is true if the sink has another way to authenticate.
fn wrong_connection_string(text: &str, container: &str, has_auth: bool) -> Option<&'static str> {
    let segments = text.split(';').map(str::trim);
    let mut values = BTreeMap::new();
    for segment in segments.filter(|segment| !segment.is_empty()) {
        let Some((name, value)) = segment.split_once('=') else {
            return Some("must have the form `name=value`, separated by `;`");
        };
        values.insert(name.trim().to_ascii_lowercase(), value.trim());
    }
    let value = |name: &str| values.get(name).copied();
    let Some(base) = endpoint(&value) else {
        return Some("must have `AccountName` or `BlobEndpoint`");
    };
    let signature = value("sharedaccesssignature").map(|it| it.trim_start_matches('?'));
    let key = value("accountkey").filter(|_| value("accountname").is_some());
    if has_auth && key.is_some() {
        return Some("cannot have `AccountKey` beside `auth`; remove one of them");
    }
    if has_auth && signature.is_some() {
        return Some("cannot have `SharedAccessSignature` beside `auth`; remove one of them");
    }
    if key.is_some_and(|key| BASE64_STANDARD.decode(key).is_err()) {
        return Some("the value of `AccountKey` must be base64, as Azure shows it");
    }
    wrong_url(&container_url(&base, container, signature), has_auth)
}

/// Returns the URL of the account that a connection string describes.
fn endpoint<'a>(value: &dyn Fn(&str) -> Option<&'a str>) -> Option<String> {
    if let Some(endpoint) = value("blobendpoint") {
        return Some(endpoint.to_owned());
    }
    let account = value("accountname")?;
    let is_emulated =
        value("usedevelopmentstorage").is_some_and(|it| it.eq_ignore_ascii_case("true"));
    let scheme = value("defaultendpointsprotocol").map(str::to_ascii_lowercase);
    let scheme = scheme.filter(|it| ["http", "https"].contains(&it.as_str()));
    let scheme = scheme.as_deref();
    if !is_emulated {
        let scheme = scheme.unwrap_or("https");
        let suffix = value("endpointsuffix").unwrap_or("core.windows.net");
        return Some(format!("{scheme}://{account}.blob.{suffix}"));
    }
    let proxy = value("developmentstorageproxyuri").map(|it| it.trim_end_matches('/'));
    let host = proxy.unwrap_or("127.0.0.1:10000");
    Some(
        if ["http://", "https://"]
            .iter()
            .any(|it| host.starts_with(it))
        {
            format!("{host}/{account}")
        } else {
            format!("{}://{host}/{account}", scheme.unwrap_or("http"))
        },
    )
}

fn container_url(base: &str, container: &str, signature: Option<&str>) -> String {
    let url = format!("{}/{container}", base.strip_suffix('/').unwrap_or(base));
    match signature {
        None | Some("") => url,
        Some(query) if url.contains('?') => format!("{url}&{query}"),
        Some(query) => format!("{url}?{query}"),
    }
}

fn wrong_url(url: &str, has_auth: bool) -> Option<&'static str> {
    let Ok(url) = Url::parse(url) else {
        return Some(URL);
    };
    if url.cannot_be_a_base() {
        Some(URL)
    } else if has_auth && !url.scheme().starts_with("https") {
        Some("must make a URL that begins with `https://`, because `auth` sends credentials to it")
    } else {
        None
    }
}

/// Validates the proxies, which this sink parses as URLs with or without a scheme.
fn proxies(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    // Which hosts are reached without a proxy depends on a list.
    if options.is_false("proxy.enabled") || options.has("proxy.no_proxy") {
        return;
    }
    for option in ["proxy.http", "proxy.https"] {
        let Some((path, text)) = options.text(option) else {
            continue;
        };
        let has_host = |text: &str| Url::parse(text).map(|url| url.has_host());
        let is_valid = match has_host(text) {
            Ok(true) => true,
            // The text up to a colon may have been read as a scheme.
            Ok(false) | Err(ParseError::RelativeUrlWithoutBase) => has_host_with_scheme(text),
            Err(_) => false,
        };
        if !is_valid {
            let detail = "must be the URL of a proxy, such as `http://proxy:3128`";
            refuse(path, text, detail, problems);
        }
    }
}

fn has_host_with_scheme(text: &str) -> bool {
    Url::parse(&format!("http://{text}")).is_ok_and(|url| url.has_host())
}

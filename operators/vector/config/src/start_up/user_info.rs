//! Two ways to authenticate: user and password in a URI, and the options of `auth`.

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, forbid};
use crate::start_up::uri::parse;

/// Sinks whose URI cannot have a user beside `auth`: type, option.
const URIS: [(&str, &str); 4] = [
    ("clickhouse", "endpoint"),
    ("databend", "endpoint"),
    ("doris", "endpoints"),
    ("loki", "endpoint"),
];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    for (kind, option) in URIS {
        if !options.is_sink(&[kind]) || !options.has("auth") {
            continue;
        }
        let mut texts = options.texts(option);
        texts.extend(options.text(option));
        for (path, text) in texts {
            if has_user(text) {
                let detail = "cannot have a user name beside `auth`; remove one of them";
                forbid(path, detail, problems);
            }
        }
    }
}

/// Returns true if a URI has the name of a user.
pub(crate) fn has_user(text: &str) -> bool {
    let Ok(uri) = parse(text) else {
        return false;
    };
    let authority = uri.authority().map(|authority| authority.as_str());
    let user = authority.and_then(|authority| authority.rsplit_once('@'));
    user.is_some_and(|(user, _)| user.split(':').next().is_some_and(|name| !name.is_empty()))
}

//! The sink `databend`: authentication, and the parameters of its address.

use url::Url;

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, forbid, refuse};

/// Strategies of `auth` that the sink does not have.
const UNSUPPORTED: [&str; 2] = ["bearer", "custom"];

/// Function that returns true if a parameter can have a value.
type IsValue = fn(&str) -> bool;

/// Parameters of an address, with a description of their values. Others are settings of the session.
const PARAMETERS: [(&str, &str, IsValue); 9] = [
    ("wait_time_secs", "an integer", is_integer),
    ("max_rows_in_buffer", "an integer", is_integer),
    ("max_rows_per_page", "an integer", is_integer),
    ("connect_timeout", "a number of seconds", is_natural),
    (
        "page_request_timeout_secs",
        "a number of seconds",
        is_natural,
    ),
    ("presign", "`auto`, `detect`, `on` or `off`", |value| {
        ["auto", "detect", "on", "off"].contains(&value)
    }),
    ("sslmode", "`disable`, `require` or `enable`", |value| {
        ["disable", "require", "enable"].contains(&value)
    }),
    ("login", "`enable` or `disable`", is_switch),
    ("session_token", "`enable` or `disable`", is_switch),
];

fn is_integer(value: &str) -> bool {
    value.parse::<i64>().is_ok()
}

fn is_natural(value: &str) -> bool {
    value.parse::<u64>().is_ok()
}

fn is_switch(value: &str) -> bool {
    ["enable", "disable"].contains(&value)
}

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if !options.is_sink(&["databend"]) {
        return;
    }
    if UNSUPPORTED
        .iter()
        .any(|it| options.equals("auth.strategy", it))
    {
        let detail = "cannot be used for this sink: set `basic`, or a user in `endpoint`";
        forbid(options.path("auth.strategy"), detail, problems);
    }
    let Some((path, text)) = options.text("endpoint") else {
        return;
    };
    // From the address of another scheme, Vector takes only the host.
    let Some(url) = Url::parse(text)
        .ok()
        .filter(|url| url.scheme() == "databend")
    else {
        return;
    };
    let wrong = url.query_pairs().find_map(|(name, value)| {
        let known = PARAMETERS.iter().find(|(known, ..)| *known == name)?;
        let (name, values, is_valid) = known;
        (!is_valid(&value)).then(|| format!("the parameter `{name}` must be {values}"))
    });
    if let Some(detail) = wrong {
        refuse(path, text, detail, problems);
    }
}

//! Options that are passed to librdkafka, which validates them when its client is made.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use crate::component::ComponentKind;
use crate::diagnostic::DiagnosticList;
use crate::interpolation::Interpolation;
use crate::start_up::component_options::{ComponentOptions, SetOption, refuse, require};

/// Configuration properties of librdkafka 2.12.
///
/// <https://github.com/confluentinc/librdkafka/blob/v2.12.1/CONFIGURATION.md>
static PROPERTIES: LazyLock<BTreeMap<&str, Property>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("librdkafka.json")).expect("the table is valid")
});

/// Values of a configuration property.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Property {
    /// An integer from the first to the second number.
    Integer(i64, i64),
    /// A number from the first to the second one.
    Number(f64, f64),
    /// One of these texts, in any case.
    OneOf(Vec<String>),
    /// Any text. The flag has no meaning.
    Text(#[expect(dead_code, reason = "the value of a map entry")] bool),
}

/// Options of Vector that become properties: family, option, property, factor.
const OPTIONS: &[(ComponentKind, &str, &str, f64)] = &[
    (ComponentKind::Sink, "batch.max_bytes", "batch.size", 1.0),
    (
        ComponentKind::Sink,
        "batch.max_events",
        "batch.num.messages",
        1.0,
    ),
    (
        ComponentKind::Sink,
        "batch.timeout_secs",
        "queue.buffering.max.ms",
        1_000.0,
    ),
    (
        ComponentKind::Sink,
        "message_timeout_ms",
        "message.timeout.ms",
        1.0,
    ),
    (
        ComponentKind::Sink,
        "socket_timeout_ms",
        "socket.timeout.ms",
        1.0,
    ),
    (
        ComponentKind::Source,
        "fetch_wait_max_ms",
        "fetch.wait.max.ms",
        1.0,
    ),
    (
        ComponentKind::Source,
        "session_timeout_ms",
        "session.timeout.ms",
        1.0,
    ),
    (
        ComponentKind::Source,
        "socket_timeout_ms",
        "socket.timeout.ms",
        1.0,
    ),
];

/// Values of `auto_offset_reset`.
const OFFSETS: [&str; 7] = [
    "beginning",
    "earliest",
    "end",
    "error",
    "largest",
    "latest",
    "smallest",
];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if options.kind != "kafka" {
        return;
    }
    for (_, option, property, factor) in OPTIONS
        .iter()
        .filter(|(family, ..)| *family == options.family)
    {
        let Some(found) = options.get(option) else {
            continue;
        };
        let Some((minimum, maximum)) = PROPERTIES.get(property).and_then(Property::range) else {
            continue;
        };
        let number = found.value.as_f64().map(|number| number * factor);
        if number.is_some_and(|number| number < minimum || number > maximum) {
            let detail = format!("must be from {} to {}", minimum / factor, maximum / factor);
            found.refuse(detail, problems);
        }
    }
    if options.family == ComponentKind::Source
        && let Some((path, text)) = options.text("auto_offset_reset")
        && !OFFSETS
            .iter()
            .any(|offset| offset.eq_ignore_ascii_case(text))
    {
        refuse(
            path,
            text,
            format!("must be one of {}", OFFSETS.join(", ")),
            problems,
        );
    }
    let properties = options.get("librdkafka_options");
    if let Some(properties) = &properties {
        for (name, value) in properties.value.as_object().into_iter().flatten() {
            let path = properties.path.key(name);
            let found = SetOption { path, value };
            property(name, found, options.interpolation, problems);
        }
    }
    if options.is_true("sasl.enabled") {
        let properties = properties
            .as_ref()
            .and_then(|found| found.value.as_object());
        mechanism(
            options,
            |name| properties.and_then(|them| them.get(name)),
            problems,
        );
    }
}

impl Property {
    fn range(&self) -> Option<(f64, f64)> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "the limits fit into 32 bits")]
            Self::Integer(minimum, maximum) => Some((*minimum as f64, *maximum as f64)),
            Self::Number(minimum, maximum) => Some((*minimum, *maximum)),
            Self::OneOf(_) | Self::Text(_) => None,
        }
    }
}

/// Validates a property that is named in the configuration.
fn property(
    name: &str,
    found: SetOption<'_>,
    interpolation: Interpolation,
    problems: &mut DiagnosticList,
) {
    let Some(text) = found
        .value
        .as_str()
        .filter(|text| !interpolation.is_replaced(text))
    else {
        return;
    };
    let Some(property) = PROPERTIES.get(name) else {
        let detail = "is not a configuration property of librdkafka";
        return refuse(found.path, name, detail, problems);
    };
    match property {
        Property::Integer(minimum, maximum) => {
            let detail = format!("must be an integer from {minimum} to {maximum}");
            let digits = text.trim_start().trim_start_matches(['+', '-']);
            let is_decimal = !digits.starts_with('0') || digits.len() == 1;
            // Another notation, such as `0x10`, is left to librdkafka.
            let is_refused = match text.trim().parse::<i64>() {
                Ok(number) => is_decimal && !(*minimum..=*maximum).contains(&number),
                Err(_) => !digits.starts_with(|c: char| c.is_ascii_digit()),
            };
            if is_refused {
                refuse(found.path, text, detail, problems);
            }
        }
        Property::Number(minimum, maximum) => {
            let number = text.trim().parse::<f64>();
            if number.is_ok_and(|number| number < *minimum || number > *maximum) {
                let detail = format!("must be a number from {minimum} to {maximum}");
                refuse(found.path, text, detail, problems);
            }
        }
        Property::OneOf(values) => {
            if !values.iter().any(|value| value.eq_ignore_ascii_case(text)) {
                refuse(
                    found.path,
                    text,
                    format!("must be one of {}", values.join(", ")),
                    problems,
                );
            }
        }
        Property::Text(_) => {}
    }
}

/// Validates the SASL mechanism.
fn mechanism<'a>(
    options: &ComponentOptions<'a>,
    property: impl Fn(&str) -> Option<&'a Value>,
    problems: &mut DiagnosticList,
) {
    let named = ["sasl.mechanisms", "sasl.mechanism"];
    if named.iter().any(|name| property(name).is_some()) {
        return;
    }
    // The default command names the keytab; another one may not need it.
    let command = property("sasl.kerberos.kinit.cmd").and_then(Value::as_str);
    let has_own_command = command.is_some_and(|it| !it.contains("%{sasl.kerberos.keytab}"));
    let has_credentials = has_own_command || property("sasl.kerberos.keytab").is_some();
    let Some((path, mechanism)) = options.text("sasl.mechanism") else {
        if !options.has("sasl.mechanism") && !has_credentials {
            let detail = "must be set, such as `SCRAM-SHA-512`: the default is GSSAPI, which requires `sasl.kerberos.keytab` in `librdkafka_options`";
            require(options.path("sasl.mechanism"), detail, problems);
        }
        return;
    };
    let is_known = ["GSSAPI", "PLAIN", "OAUTHBEARER"].contains(&mechanism)
        || ["SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512"].contains(&mechanism);
    if !is_known {
        let detail = "must be GSSAPI, PLAIN, OAUTHBEARER, SCRAM-SHA-256 or SCRAM-SHA-512";
        refuse(path, mechanism, detail, problems);
    } else if mechanism == "GSSAPI" && !has_credentials {
        let detail = "requires `sasl.kerberos.keytab` in `librdkafka_options`";
        refuse(path, mechanism, detail, problems);
    }
}

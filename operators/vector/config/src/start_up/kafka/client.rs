//! Configuration of a client of librdkafka, as Vector composes it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lockstep_shared_validation::FieldPath;
use serde_json::Value;

use crate::component::ComponentKind;
use crate::component::ComponentKind::{Sink, Source};
use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, SetOption, forbid};
use crate::start_up::kafka::c_number::{self, Integer};

/// Option with properties of librdkafka.
pub(crate) const PROPERTIES: &str = "librdkafka_options";

/// Options of Vector that become properties: family, option, property, milliseconds of its unit, default.
const OPTIONS: &[(ComponentKind, &str, &str, f64, Option<&str>)] = &[
    (Sink, "batch.max_bytes", "batch.size", 1.0, None),
    (Sink, "batch.max_events", "batch.num.messages", 1.0, None),
    (
        Sink,
        "message_timeout_ms",
        "message.timeout.ms",
        1.0,
        Some("300000"),
    ),
    (
        Sink,
        "socket_timeout_ms",
        "socket.timeout.ms",
        1.0,
        Some("60000"),
    ),
    (
        Source,
        "auto_offset_reset",
        "auto.offset.reset",
        1.0,
        Some("largest"),
    ),
    (
        Source,
        "commit_interval_ms",
        "auto.commit.interval.ms",
        1.0,
        Some("5000"),
    ),
    (
        Source,
        "fetch_wait_max_ms",
        "fetch.wait.max.ms",
        1.0,
        Some("100"),
    ),
    (Source, "group_id", "group.id", 1.0, None),
    (
        Source,
        "session_timeout_ms",
        "session.timeout.ms",
        1.0,
        Some("10000"),
    ),
    (
        Source,
        "socket_timeout_ms",
        "socket.timeout.ms",
        1.0,
        Some("60000"),
    ),
];

/// Option for the time that a message waits for its batch, in seconds. Any option of `batch` sets it.
const LINGER: &str = "batch.timeout_secs";

/// Default of [`LINGER`].
const LINGER_SECS: f64 = 1.0;

/// Options of SASL, which become properties of the same names.
const SASL: [&str; 3] = ["sasl.mechanism", "sasl.password", "sasl.username"];

/// Names of a property of which librdkafka knows two: the other name, the name.
const ALIASES: [(&str, &str); 12] = [
    ("acks", "request.required.acks"),
    ("bootstrap.servers", "metadata.broker.list"),
    ("compression.type", "compression.codec"),
    ("delivery.timeout.ms", "message.timeout.ms"),
    ("linger.ms", "queue.buffering.max.ms"),
    ("max.in.flight", "max.in.flight.requests.per.connection"),
    ("max.partition.fetch.bytes", "fetch.message.max.bytes"),
    ("retries", "message.send.max.retries"),
    ("sasl.mechanism", "sasl.mechanisms"),
    (
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.id",
    ),
    (
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.secret",
    ),
    ("enable.auto.commit", "auto.commit.enable"),
];

/// Property of a client.
pub(crate) struct Setting<'a> {
    /// Option that sets the property.
    pub(crate) path: FieldPath,
    /// Value, or none if Vector replaces a part of it.
    pub(crate) text: Option<Cow<'a, str>>,
    /// Value as it is written. None if it is Vector's default.
    written: Option<&'a Value>,
    /// Milliseconds of the unit of the option, or 1.
    pub(crate) unit: f64,
}

/// Configuration of a client.
pub(crate) struct Client<'a> {
    pub(crate) options: &'a ComponentOptions<'a>,
    /// Properties by the names under which they are set.
    settings: BTreeMap<&'a str, Setting<'a>>,
}

/// State of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State<'a> {
    Unset,
    /// Vector replaces a part of the value, or the property has several values under several names, which Vector sets in no
    /// fixed order.
    Unknown,
    Is(&'a str),
}

impl<'a> Client<'a> {
    /// Composes the configuration of a client.
    pub(crate) fn of(options: &'a ComponentOptions<'a>) -> Self {
        let mut settings = BTreeMap::new();
        let own = OPTIONS
            .iter()
            .filter(|(family, ..)| *family == options.family);
        for (_, option, property, unit, default) in own {
            if let Some(setting) = of_option(options, option, *unit, *default) {
                settings.insert(*property, setting);
            }
        }
        if options.family == Sink && options.has("batch") {
            settings.insert("queue.buffering.max.ms", linger(options));
        }
        if options.is_true("sasl.enabled") {
            for name in SASL {
                if let Some(setting) = of_option(options, name, 1.0, None) {
                    settings.insert(name, setting);
                }
            }
        }
        let protocol = match (
            options.is_true("sasl.enabled"),
            options.is_true("tls.enabled"),
        ) {
            (false, false) => "plaintext",
            (false, true) => "ssl",
            (true, false) => "sasl_plaintext",
            (true, true) => "sasl_ssl",
        };
        settings.insert(
            "security.protocol",
            Setting {
                path: options.path("sasl"),
                text: Some(protocol.into()),
                written: None,
                unit: 1.0,
            },
        );
        if let Some(properties) = options.get(PROPERTIES) {
            for (name, value) in properties.value.as_object().into_iter().flatten() {
                let Some(text) = value.as_str() else {
                    continue;
                };
                let setting = Setting {
                    path: properties.path.key(name),
                    text: (!options.is_replaced(text)).then_some(text.into()),
                    written: Some(value),
                    unit: 1.0,
                };
                settings.insert(name, setting);
            }
        }
        Self { options, settings }
    }

    /// Returns all properties that are set, by the names under which they are set.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (&str, &Setting<'a>)> {
        self.settings.iter().map(|(name, setting)| (*name, setting))
    }

    /// Returns the settings of a property, under all of its names.
    fn all(&self, name: &str) -> impl Iterator<Item = &Setting<'a>> {
        let canonical = canonical(name);
        let own = self
            .settings
            .iter()
            .filter(move |(name, _)| self::canonical(name) == canonical);
        own.map(|(_, setting)| setting)
    }

    /// Returns the state of a property, whatever name sets it.
    pub(crate) fn state(&self, name: &str) -> State<'_> {
        let mut state = State::Unset;
        for setting in self.all(name) {
            let Some(text) = setting.text.as_deref() else {
                return State::Unknown;
            };
            state = match state {
                State::Unset => State::Is(text),
                State::Is(other) if other == text => state,
                _ => return State::Unknown,
            };
        }
        state
    }

    /// Returns true if a property is set, whatever its value is.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.state(name) != State::Unset
    }

    /// Returns true if the configuration sets a property, by an option or under any of its names.
    pub(crate) fn is_written(&self, name: &str) -> bool {
        self.all(name).any(|setting| setting.written.is_some())
    }

    /// Returns whether a property has a value that is not empty, or none if that is unknown.
    pub(crate) fn has_text(&self, name: &str) -> Option<bool> {
        match self.state(name) {
            State::Unset => Some(false),
            State::Unknown => None,
            State::Is(text) => Some(!text.is_empty()),
        }
    }

    /// Returns whether a property is true, or none if that is unknown.
    pub(crate) fn boolean(&self, name: &str) -> Option<bool> {
        match self.state(name) {
            State::Unset => Some(false),
            State::Unknown => None,
            State::Is(text) => Some(["true", "t", "1"].contains(&&*text.to_ascii_lowercase())),
        }
    }

    /// Returns the value of a property, or none if that is unknown.
    pub(crate) fn integer(&self, name: &str, default: i32) -> Option<i32> {
        match self.state(name) {
            State::Unset => Some(default),
            State::Unknown => None,
            State::Is(text) => match c_number::integer(text) {
                Integer::Value(value) => Some(value),
                Integer::None | Integer::Ambiguous => None,
            },
        }
    }

    /// Returns whether the text of a property is one of these, in any case, or none if that is unknown.
    pub(crate) fn is_one_of(&self, name: &str, default: &str, texts: &[&str]) -> Option<bool> {
        let text = match self.state(name) {
            State::Unset => default,
            State::Unknown => return None,
            State::Is(text) => c_number::trim_start(text),
        };
        Some(texts.iter().any(|known| known.eq_ignore_ascii_case(text)))
    }

    /// Reports the first of these properties that the configuration sets. At least one must be set.
    pub(crate) fn report(&self, names: &[&str], detail: &str, problems: &mut DiagnosticList) {
        let settings = names.iter().flat_map(|name| self.all(name));
        let mut settings: Vec<_> = settings.collect();
        settings.sort_by_key(|setting| setting.written.is_none());
        if let Some(setting) = settings.first() {
            setting.refuse(detail, problems);
        }
    }
}

impl Setting<'_> {
    /// Reports the value.
    pub(crate) fn refuse(&self, detail: &str, problems: &mut DiagnosticList) {
        let path = self.path.clone();
        match self.written {
            Some(value) => SetOption { path, value }.refuse(detail, problems),
            None => forbid(path, detail, problems),
        }
    }
}

/// Returns the name of a property that is no alias.
fn canonical(name: &str) -> &str {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    alias.map_or(name, |(_, name)| *name)
}

/// Returns the property that an option sets.
fn of_option<'a>(
    options: &ComponentOptions<'a>,
    option: &str,
    unit: f64,
    default: Option<&'static str>,
) -> Option<Setting<'a>> {
    let Some(found) = options.get(option) else {
        return default.map(|default| Setting {
            path: options.path(option),
            text: Some(default.into()),
            written: None,
            unit,
        });
    };
    let text = match found.value {
        Value::String(text) => (!options.is_replaced(text)).then_some(text.into()),
        Value::Number(number) => Some(number.to_string().into()),
        _ => None,
    };
    Some(Setting {
        path: found.path,
        text,
        written: Some(found.value),
        unit,
    })
}

/// Returns the time that a message waits for its batch.
fn linger<'a>(options: &ComponentOptions<'a>) -> Setting<'a> {
    let found = options.get(LINGER);
    let seconds = match &found {
        None => Some(LINGER_SECS),
        Some(found) => found.value.as_f64(),
    };
    Setting {
        text: seconds.map(|seconds| (seconds * 1000.0).round().to_string().into()),
        written: found.as_ref().map(|found| found.value),
        unit: 1000.0,
        path: found.map_or_else(|| options.path(LINGER), |found| found.path),
    }
}

//! Values of the configuration properties of librdkafka, one by one.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::refuse;
use crate::start_up::kafka::c_number::{self, Integer};
use crate::start_up::kafka::client::Setting;
use crate::start_up::kafka::posix_pattern;

/// Configuration properties of librdkafka 2.12.
///
/// <https://github.com/confluentinc/librdkafka/blob/v2.12.1/src/rdkafka_conf.c>
static PROPERTIES: LazyLock<BTreeMap<&str, Property>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../librdkafka.json")).expect("the table is valid")
});

/// Values of a configuration property.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Property {
    /// Partition assignors that go together, separated by commas.
    Assignors,
    Boolean,
    /// Version of a broker, or the beginning of one.
    BrokerVersion,
    /// One of these texts.
    ExactlyOneOf(Vec<String>),
    /// Some of these texts, in any case, separated by commas.
    Flags(Vec<String>),
    /// Integer from the first to the second number.
    Integer(i32, i32),
    /// The same, or one of these texts, in any case.
    IntegerOrName(i32, i32, Vec<String>),
    /// Number from the first to the second one.
    Number(f64, f64),
    /// One of these texts, in any case.
    OneOf(Vec<String>),
    /// Regular expressions, separated by commas.
    Patterns,
    /// Text without commas and spaces.
    SingleText,
    /// Any text.
    Text,
}

/// Partition assignors that move all partitions at once. The other one does not.
const EAGER: [&str; 2] = ["range", "roundrobin"];

/// Partition assignor that moves single partitions.
const COOPERATIVE: &str = "cooperative-sticky";

/// Versions of brokers that librdkafka does not support.
const OLD_BROKERS: [&str; 2] = ["0.6.", "0.7."];

/// Validates the value of a property.
pub(crate) fn validate(name: &str, setting: &Setting<'_>, problems: &mut DiagnosticList) {
    let Some(property) = PROPERTIES.get(name) else {
        let detail = "is not a configuration property of librdkafka";
        return refuse(setting.path.clone(), name, detail, problems);
    };
    if let Some(text) = setting.text.as_deref()
        && let Some(detail) = property.wrong(text, setting.unit)
    {
        setting.refuse(&detail, problems);
    }
}

impl Property {
    /// Returns the error message for a text that librdkafka rejects. Numbers in the message are divided by the unit.
    fn wrong(&self, text: &str, unit: f64) -> Option<String> {
        let one_of = |names: &[String]| format!("must be one of {}", names.join(", "));
        match self {
            Self::Text => None,
            Self::Boolean => {
                let is_boolean = ["true", "t", "false", "f", "1", "0"]
                    .iter()
                    .any(|known| known.eq_ignore_ascii_case(text));
                (!is_boolean).then(|| "must be `true` or `false`".to_owned())
            }
            Self::Integer(minimum, maximum) => {
                let detail = || format!("must be an integer from {minimum} to {maximum}");
                is_outside(text, *minimum, *maximum).then(detail)
            }
            Self::IntegerOrName(minimum, maximum, names) => {
                let is_name = names.iter().any(|name| name.eq_ignore_ascii_case(text));
                let detail = || {
                    format!(
                        "must be an integer from {minimum} to {maximum}, or {}",
                        names.join(", ")
                    )
                };
                (!is_name && is_outside(text, *minimum, *maximum)).then(detail)
            }
            Self::Number(minimum, maximum) => {
                let number = c_number::number(text);
                let is_wrong = number.is_none_or(|it| it < *minimum || it > *maximum);
                let detail = || {
                    let (minimum, maximum) = (minimum / unit, maximum / unit);
                    format!("must be a number from {minimum} to {maximum}")
                };
                is_wrong.then(detail)
            }
            Self::OneOf(names) => (!is_named(text, names, false)).then(|| one_of(names)),
            Self::Flags(names) => (!is_named(text, names, true)).then(|| {
                format!(
                    "must be a list of {}, separated by commas",
                    names.join(", ")
                )
            }),
            Self::ExactlyOneOf(names) => {
                let text = c_number::trim_start(text);
                (!names.iter().any(|name| name == text)).then(|| one_of(names))
            }
            Self::SingleText => {
                let is_wrong = text.is_empty() || c_number::trim_start(text).contains([',', ' ']);
                is_wrong.then(|| "must be one word".to_owned())
            }
            Self::BrokerVersion => {
                let text = c_number::trim_start(text);
                let is_old = OLD_BROKERS.iter().any(|old| text.starts_with(old));
                let detail = "must be the version of a broker, 0.8.0 or later";
                (text.is_empty() || is_old).then(|| detail.to_owned())
            }
            Self::Assignors => assignors(text),
            Self::Patterns => {
                let mut patterns = text.split(',').filter(|pattern| !pattern.is_empty());
                let wrong = patterns.find_map(posix_pattern::wrong);
                wrong.map(|detail| format!("has a pattern that {detail}"))
            }
        }
    }
}

fn is_outside(text: &str, minimum: i32, maximum: i32) -> bool {
    match c_number::integer(text) {
        Integer::None => true,
        Integer::Ambiguous => false,
        Integer::Value(value) => !(minimum..=maximum).contains(&value),
    }
}

/// Returns true if librdkafka finds the names in a text: one, or several, each with an optional sign. White space before
/// a name is ignored, as is a missing name; white space after a name is not.
fn is_named(text: &str, names: &[String], is_list: bool) -> bool {
    let is_name = |part: &str| {
        let part = c_number::trim_start(part);
        let unsigned = part.strip_prefix(['+', '-']).filter(|_| is_list);
        let part = unsigned.unwrap_or(part);
        part.is_empty() || names.iter().any(|name| name.eq_ignore_ascii_case(part))
    };
    if text.is_empty() {
        return false;
    }
    if is_list {
        text.split(',').all(is_name)
    } else {
        is_name(text)
    }
}

/// Validates the partition assignors. Spaces and commas before a name are ignored, spaces after it are not.
fn assignors(text: &str) -> Option<String> {
    let mut rest = c_number::trim_start(text);
    let (mut has_eager, mut has_cooperative) = (false, false);
    while !rest.is_empty() {
        rest = rest.trim_start_matches([' ', ',']);
        let (name, after) = rest.split_once(',').unwrap_or((rest, ""));
        if EAGER.contains(&name) {
            has_eager = true;
        } else if name == COOPERATIVE {
            has_cooperative = true;
        } else {
            let detail = format!("must be a list of range and roundrobin, or {COOPERATIVE}");
            return Some(detail);
        }
        rest = after;
    }
    let detail = || format!("cannot have {COOPERATIVE} beside the others");
    (has_eager && has_cooperative).then(detail)
}

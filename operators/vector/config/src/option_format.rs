//! Formats of strings and numbers that Vector parses: addresses, paths, templates, integers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::LazyLock;

use chrono::format::{Item, StrftimeItems};
use encoding_rs::Encoding;
use ipnet::IpNet;
use jsonschema::paths::{LazyLocation, Location};
use jsonschema::{Keyword, ValidationError};
use regex::Regex;
use serde_json::{Number, Value};
use url::Url;
use vrl::compiler::TimeZone;
use vrl::path::{parse_target_path, parse_value_path};

use crate::http_endpoint;
use crate::interpolation::has_secret;
use crate::vector_version::VectorVersion;

/// Format of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OptionFormat {
    /// Error message that describes the expected value.
    expected: &'static str,
    reads: Reads,
}

/// Function that returns true if a value has the format. Values of other JSON types are not checked.
#[derive(Clone, Copy, Debug)]
enum Reads {
    /// Text that Vector may read from a secret: its value is unknown then.
    Text(fn(&str) -> bool),
    /// Address to listen on, which must be known, because it is compared with those of other components.
    Address(fn(&str) -> bool),
    Number(fn(&Number) -> bool),
}

/// Name of the format for integers.
pub(crate) const WHOLE_NUMBER: &str = "whole number";

/// Name of the format for absolute URLs.
pub(crate) const HTTP_ENDPOINT: &str = "HTTP endpoint";

/// Every format, by its name in the catalogue.
const FORMS: &[(&str, OptionFormat)] = &[
    (
        "ASCII character",
        OptionFormat {
            expected: "must be one ASCII character, such as `,`",
            reads: Reads::Text(|text| text.len() == 1 && text.is_ascii()),
        },
    ),
    (
        HTTP_ENDPOINT,
        OptionFormat {
            expected: http_endpoint::EXPECTED,
            reads: Reads::Text(|text| http_endpoint::parse(text).is_some()),
        },
    ),
    (
        "IP network",
        OptionFormat {
            expected: "must be an IP network, such as 10.0.0.0/8",
            reads: Reads::Text(|text| text.parse::<IpNet>().is_ok()),
        },
    ),
    (
        "IPv4 address",
        OptionFormat {
            expected: "must be an IPv4 address, such as 10.0.0.1",
            reads: Reads::Text(|text| text.parse::<Ipv4Addr>().is_ok()),
        },
    ),
    (
        "URI",
        OptionFormat {
            expected: "must be a URI",
            // Vector parses the authority a second time, as a URL, to separate the user from the host. Version 1 of the
            // crate `http` accepts more than version 0.2, which Vector uses: it takes any UTF-8 in a path.
            reads: Reads::Text(|text| {
                text.parse::<http_02::Uri>().is_ok_and(|uri| {
                    let authority = uri.authority();
                    authority.is_none_or(|it| Url::parse(&format!("http://{it}")).is_ok())
                })
            }),
        },
    ),
    (
        "URL",
        OptionFormat {
            expected: "must be an absolute URL, such as http://example.com",
            reads: Reads::Text(|text| Url::parse(text).is_ok()),
        },
    ),
    (
        // Vector reads it as a float, and its reader has no function for integers.
        "decimal number",
        OptionFormat {
            expected: "must have a decimal point, such as 10.0",
            reads: Reads::Number(Number::is_f64),
        },
    ),
    (
        "listening address",
        OptionFormat {
            expected: "must be an IP address with a port, such as 0.0.0.0:9000, or `systemd`, or `systemd#1`",
            reads: Reads::Address(|text| Listening::read(text).is_some()),
        },
    ),
    (
        "name of an encoding",
        OptionFormat {
            expected: "must be the name of an encoding, such as `utf-16le`",
            reads: Reads::Text(|text| Encoding::for_label(text.as_bytes()).is_some()),
        },
    ),
    (
        "host and port",
        OptionFormat {
            expected: "must be a host with a port, such as statsd:8125",
            reads: Reads::Text(|text| {
                let uri = text.parse::<http_02::Uri>().ok();
                uri.is_some_and(|uri| uri.host().is_some() && uri.port_u16().is_some())
            }),
        },
    ),
    (
        "optional path",
        OptionFormat {
            expected: "must be a field path, such as `.message`, or empty",
            reads: Reads::Text(|text| text.is_empty() || parse_target_path(text).is_ok()),
        },
    ),
    (
        "optional path in an event",
        OptionFormat {
            expected: "must be a field path, such as `message`, or empty",
            reads: Reads::Text(|text| text.is_empty() || parse_value_path(text).is_ok()),
        },
    ),
    (
        "path",
        OptionFormat {
            expected: "must be a field path, such as `.message`",
            reads: Reads::Text(|text| parse_target_path(text).is_ok()),
        },
    ),
    (
        "path in an event",
        OptionFormat {
            expected: "must be a field path, such as `message`",
            reads: Reads::Text(|text| parse_value_path(text).is_ok()),
        },
    ),
    (
        "pattern",
        OptionFormat {
            expected: "must be a glob pattern of file names",
            reads: Reads::Text(|text| glob::Pattern::new(text).is_ok()),
        },
    ),
    (
        "socket address",
        OptionFormat {
            expected: "must be an IP address with a port, such as 0.0.0.0:9000",
            reads: Reads::Address(|text| text.parse::<SocketAddr>().is_ok()),
        },
    ),
    (
        "template",
        OptionFormat {
            expected: "must be a template: `{{ path }}` inserts a field, in which a name with other characters than letters, digits, `_` and `@` is in quotes (`{{ labels.\"app.kubernetes.io/name\" }}`), and `%` starts a time format specifier",
            reads: Reads::Text(is_template),
        },
    ),
    (
        "template of a whole number",
        OptionFormat {
            expected: "must be an integer, or a template of one: `{{ path }}` inserts a field",
            reads: Reads::Text(|text| {
                fields_of_template(text).is_some_and(|fields| {
                    let is_static = fields.is_empty() && !text.contains('%');
                    !is_static || text.parse::<u64>().is_ok()
                })
            }),
        },
    ),
    (
        "time zone",
        OptionFormat {
            expected: "must be `local` or a time zone, such as Europe/Berlin",
            reads: Reads::Text(|text| TimeZone::parse(text).is_some()),
        },
    ),
    (
        // `1.0` is not an integer for Vector.
        WHOLE_NUMBER,
        OptionFormat {
            expected: "must be an integer of at most 9223372036854775807, without a decimal point",
            // The type check of the schema already reports a fraction.
            reads: Reads::Number(|number| {
                !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() != 0.0)
            }),
        },
    ),
];

/// Returns true if a text is a template whose value depends on the event: it refers to a field or to the time.
pub(crate) fn is_dynamic(text: &str) -> bool {
    let is_time = |item: Item<'_>| matches!(item, Item::Fixed(_) | Item::Numeric(_, _));
    fields_of_template(text)
        .is_some_and(|fields| !fields.is_empty() || StrftimeItems::new(text).any(is_time))
}

fn is_template(text: &str) -> bool {
    fields_of_template(text).is_some()
}

/// Returns the paths of the fields that a template refers to, or none if it cannot be parsed.
///
/// The text between fields is a time format.
pub(crate) fn fields_of_template(text: &str) -> Option<Vec<&str>> {
    static FIELD: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\{\{([^}]+)\}\}").expect("the pattern is valid"));
    let is_time = |text: &str| StrftimeItems::new(text).all(|item| item != Item::Error);
    let fields = FIELD.captures_iter(text);
    let fields: Vec<_> = fields
        .map(|field| field.extract::<1>().1[0].trim())
        .collect();
    let is_valid = FIELD.split(text).all(is_time)
        && fields.iter().all(|field| parse_target_path(field).is_ok());
    is_valid.then_some(fields)
}

impl OptionFormat {
    /// Returns the format with a name of the catalogue.
    fn named(name: &Value) -> Self {
        let name = name.as_str().unwrap_or_default();
        let mut forms = FORMS.iter();
        let found = forms.find(|(known, _)| *known == name);
        found
            .expect("the catalogue refers only to existing formats")
            .1
    }
}

/// Format as a keyword of a schema, for one version of Vector.
pub(crate) struct FormatKeyword {
    format: OptionFormat,
    version: VectorVersion,
}

impl FormatKeyword {
    /// Returns the format with a name of the catalogue.
    pub(crate) fn named(name: &Value, version: VectorVersion) -> Self {
        Self {
            format: OptionFormat::named(name),
            version,
        }
    }
}

impl Keyword for FormatKeyword {
    fn validate<'i>(
        &self,
        value: &'i Value,
        location: &LazyLocation,
    ) -> Result<(), ValidationError<'i>> {
        if self.is_valid(value) {
            return Ok(());
        }
        Err(ValidationError::custom(
            Location::new(),
            location.into(),
            value,
            self.format.expected,
        ))
    }

    fn is_valid(&self, value: &Value) -> bool {
        match (self.format.reads, value) {
            (Reads::Text(reads), Value::String(text)) => {
                reads(text) || has_secret(text, self.version)
            }
            (Reads::Address(reads), Value::String(text)) => reads(text),
            (Reads::Number(reads), Value::Number(number)) => reads(number),
            _ => true,
        }
    }
}

/// Address or socket on which a component listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listening {
    /// IP address and port.
    At(SocketAddr),
    /// Socket that systemd passes to Vector, by its index from zero.
    Given(usize),
}

impl Listening {
    pub(crate) fn read(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(Self::At(address));
        }
        match text.strip_prefix("systemd")? {
            "" => Some(Self::Given(0)),
            number => {
                let number: usize = number.strip_prefix('#')?.parse().ok()?;
                number.checked_sub(1).map(Self::Given)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_accepts_the_values_that_vector_accepts() {
        for (form, good, bad) in [
            ("IPv4 address", "10.0.0.1", "10.0.0"),
            ("URI", "abc", "http://a b"),
            ("URI", "http://a:65535/b", "http://a:65536/b"),
            ("URI", "/a", "a:99999"),
            ("URI", "http://a/%C3%A9", "http://a/é"),
            ("URL", "http://a", "a"),
            ("listening address", "systemd#3", "systemd#0"),
            ("listening address", "[::1]:80", "127.0.0.1"),
            ("path", ".a.\"b c\"[0]", ".a["),
            ("path in an event", "a.b", "a..b"),
            ("pattern", "*.log", "a**"),
            ("socket address", "0.0.0.0:1", "localhost:1"),
            ("template", "/x/%F/{{ a.b }}/100%%", "%E"),
            ("template", "{{ %trace }}", "{{ a..b }}"),
            ("host and port", "statsd:8125", "statsd"),
            ("ASCII character", ",", "é"),
            ("ASCII character", "\t", ""),
            ("IP network", "10.0.0.0/8", "10.0.0.1"),
            ("name of an encoding", "utf-16le", "abc"),
            ("template of a whole number", "7", "abc"),
            ("template of a whole number", "{{ priority }}", "{{ a..b }}"),
            ("template of a whole number", "1{{ priority }}", "{{ x"),
            ("template of a whole number", "0", "{{}}"),
            ("optional path", "", "a["),
            ("optional path", "%a", "a b"),
            ("optional path in an event", "", "%a"),
            ("time zone", "Europe/Berlin", "Mars/Olympus"),
        ] {
            let form = FormatKeyword::named(&form.into(), VectorVersion::DEFAULT);
            assert!(form.is_valid(&good.into()), "{good}");
            assert!(!form.is_valid(&bad.into()), "{bad}");
        }
    }

    #[test]
    fn the_text_of_a_secret_is_unknown_and_an_address_to_listen_on_must_be_known() {
        let is_valid = |form: &str, text: &str| {
            FormatKeyword::named(&form.into(), VectorVersion::DEFAULT).is_valid(&text.into())
        };
        for form in ["URI", "time zone", "host and port"] {
            assert!(is_valid(form, "SECRET[own.value]"), "{form}");
            assert!(!is_valid(form, "SECRET[own value"), "{form}");
        }
        for form in ["listening address", "socket address"] {
            assert!(!is_valid(form, "SECRET[own.value]"), "{form}");
        }
    }
}

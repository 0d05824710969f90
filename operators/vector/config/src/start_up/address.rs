//! Addresses and connection strings of services that are not reached by HTTP.

use http_02::Uri;
use url::Url;

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, refuse};
use crate::start_up::uri::{has_valid_authority, parse};

/// Schemes of the addresses of Redis.
const REDIS: [&str; 7] = [
    "redis",
    "rediss",
    "redis+unix",
    "unix",
    "valkey",
    "valkeys",
    "valkey+unix",
];

/// Schemes of the addresses of Databend.
const DATABEND: [&str; 3] = ["databend", "http", "https"];

/// Schemes of the addresses of NATS.
const NATS: [&str; 4] = ["nats", "tls", "ws", "wss"];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let component = format!("{}/{}", options.family.block(), options.kind);
    let (option, check): (&str, fn(&str) -> Option<&'static str>) = match component.as_str() {
        "sinks/databend" => ("endpoint", |text| {
            let is_databend = parse(text).map_or(true, |uri| {
                let scheme = uri.scheme_str();
                scheme.is_some_and(|scheme| DATABEND.contains(&scheme))
            });
            (!is_databend).then_some("must begin with `databend://`, `http://` or `https://`")
        }),
        "sinks/doris" => ("endpoints", |text| {
            let has_host = parse(text).map_or(true, |uri| uri.authority().is_some());
            (!has_host).then_some("must have a host, such as `http://example.com:8030`")
        }),
        "sinks/nats" | "sources/nats" => ("url", nats),
        "sinks/papertrail" => ("endpoint", with_port),
        "sinks/postgres" => ("endpoint", |text| {
            let uri = parse(text);
            let has_host = |uri: &Uri| uri.authority().is_none() || has_valid_authority(uri);
            let is_valid = Url::parse(text).is_ok() && uri.is_ok_and(|uri| has_host(&uri));
            (!is_valid).then_some("must be a URL, such as `postgres://user@example.com/database`")
        }),
        "sinks/redis" => ("endpoint", redis),
        "sources/redis" => ("url", redis),
        "sources/amqp" => ("connection_string", |text| {
            let url = Url::parse(text).ok();
            let is_amqp = url.is_some_and(|url| {
                ["amqp", "amqps"].contains(&url.scheme()) && !url.cannot_be_a_base()
            });
            (!is_amqp).then_some("must begin with `amqp://` or `amqps://`")
        }),
        "sources/mongodb_metrics" => ("endpoints", |text| {
            let scheme = text.split_once("://").map(|(scheme, _)| scheme);
            let is_mongodb = matches!(scheme, Some("mongodb" | "mongodb+srv"));
            if !is_mongodb {
                return Some("must begin with `mongodb://` or `mongodb+srv://`");
            }
            let rest = text.split_once("://").map_or("", |(_, rest)| rest);
            let hosts = rest.split(['/', '?']).next().unwrap_or_default();
            if !hosts.contains('@') && has_mechanism(rest) {
                return Some(
                    "must have a user before the host, because it has an `authMechanism`: Vector panics at start",
                );
            }
            let hosts = hosts.rsplit('@').next().unwrap_or_default();
            // The path of a socket is escaped.
            let has_port = hosts.contains('%')
                || port(hosts).is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
            hosts
                .contains(',')
                .then_some("must name one host: Vector connects to it directly")
                .or((!has_port).then_some("must have a port from 1 to 65535"))
        }),
        "sources/postgresql_metrics" => ("endpoints", postgresql),
        "sinks/socket"
            if !options.equals("mode", "unix")
                && !options.equals("mode", "unix_stream")
                && !options.equals("mode", "unix_datagram") =>
        {
            ("address", with_port)
        }
        _ => return,
    };
    let mut texts = options.texts(option);
    texts.extend(options.text(option));
    for (path, text) in texts {
        if let Some(detail) = check(text) {
            refuse(path, text, detail, problems);
        }
    }
}

fn with_port(text: &str) -> Option<&'static str> {
    let uri = parse(text).ok();
    let authority = uri.as_ref().and_then(|uri| uri.authority());
    let is_complete = authority.is_some_and(|it| !it.host().is_empty() && it.port_u16().is_some());
    (!is_complete)
        .then_some("must be a host with a port from 0 to 65535, such as `example.com:5000`")
}

fn redis(text: &str) -> Option<&'static str> {
    let url = Url::parse(text).ok();
    let is_redis = url.is_some_and(|url| REDIS.contains(&url.scheme()));
    (!is_redis).then_some("must begin with `redis://`, `rediss://` or `unix://`")
}

fn nats(text: &str) -> Option<&'static str> {
    let is_server = |server: &str| {
        let server = if server.contains("://") {
            server.to_owned()
        } else {
            format!("nats://{server}")
        };
        Url::parse(&server).is_ok_and(|url| NATS.contains(&url.scheme()))
    };
    (!text.split(',').all(is_server))
        .then_some("must be servers such as `nats://example.com:4222`, separated by commas")
}

fn postgresql(text: &str) -> Option<&'static str> {
    let rest = ["postgres://", "postgresql://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    let names_host = match rest {
        Some(rest) => {
            let authority = rest.split(['/', '?']).next().unwrap_or_default();
            let host = authority.rsplit('@').next().unwrap_or_default();
            if host.contains(',') {
                return Some("must name one host");
            }
            // An empty port is the default.
            let port = port(host).filter(|port| !port.is_empty() && !port.contains('%'));
            if port.is_some_and(|port| port.parse::<u16>().is_err()) {
                return Some("must have a port from 0 to 65535");
            }
            !host.is_empty() || rest.contains("host=")
        }
        None => text.contains("host=") || text.contains("host ="),
    };
    (!names_host).then_some("must name a host, such as `postgresql://user@example.com/database`")
}

/// Returns the text of the port behind a host, if it has one. The text is not a list of hosts.
fn port(host: &str) -> Option<&str> {
    let after_address = host.rsplit(']').next().unwrap_or_default();
    after_address.split_once(':').map(|(_, port)| port)
}

/// Mechanisms by which a `MongoDB` server knows a client without a user name.
const MONGODB_MECHANISMS: [&str; 3] = ["mongodb-x509", "mongodb-cr", "mongodb-oidc"];

/// Returns true if an address selects one of the mechanisms.
fn has_mechanism(address: &str) -> bool {
    let (_, query) = address.split_once('?').unwrap_or_default();
    query.split('&').any(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or_default();
        let value = value.to_ascii_lowercase();
        name.eq_ignore_ascii_case("authMechanism") && MONGODB_MECHANISMS.contains(&value.as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::port;

    #[test]
    fn ports_are_behind_names_and_addresses() {
        for (host, expected) in [
            ("h", None),
            ("h:1", Some("1")),
            ("h:", Some("")),
            ("[::1]", None),
            ("[::1]:5432", Some("5432")),
        ] {
            assert_eq!(port(host), expected, "{host}");
        }
    }
}

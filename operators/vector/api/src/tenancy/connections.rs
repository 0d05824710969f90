//! Connection addresses in the components of a tenant. Client libraries parse these addresses, and some of them would
//! read files or open sockets of the agent.

use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath, RuleContext};
use lockstep_vector_config::interpolation::SECRET;
use lockstep_vector_config::{Catalogue, Component, ComponentKind};
use serde_json::Value;
use url::Url;

use crate::tenancy::components::each;
use crate::types::pipeline::Pipeline;

/// Option that contains a connection address.
struct Connection {
    family: ComponentKind,
    kind: &'static str,
    /// Path of the option: its name and the names of nested fields.
    option: &'static [&'static str],
    schemes: &'static [&'static str],
    /// Allowed query parameters. Some of the other parameters that the clients read are file names.
    parameters: &'static [&'static str],
    has_host: bool,
    /// If true, a part of the address may be a secret. It is false if parameters are restricted, because the value of a
    /// Secret could contain more parameters.
    may_have_secrets: bool,
}

const REDIS: Connection = Connection {
    family: ComponentKind::Sink,
    kind: "redis",
    option: &["endpoint"],
    schemes: &["redis", "rediss"],
    parameters: &["protocol"],
    has_host: true,
    may_have_secrets: true,
};

const PULSAR: Connection = Connection {
    family: ComponentKind::Sink,
    kind: "pulsar",
    option: &["auth", "oauth2", "credentials_url"],
    schemes: &["data"],
    parameters: &[],
    has_host: false,
    may_have_secrets: true,
};

const CONNECTIONS: [Connection; 6] = [
    Connection {
        family: ComponentKind::Sink,
        kind: "databend",
        option: &["endpoint"],
        schemes: &["databend", "http", "https"],
        parameters: &["presign", "role", "sslmode", "tenant", "warehouse"],
        has_host: true,
        may_have_secrets: false,
    },
    Connection {
        family: ComponentKind::Sink,
        kind: "postgres",
        option: &["endpoint"],
        schemes: &["postgres", "postgresql"],
        parameters: &[
            "application_name",
            "dbname",
            "password",
            "port",
            "sslmode",
            "user",
        ],
        has_host: true,
        may_have_secrets: false,
    },
    REDIS,
    Connection {
        family: ComponentKind::Source,
        option: &["url"],
        ..REDIS
    },
    PULSAR,
    Connection {
        family: ComponentKind::Source,
        ..PULSAR
    },
];

pub(crate) fn validate<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    each(context, |component, path, _| {
        let own = CONNECTIONS
            .iter()
            .filter(|it| it.family == component.family && component.kind() == Some(it.kind));
        for connection in own {
            for (path, text) in connection.texts(component, path) {
                if let Err(detail) = connection.takes(text) {
                    // The address may contain a password.
                    diagnostics.push(FieldError::invalid_hidden(path, detail));
                }
            }
        }
    });
}

impl Connection {
    /// Returns the values of the option in a component, under its name and its aliases.
    fn texts<'a>(&self, component: &Component<'a>, path: &FieldPath) -> Vec<(FieldPath, &'a str)> {
        let [first, within @ ..] = self.option else {
            return Vec::new();
        };
        let entry = Catalogue::shipped().entry(self.family, self.kind);
        let names = entry.into_iter().flat_map(|entry| entry.names_of(first));
        let mut texts = Vec::new();
        for name in names {
            let mut path = path.child(name);
            let mut value = component.option(name).unwrap_or(&Value::Null);
            for part in within {
                path = path.child(part);
                value = &value[*part];
            }
            match value {
                Value::String(text) => texts.push((path, text.as_str())),
                Value::Array(items) => {
                    let items = items.iter().enumerate();
                    let items =
                        items.filter_map(|(index, item)| Some((path.index(index), item.as_str()?)));
                    texts.extend(items);
                }
                _ => {}
            }
        }
        texts
    }

    fn takes(&self, text: &str) -> Result<(), String> {
        if !self.may_have_secrets && text.contains(SECRET) {
            return Err(
                "the content of a Secret could refer to files of the agent here; write the URL itself, and use Secrets in other options"
                    .to_owned(),
            );
        }
        let schemes = self.schemes.join("`, `");
        let url = Url::parse(text).ok();
        let url = url.filter(|url| self.schemes.contains(&url.scheme()));
        let Some(url) = url else {
            return Err(format!("must be a URL with one of the schemes `{schemes}`"));
        };
        // A percent-encoded `/` starts the path of a socket.
        let host = url.host_str().unwrap_or_default();
        if self.has_host && (host.is_empty() || host.contains('%')) {
            return Err(
                "must contain a host: a tenant's pipeline may not open sockets of the agent"
                    .to_owned(),
            );
        }
        let mut parameters = url.query_pairs();
        let other = parameters.find(|(name, _)| !self.parameters.contains(&&**name));
        if let Some((name, _)) = other {
            let known = self.parameters.join("`, `");
            return Err(format!(
                "the query parameter `{name}` is denied for tenants; allowed parameters: `{known}`"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_files_and_sockets_of_the_agent_are_denied() {
        let [databend, postgres, redis, _, pulsar, _] = &CONNECTIONS;
        for (connection, text, is_accepted) in [
            (databend, "databend://u:p@db:8000/d?sslmode=disable", true),
            (databend, "https://db", true),
            (databend, "databend://db/?access_token_file=/token", false),
            (databend, "databend://db/?%61ccess_token_file=/token", false),
            (
                databend,
                "databend://db/?sslmode=disable&tls_ca_file=/ca",
                false,
            ),
            (databend, "databend://u:SECRET[own.password]@db", false),
            (postgres, "postgres://u:p@db:5432/d?sslmode=require", true),
            (
                postgres,
                "postgres://db/d?sslkey=/var/lib/kubelet/pki/key",
                false,
            ),
            (postgres, "postgres:///d?host=/var/run/postgresql", false),
            (postgres, "postgres://%2Fvar%2Frun%2Fpostgresql/d", false),
            (postgres, "postgres:///d", false),
            (redis, "rediss://:SECRET[own.password]@redis:6379/0", true),
            (redis, "redis+unix:///var/run/redis.sock", false),
            (redis, "UNIX:///var/run/redis.sock", false),
            (pulsar, "data:application/json;base64,e30=", true),
            (pulsar, "file:///var/run/secrets/token", false),
            (pulsar, "SECRET[own.url]", false),
        ] {
            assert_eq!(connection.takes(text).is_ok(), is_accepted, "{text}");
        }
    }
}

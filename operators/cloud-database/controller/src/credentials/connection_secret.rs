//! Secret for applications: what they need to connect to the instance.
//!
//! The password in it is always one that the instance has. A new one arrives when RDS has applied it; until then, the Secret
//! keeps what it has.

use aws_sdk_rds::types::DbInstance;
use k8s_openapi::api::core::v1::Secret;
use lockstep_cloud_database_api::{CloudDatabase, Engine, connection_secret_name};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use crate::credentials::secrets;

const HOST: &str = "host";
const PORT: &str = "port";
const DATABASE: &str = "database";
const USERNAME: &str = "username";
const PASSWORD: &str = "password";
const URI: &str = "uri";
const ENGINE: &str = "engine";
const CA: &str = "ca.crt";
const SECRET_ARN: &str = "masterUserSecretArn";

/// Characters that a part of a URI cannot contain: all but the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Password to publish, or where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Published {
    Password(String),
    /// ARN of the secret in Secrets Manager.
    SecretArn(String),
}

impl Published {
    /// Returns the part of the published Secret that stays until another password can be used.
    pub(crate) fn before(secret: &Secret) -> Option<Self> {
        let value = |key: &str| secrets::text(secret, key);
        let password = value(PASSWORD).map(Self::Password);
        password.or_else(|| value(SECRET_ARN).map(Self::SecretArn))
    }
}

/// Returns the Secret of an instance that has an endpoint, if the object asks for one. `ca_bundle` has the CA certificates of
/// RDS, which RDS does not return.
pub(crate) fn of_instance(
    object: &CloudDatabase,
    instance: &DbInstance,
    published: &Published,
    ca_bundle: Option<&str>,
) -> Option<Value> {
    let name = connection_secret_name(object)?;
    let endpoint = instance.endpoint()?;
    let target = Target {
        engine: object.spec.engine,
        host: endpoint.address()?,
        port: endpoint.port()?,
        database: database(object),
        username: instance.master_username()?,
    };
    let mut values = target.values(published);
    values.extend(ca_bundle.map(|bundle| (CA.to_owned(), json!(bundle))));
    Some(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": values,
    }))
}

/// Returns the database that applications connect to: that of the spec, or else the one that every instance of the engine
/// has.
fn database(object: &CloudDatabase) -> Option<&str> {
    let of_engine = match object.spec.engine {
        Engine::Postgres => Some("postgres"),
        Engine::Mysql | Engine::Mariadb => None,
    };
    object.spec.database_name.as_deref().or(of_engine)
}

/// Database that an application connects to.
struct Target<'a> {
    engine: Engine,
    host: &'a str,
    port: i32,
    database: Option<&'a str>,
    username: &'a str,
}

impl Target<'_> {
    fn values(&self, published: &Published) -> Map<String, Value> {
        let mut values = Map::new();
        let mut add = |key: &str, value: String| drop(values.insert(key.to_owned(), json!(value)));
        add(ENGINE, self.engine.as_str().to_owned());
        add(HOST, self.host.to_owned());
        add(PORT, self.port.to_string());
        if let Some(database) = self.database {
            add(DATABASE, database.to_owned());
        }
        add(USERNAME, self.username.to_owned());
        match published {
            Published::Password(password) => {
                add(PASSWORD, password.clone());
                add(URI, self.uri(password));
            }
            Published::SecretArn(arn) => add(SECRET_ARN, arn.clone()),
        }
        values
    }

    /// Returns a URI that demands TLS, with the parameter that the drivers of the engine have for it. The certificate is not
    /// verified, because only the application knows where it has the CA.
    fn uri(&self, password: &str) -> String {
        let (scheme, tls) = match self.engine {
            Engine::Postgres => ("postgresql", "sslmode=require"),
            Engine::Mysql | Engine::Mariadb => ("mysql", "ssl-mode=REQUIRED"),
        };
        let encoded = |text: &str| utf8_percent_encode(text, RESERVED).to_string();
        format!(
            "{scheme}://{}:{}@{}:{}/{}?{tls}",
            encoded(self.username),
            encoded(password),
            self.host,
            self.port,
            encoded(self.database.unwrap_or_default())
        )
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_rds::types::Endpoint;

    use super::*;

    fn object(spec: &Value) -> CloudDatabase {
        let mut object = json!({
            "apiVersion": "database.example.com/v1alpha1", "kind": "CloudDatabase",
            "metadata": {"name": "orders", "namespace": "shop", "uid": "1"},
            "spec": {
                "engine": "postgres", "instanceClass": "db.t4g.micro", "storage": {"sizeGib": 20},
                "credentials": {"username": "app", "secretName": "s"}, "connectionSecret": {},
            },
        });
        for (field, value) in spec.as_object().into_iter().flatten() {
            object["spec"][field] = value.clone();
        }
        serde_json::from_value(object).expect("a database")
    }

    fn instance() -> DbInstance {
        let endpoint = Endpoint::builder().address("db.example.com").port(5432);
        let builder = DbInstance::builder().master_username("app");
        builder.endpoint(endpoint.build()).build()
    }

    fn secret(spec: &Value, published: &Published) -> Value {
        of_instance(&object(spec), &instance(), published, None).expect("a Secret")
    }

    fn password(text: &str) -> Published {
        Published::Password(text.to_owned())
    }

    #[test]
    fn the_secret_has_everything_that_an_application_needs() {
        let secret = secret(&json!({"databaseName": "shop"}), &password("correct-horse"));
        assert_eq!(secret["metadata"]["name"], "orders-connection");
        let expected = json!({
            "engine": "postgres", "host": "db.example.com", "port": "5432", "database": "shop",
            "username": "app", "password": "correct-horse",
            "uri": "postgresql://app:correct-horse@db.example.com:5432/shop?sslmode=require",
        });
        assert_eq!(secret["stringData"], expected);
    }

    #[test]
    fn the_uri_is_encoded_and_has_the_scheme_and_the_parameter_of_the_engine() {
        let uri = |spec: &Value| {
            let secret = secret(spec, &password("a:b?c#d%e&f+g~h"));
            secret["stringData"]["uri"].as_str().map(String::from)
        };
        let encoded = "app:a%3Ab%3Fc%23d%25e%26f%2Bg~h@db.example.com:5432";
        let postgres = format!("postgresql://{encoded}/postgres?sslmode=require");
        assert_eq!(uri(&json!({})), Some(postgres));
        let mysql = format!("mysql://{encoded}/?ssl-mode=REQUIRED");
        assert_eq!(uri(&json!({"engine": "mysql"})), Some(mysql));
        let mariadb = format!("mysql://{encoded}/shop?ssl-mode=REQUIRED");
        let spec = json!({"engine": "mariadb", "databaseName": "shop"});
        assert_eq!(uri(&spec), Some(mariadb));
    }

    #[test]
    fn the_ca_certificates_are_in_the_secret_if_they_are_known() {
        let ca = "-----BEGIN CERTIFICATE-----";
        let object = object(&json!({}));
        let secret = of_instance(&object, &instance(), &password("correct-horse"), Some(ca));
        assert_eq!(secret.expect("a Secret")["stringData"]["ca.crt"], ca);
    }

    #[test]
    fn a_password_in_secrets_manager_is_not_in_the_secret() {
        let arn = Published::SecretArn("arn:aws:secretsmanager:x".to_owned());
        let secret = secret(&json!({"connectionSecret": {"name": "app"}}), &arn);
        assert_eq!(secret["metadata"]["name"], "app");
        let values = &secret["stringData"];
        assert_eq!(values["masterUserSecretArn"], "arn:aws:secretsmanager:x");
        assert!(values["password"].is_null() && values["uri"].is_null());
    }

    #[test]
    fn there_is_no_secret_before_the_endpoint_is_known_or_if_none_is_asked_for() {
        let creating = DbInstance::builder().master_username("app").build();
        let published = password("correct-horse");
        let of = |spec: &Value, instance: &DbInstance| {
            of_instance(&object(spec), instance, &published, None)
        };
        assert_eq!(of(&json!({}), &creating), None);
        assert_eq!(of(&json!({"connectionSecret": null}), &instance()), None);
    }

    #[test]
    fn what_is_published_is_read_back() {
        for published in [
            password("correct-horse"),
            Published::SecretArn("arn".to_owned()),
        ] {
            let mut stored = secret(&json!({}), &published);
            let values = stored["stringData"].take();
            let values = values.as_object().expect("values").iter();
            let encoded = values.map(|(key, value)| {
                let bytes = value.as_str().expect("text").as_bytes().to_vec();
                (key.clone(), k8s_openapi::ByteString(bytes))
            });
            let stored = Secret {
                data: Some(encoded.collect()),
                ..Secret::default()
            };
            assert_eq!(Published::before(&stored), Some(published));
        }
        assert_eq!(Published::before(&Secret::default()), None);
    }
}

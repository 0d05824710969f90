//! Messages between the controller and a validator.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::outcome::Outcome;

/// Port of a validator.
pub const PORT: u16 = 8443;

/// DNS name in the certificate of a validator.
pub const SERVER_NAME: &str = "vector-validator";

/// File with the certificate.
pub const CERTIFICATE: &str = "tls.crt";

/// File with the private key of the certificate.
pub const KEY: &str = "tls.key";

/// File with the bearer token of the clients.
pub const TOKEN: &str = "token";

/// Path of the liveness probe.
pub const HEALTH: &str = "/healthz";

/// Path of the readiness probe.
pub const READY: &str = "/readyz";

/// Path to which a configuration is sent.
pub(crate) const VALIDATE: &str = "/validate";

/// Path of the schema that Vector generates.
pub(crate) const SCHEMA: &str = "/schema";

/// Path of the version that Vector prints.
pub(crate) const VERSION: &str = "/version";

/// Maximum size of a version.
pub(crate) const MAX_VERSION_BYTES: usize = 4 << 10;

/// Maximum size of a request. A larger configuration is checked elsewhere: its files, the request and Vector must fit
/// into the memory of one small container.
pub const MAX_BODY_BYTES: usize = 16 << 20;

/// Maximum size of a schema. That of Vector 0.57 has 6 MB.
pub(crate) const MAX_SCHEMA_BYTES: usize = 64 << 20;

/// Configuration that is to be validated. It may contain credentials, so that its `Debug` output shows only the names of its
/// files.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// Content of Vector's configuration directory by file name.
    #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
    pub files: BTreeMap<String, Vec<u8>>,
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.files.keys()).finish()
    }
}

/// Result of a validation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Meaning of the exit code.
    pub outcome: Outcome,
    /// Exit code. None if a signal or the time-out has ended Vector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Last lines that Vector has printed; without a result, the reason.
    pub log: String,
}

fn to_base64<S: Serializer>(
    files: &BTreeMap<String, Vec<u8>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(files.iter().map(|(name, it)| (name, STANDARD.encode(it))))
}

fn from_base64<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Vec<u8>>, D::Error> {
    let files = BTreeMap::<String, String>::deserialize(deserializer)?;
    let decoded = files.into_iter().map(|(name, text)| {
        // The error of the decoder would quote a byte of the content.
        let content = STANDARD.decode(text);
        let content = content.map_err(|_| serde::de::Error::custom("a file is not Base64"))?;
        Ok((name, content))
    });
    decoded.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_base64_and_no_content_is_shown() {
        let configuration = Configuration {
            files: BTreeMap::from([("agent.json".to_owned(), b"hunter2\xff".to_vec())]),
        };
        let text = serde_json::to_string(&configuration).expect("JSON");
        assert_eq!(text, r#"{"files":{"agent.json":"aHVudGVyMv8="}}"#);
        let read: Configuration = serde_json::from_str(&text).expect("a configuration");
        assert_eq!(read, configuration);
        assert_eq!(format!("{configuration:?}"), r#"{"agent.json"}"#);
        let wrong = serde_json::from_str::<Configuration>(r#"{"files":{"a":"hunter2!"}}"#);
        let error = wrong.expect_err("no Base64").to_string();
        assert!(error.starts_with("a file is not Base64"), "{error}");
    }
}

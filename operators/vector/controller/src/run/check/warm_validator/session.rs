//! Questions to a validator within one reconciliation.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ListParams};
use lockstep_vector_validator::{self as validator, Configuration, Connection, Outcome, PORT};

use crate::run::check::warm_validator::WarmValidator;

/// Time in which questions are asked. The remaining ones are asked by the next reconciliation, so that other workloads do
/// not wait for long.
const ASK_WITHIN: Duration = Duration::from_secs(5);

/// Connection to a validator, within one reconciliation.
pub(crate) struct Session {
    connection: Connection,
    ends_at: Instant,
}

/// Labels of the Pods of a validator, and its credentials.
pub(crate) struct Access<'a> {
    pub(crate) labels: &'a BTreeMap<String, String>,
    pub(crate) certificate: &'a str,
    pub(crate) token: &'a str,
}

/// Reply to a question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Vector accepts the configuration.
    Passed,
    /// Vector rejects the configuration. The end of its log.
    Failed(String),
    /// Vector came to no result: a Pod of its own is to check this configuration.
    Unfinished(String),
}

impl Session {
    /// Connects to the validator of a workload. None if no Pod of the present template is ready.
    ///
    /// # Errors
    ///
    /// There is a Pod, and it is not the validator: another certificate, or nothing listens.
    pub(crate) async fn open(
        client: &Client,
        namespace: &str,
        validator: &WarmValidator,
    ) -> Result<Option<Self>, String> {
        let Some(desired) = validator.desired.as_ref().filter(|_| validator.is_running) else {
            return Ok(None);
        };
        let access = Access {
            labels: &validator.labels,
            certificate: &desired.certificate,
            token: &desired.token,
        };
        Self::connect(client, namespace, &access).await
    }

    /// Connects to the validator with these labels and credentials. None if no Pod is ready.
    ///
    /// # Errors
    ///
    /// There is a Pod, and it is not the validator: another certificate, or nothing listens.
    pub(crate) async fn connect(
        client: &Client,
        namespace: &str,
        access: &Access<'_>,
    ) -> Result<Option<Self>, String> {
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let labels = access.labels.iter();
        let labels = labels.map(|(key, it)| format!("{key}={it}"));
        let params = ListParams::default().labels(&labels.collect::<Vec<_>>().join(","));
        let pods = pods.list(&params).await;
        let pods = pods.map_err(|error| format!("its Pod cannot be found: {error}"))?;
        let Some(address) = pods.items.iter().find_map(address) else {
            return Ok(None);
        };
        let client = validator::Client::new(access.certificate.as_bytes(), access.token);
        let client = client.map_err(|error| error.to_string())?;
        let connection = client.connect(address).await;
        Ok(Some(Self {
            connection: connection.map_err(|error| error.to_string())?,
            ends_at: Instant::now() + ASK_WITHIN,
        }))
    }

    /// Returns true if no further question is to be asked now.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.ends_at
    }

    /// Returns the version and the schema that Vector prints.
    ///
    /// # Errors
    ///
    /// The validator does not answer, or Vector prints none of both.
    pub(crate) async fn schema(&mut self) -> Result<(String, Vec<u8>), String> {
        let version = self.connection.version().await;
        let version = version.map_err(|error| format!("`vector --version`: {error}"))?;
        let schema = self.connection.schema().await;
        let schema = schema.map_err(|error| format!("`vector generate-schema`: {error}"))?;
        Ok((version, schema.to_vec()))
    }

    /// Returns what Vector says about a configuration.
    ///
    /// # Errors
    ///
    /// The validator does not answer, or refuses to.
    pub(crate) async fn ask(&mut self, configuration: &Configuration) -> Result<Reply, String> {
        let answer = match self.connection.validate(configuration).await {
            Ok(answer) => answer,
            Err(error @ validator::ClientError::TooLarge) => {
                return Ok(Reply::Unfinished(error.to_string()));
            }
            Err(error) => return Err(error.to_string()),
        };
        Ok(match answer.outcome {
            Outcome::Passed => Reply::Passed,
            Outcome::Failed => Reply::Failed(answer.log),
            Outcome::Unfinished => Reply::Unfinished(answer.log),
        })
    }
}

/// Returns the address of a Pod that is ready.
fn address(pod: &Pod) -> Option<SocketAddr> {
    let status = pod.status.as_ref()?;
    let mut conditions = status.conditions.iter().flatten();
    let is_ready = conditions.any(|it| it.type_ == "Ready" && it.status == "True");
    let is_current = is_ready && pod.metadata.deletion_timestamp.is_none();
    let ip: IpAddr = status.pod_ip.as_deref()?.parse().ok()?;
    is_current.then(|| SocketAddr::new(ip, PORT))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn address_of(metadata: &Value, ready: &str, ip: &Value) -> Option<String> {
        let status = json!({"conditions": [{"type": "Ready", "status": ready}], "podIP": ip});
        let pod = serde_json::from_value(json!({"metadata": metadata, "status": status}));
        address(&pod.expect("a Pod")).map(|address| address.to_string())
    }

    #[test]
    fn only_a_pod_that_is_ready_and_stays_is_asked() {
        let lives = json!({});
        let ip = json!("10.0.0.1");
        assert_eq!(
            address_of(&lives, "True", &ip).as_deref(),
            Some("10.0.0.1:8443")
        );
        let ipv6 = address_of(&lives, "True", &json!("fd00::1"));
        assert_eq!(ipv6.as_deref(), Some("[fd00::1]:8443"));
        assert_eq!(address_of(&lives, "False", &ip), None);
        assert_eq!(address_of(&lives, "True", &Value::Null), None);
        let ends = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(address_of(&ends, "True", &ip), None);
    }
}

//! Values of the Secrets that pipelines refer to.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use lockstep_controller::{ReadObject, ReconcileError, SecretAccess, SecretRights, path_segment};
use lockstep_vector_assembly::{PipelineKey, PipelinePart, secrets};

use tokio::time::{Instant, timeout_at};

use crate::run::collect::published::Published;

/// Time for all Secrets of a workload: a few that are not answered do not delay the other pipelines for longer.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Number of Secrets that are read at a time.
const CONCURRENT: usize = 8;

/// Values, and the pipelines that wait for one.
#[derive(Debug, Default)]
pub(crate) struct PipelineSecrets {
    /// Values by the name of the file from which Vector reads them.
    pub(crate) values: BTreeMap<String, Vec<u8>>,
    /// Pipelines with a Secret that cannot be used, and why. No value is part of it.
    pub(crate) waiting: BTreeMap<PipelineKey, String>,
    /// All Secrets, as they were read.
    pub(crate) reads: Vec<ReadObject>,
    /// If true, a Secret could not be read for a reason that no watch reports the end of.
    pub(crate) is_incomplete: bool,
}

impl PipelineSecrets {
    /// Returns an error if a Secret could not be read, and what runs is not recorded, so that its pipeline could not fall back to it.
    /// The configuration of another operator, as before a takeover, is replaced only by one with all pipelines.
    pub(crate) fn require_fallback(&self, published: &Published) -> Result<(), ReconcileError> {
        if !self.is_incomplete || !published.is_unknown {
            return Ok(());
        }
        let problem = self.waiting.values().next().cloned();
        Err(ReconcileError::transient(
            "SecretUnreadable",
            problem.unwrap_or_default(),
        ))
    }
}

/// Reads the Secrets of parts, each by its name and once. One that cannot be read concerns only the pipelines that refer to it:
/// they run as they last ran.
pub(crate) async fn read(
    client: &Client,
    access: &SecretAccess,
    parts: &[PipelinePart],
) -> PipelineSecrets {
    let references = parts.iter().flat_map(|part| &part.secrets);
    let names: BTreeSet<_> = references
        .map(|reference| (&reference.namespace, &reference.name))
        .collect();
    let deadline = Instant::now() + TIME_LIMIT;
    let reading: Vec<_> = names
        .iter()
        .map(|(namespace, name)| timeout_at(deadline, get(client.clone(), namespace, name)))
        .collect();
    let answers: Vec<_> = stream::iter(reading).buffered(CONCURRENT).collect().await;
    let mut result = PipelineSecrets::default();
    let mut found = BTreeMap::new();
    for ((namespace, name), answer) in names.into_iter().zip(answers) {
        let secret = match answer {
            Ok(Ok(secret)) => secret.ok_or_else(|| "does not exist".to_owned()),
            Ok(Err(kube::Error::Api(status))) if status.is_forbidden() => {
                let remedy = access.remedy(SecretRights::View, namespace);
                Err(format!("cannot be read by the controller; {remedy}"))
            }
            Ok(Err(error)) => {
                result.is_incomplete = true;
                Err(format!("cannot be read: {error}"))
            }
            Err(_) => {
                result.is_incomplete = true;
                let seconds = TIME_LIMIT.as_secs();
                Err(format!(
                    "cannot be read: the API server has not answered within {seconds} s"
                ))
            }
        };
        let read = ReadObject::of(namespace, name, secret.as_ref().ok());
        result.reads.push(read);
        found.insert((namespace, name), secret);
    }
    for part in parts {
        for reference in &part.secrets {
            let secret = &found[&(&reference.namespace, &reference.name)];
            let value = secret.as_ref().map_err(Clone::clone);
            let value = value.and_then(|secret| {
                let values = secret.data.as_ref();
                let value = values.and_then(|values| values.get(&reference.key));
                let value = value.ok_or_else(|| format!("has no key `{}`", reference.key))?;
                secrets::validate_value(&value.0).map_err(|why| {
                    format!("has a value of the key `{}` that {why}", reference.key)
                })?;
                Ok(value.0.clone())
            });
            match value {
                Ok(value) => drop(result.values.insert(reference.file_name.clone(), value)),
                Err(why) => {
                    let why = format!("the Secret `{}` {why}", reference.name);
                    result.waiting.entry(part.pipeline.clone()).or_insert(why);
                }
            }
        }
    }
    result
}

/// Returns a future that reads a Secret.
fn get(
    client: Client,
    namespace: &str,
    name: &str,
) -> impl Future<Output = Result<Option<Secret>, kube::Error>> + use<> {
    let secrets: Api<Secret> = Api::namespaced(client, &path_segment(namespace));
    let name = path_segment(name).into_owned();
    async move { secrets.get_opt(&name).await }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    fn part(pipeline: &str, secret: &str) -> PipelinePart {
        let reference = json!({
            "namespace": "team", "name": secret, "key": "password", "file_name": pipeline,
        });
        let part = json!({
            "pipeline": {"namespace": "team", "name": pipeline}, "generation": 1, "prefix": "",
            "sources": {}, "transforms": {}, "sinks": {}, "secrets": [reference],
        });
        serde_json::from_value(part).expect("a part")
    }

    /// Returns a client whose API server never answers about Secrets whose names begin with `silent`.
    fn client() -> Client {
        let service = tower::service_fn(async |request: Request<Body>| {
            if request.uri().path().contains("/silent") {
                std::future::pending::<()>().await;
            }
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
                "data": {"password": "c2VjcmV0"},
            });
            Ok::<_, Infallible>(Response::new(Body::from(secret.to_string().into_bytes())))
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn secrets_that_are_not_answered_delay_a_workload_once_and_concern_their_pipelines_only()
    {
        let mut parts: Vec<_> = (0..100)
            .map(|number| part(&format!("waits-{number}"), &format!("silent-{number}")))
            .collect();
        parts.push(part("runs", "answered"));
        let started = Instant::now();
        let read = read(&client(), &SecretAccess::default(), &parts).await;
        assert_eq!(started.elapsed(), TIME_LIMIT);
        assert!(read.is_incomplete);
        assert_eq!(read.waiting.len(), 100);
        let why = &read.waiting[&parts[0].pipeline];
        assert!(why.contains("`silent-0` cannot be read"), "{why}");
        assert_eq!(read.values["runs"], b"secret");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_secret_the_configuration_of_another_operator_is_not_replaced() {
        let parts = [part("waits", "silent"), part("runs", "answered")];
        let of_another_operator = Published {
            is_unknown: true,
            ..Published::default()
        };
        let (client, access) = (client(), SecretAccess::default());
        let incomplete = read(&client, &access, &parts).await;
        let error = incomplete.require_fallback(&of_another_operator);
        let error = error.expect_err("the other operator runs it");
        assert!(error.passes_by_itself(), "{error}");
        assert!(error.to_string().contains("`silent`"), "{error}");
        incomplete
            .require_fallback(&Published::default())
            .expect("the pipeline runs as it last ran");
        let complete = read(&client, &access, &parts[1..]).await;
        complete
            .require_fallback(&of_another_operator)
            .expect("all Secrets are known");
    }
}

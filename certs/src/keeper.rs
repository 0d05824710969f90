//! Keeping everything as it must be, for as long as the process lives.

use std::path::PathBuf;
use std::time::Duration;

use futures::StreamExt;
use futures::future::ready;
use futures::stream::{BoxStream, select_all};
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::watch_object;
use kube::{Api, Client};

use crate::announce::EventRecorder;
use crate::authority::AuthorityError;
use crate::bundle::{InjectOutcome, InjectTarget};
use crate::cluster::{ClusterApi, KubeApi};
use crate::metrics::Metrics;
use crate::plan::RotationPolicy;
use crate::replicas::ReplicaProbe;
use crate::{own, provided};

/// How long several changes count as one.
const SETTLE: Duration = Duration::from_millis(100);

/// How soon a failure is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Why the keys are not as they must be.
#[derive(Debug, thiserror::Error)]
pub enum CertError {
    /// The API server refuses or cannot be reached.
    #[error("the API server: {0}")]
    Api(#[from] kube::Error),
    /// Keys cannot be made or read.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The serving pair cannot be written.
    #[error("cannot write the serving pair to {directory}: {source}")]
    Write {
        /// The shared directory.
        directory: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A CA that a file should hold cannot be read.
    #[error("cannot read the CA in {path}: {source}")]
    ReadCa {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Others write faster than one can read.
    #[error("others keep changing the Secret or a configuration")]
    Conflict,
    /// The Secret that somebody else makes is not there.
    #[error("the Secret is not there yet; whoever issues certificates has to make it")]
    SecretNotFound,
    /// The Secret that somebody else fills is not whole.
    #[error("the Secret lacks {0}; whoever issues certificates has to fill it")]
    MissingKey(&'static str),
    /// The Secret holds keys that were not made together.
    #[error(
        "the Secret holds keys of somebody else: {0}; nothing is touched. Delete the Secret to have all keys made anew, or say `--cert-source secret`"
    )]
    UnmanagedSecret(&'static str),
    /// The Secret that somebody else fills holds what cannot be served.
    #[error("the pair in the Secret cannot be served: {0}; the one before stays")]
    InvalidKeyPair(String),
}

/// Where the serving pair comes from.
#[derive(Clone, Debug)]
pub enum CertificateSource {
    /// It is made here, and kept in the Secret.
    SelfSigned(RotationPolicy),
    /// Somebody else fills the Secret. A new CA is carried for this long before it is relied on.
    Secret {
        /// How long.
        settle: Duration,
    },
    /// The gate has files of its own; only their CA is kept in the configurations, if it is given.
    Files {
        /// A file with what is to be trusted.
        ca: Option<PathBuf>,
    },
}

/// Keeps the serving pair in a directory, and its CA in every target.
pub struct CertificateManager {
    /// The cluster.
    pub client: Client,
    /// The namespace of the Secret.
    pub namespace: String,
    /// The name of the Secret.
    pub secret: String,
    /// Where the pair comes from.
    pub source: CertificateSource,
    /// Where the gate looks for its serving pair.
    pub directory: PathBuf,
    /// The configurations that must trust the CA.
    pub targets: Vec<InjectTarget>,
    /// Who shows the certificate.
    pub replica_probe: ReplicaProbe,
    /// How often everything is looked at, by the wall clock, so that a suspended node catches up.
    pub sync_interval: Duration,
    /// What is told of it.
    pub metrics: Metrics,
}

impl CertificateManager {
    /// Does the duty for as long as the process lives: on a tick, and whenever somebody has touched the
    /// Secret or a target. A failure is logged, told in an Event, and tried again.
    pub async fn run(self) {
        let announcer = EventRecorder::new(&self.client, &self.namespace, &self.secret);
        let mut changes = select_all(self.changes());
        let mut memory = provided::SyncState::default();
        loop {
            let pause = match self.sync(&mut memory).await {
                Ok(()) => {
                    announcer.forget();
                    jittered(self.sync_interval)
                }
                Err(error) => {
                    self.metrics.errors.inc();
                    tracing::error!(%error, "cannot keep the gate's keys; trying again");
                    if let CertError::InvalidKeyPair(_)
                    | CertError::MissingKey(_)
                    | CertError::UnmanagedSecret(_) = error
                    {
                        announcer
                            .warning("BadServingPair", &error.to_string())
                            .await;
                    }
                    RETRY_AFTER.min(self.sync_interval)
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                // Somebody who fights over a target is answered, but not as fast as both can.
                Some(()) = changes.next() => tokio::time::sleep(SETTLE).await,
            }
        }
    }

    async fn sync(&self, memory: &mut provided::SyncState) -> Result<(), CertError> {
        let cluster = KubeApi {
            client: &self.client,
            secrets: Api::namespaced(self.client.clone(), &self.namespace),
            secret: &self.secret,
            directory: &self.directory,
            replicas: &self.replica_probe,
        };
        match &self.source {
            CertificateSource::SelfSigned(plan) => {
                let keys = own::sync(&cluster, &self.secret, plan, &self.targets).await?;
                self.metrics.set(&keys);
                Ok(())
            }
            CertificateSource::Secret { settle } => {
                let name = &self.replica_probe.server_name;
                provided::sync(&cluster, name, *settle, &self.targets, memory).await
            }
            CertificateSource::Files { ca: None } => Ok(()),
            CertificateSource::Files { ca: Some(path) } => {
                let read = std::fs::read_to_string(path);
                let trusted = read.map_err(|source| CertError::ReadCa {
                    path: path.clone(),
                    source,
                })?;
                inject_everywhere(&cluster, &self.targets, &trusted).await
            }
        }
    }

    fn changes(&self) -> Vec<BoxStream<'static, ()>> {
        let mut changes: Vec<_> = self
            .targets
            .iter()
            .map(|target| target.changes(&self.client).boxed())
            .collect();
        if !matches!(self.source, CertificateSource::Files { .. }) {
            let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
            let secret = watch_object(secrets, &self.secret).default_backoff();
            changes.push(
                secret
                    .filter_map(|event| ready(event.ok().map(|_| ())))
                    .boxed(),
            );
        }
        changes
    }
}

async fn inject_everywhere(
    cluster: &impl ClusterApi,
    targets: &[InjectTarget],
    trusted: &str,
) -> Result<(), CertError> {
    for target in targets {
        if let Some(found) = cluster.get_target(target).await?
            && cluster.inject_ca(target, &found, trusted).await? == InjectOutcome::Conflict
        {
            return Err(CertError::Conflict);
        }
    }
    Ok(())
}

/// A tenth more or less, so that replicas do not keep step.
fn jittered(period: Duration) -> Duration {
    period.mul_f64(fastrand::f64().mul_add(0.2, 0.9))
}

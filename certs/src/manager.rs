//! Certificate manager: keeps the Secret, the serving certificate and the CA bundles up to date.

use std::path::PathBuf;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, select_all};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, ApiResource};
use lockstep_watch::{WatchedObject, Watches};

use crate::api::{ClusterApi, KubeApi};
use crate::ca::rotation::RotationPolicy;
use crate::error::CertError;
use crate::events::EventRecorder;
use crate::inject::notices::{Notice, Notices};
use crate::inject::repair_pace::RepairPace;
use crate::inject::target::{InjectOutcome, InjectTarget};
use crate::metrics::Metrics;
use crate::replica_probe::ReplicaProbe;
use crate::source::{external, self_signed};

/// Debounce time: changes within it are handled together.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Longest delay before a failure is retried.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Source of the TLS key pair.
#[derive(Clone, Debug)]
pub enum CertificateSource {
    /// This process generates the pair and stores it in the Secret.
    SelfSigned(RotationPolicy),
    /// Another component, such as cert-manager, fills the Secret.
    Secret {
        /// Propagation delay: how long a new CA is injected before a certificate that it signed is served.
        propagation_delay: Duration,
    },
    /// The webhook has its own files. Only their CA is injected into the configurations, if it is given.
    Files {
        /// File with the trusted CA certificates.
        ca: Option<PathBuf>,
    },
}

/// Certificate manager: keeps the TLS key pair in a directory current, and its CA in every target.
pub struct CertificateManager {
    /// Client of the cluster.
    pub client: Client,
    /// Reporting controller of its Events.
    pub controller: String,
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// Source of the TLS key pair.
    pub source: CertificateSource,
    /// Directory from which the webhook reads its TLS key pair.
    pub directory: PathBuf,
    /// Configurations that must trust the CA.
    pub targets: Vec<InjectTarget>,
    /// Replicas that serve the certificate.
    pub replica_probe: ReplicaProbe,
    /// Interval of checks, in addition to watch events. Expiry is compared with the wall clock, so that a node that
    /// was suspended catches up.
    pub sync_interval: Duration,
    /// Metrics of certificates and CA rotation.
    pub metrics: Metrics,
    /// Watches of the process, to which those on the Secret and on the targets are added.
    pub watches: Watches,
}

impl CertificateManager {
    /// Synchronizes for as long as the process lives: periodically, and on every change of the Secret or of a
    /// target. A failure is logged and retried. Invalid content of the Secret is reported by an Event as well.
    pub async fn run(self) {
        let (controller, namespace) = (&self.controller, &self.namespace);
        let recorder = EventRecorder::new(&self.client, controller, namespace, &self.secret);
        self.metrics.add_targets(&self.targets);
        let notices = Notices::new(self.metrics.clone());
        let mut changes = select_all(self.changes());
        let mut state = external::SyncState::default();
        let (mut pace, mut is_periodic) = (RepairPace::default(), true);
        loop {
            let result = self.sync(&mut state, &notices).await;
            let reported = notices.take();
            let has_repaired = reported.iter().any(Notice::is_repair);
            pace.record(has_repaired, is_periodic && result.is_ok());
            for notice in reported {
                recorder.publish(&notice).await;
            }
            let pause = self.report(&recorder, result).await;
            tokio::select! {
                () = tokio::time::sleep(pause) => is_periodic = true,
                // The delay limits the write rate if another client keeps overwriting a target.
                Some(()) = changes.next() => {
                    is_periodic = false;
                    tokio::time::sleep(pace.delay(DEBOUNCE, self.sync_interval)).await;
                }
            }
        }
    }

    /// Reports the result of a check. Returns the pause before the next one.
    async fn report(&self, recorder: &EventRecorder, result: Result<(), CertError>) -> Duration {
        let Err(error) = result else {
            recorder.forget_failure();
            return jittered(self.sync_interval);
        };
        self.metrics.errors.inc();
        tracing::error!(%error, "cannot synchronize the certificates of the webhook; retrying");
        if let CertError::InvalidKeyPair(_)
        | CertError::MissingKey(_)
        | CertError::UnmanagedSecret { .. } = error
        {
            recorder.failure(&error.to_string()).await;
        }
        RETRY_AFTER.min(self.sync_interval)
    }

    async fn sync(
        &self,
        state: &mut external::SyncState,
        notices: &Notices,
    ) -> Result<(), CertError> {
        let cluster = KubeApi {
            client: &self.client,
            secrets: Api::namespaced(self.client.clone(), &self.namespace),
            secret: &self.secret,
            directory: &self.directory,
            replicas: &self.replica_probe,
            notices,
        };
        match &self.source {
            CertificateSource::SelfSigned(plan) => {
                let keys = self_signed::sync(&cluster, &self.secret, plan, &self.targets).await?;
                self.metrics.set(&keys);
                Ok(())
            }
            CertificateSource::Secret { propagation_delay } => {
                let name = &self.replica_probe.server_name;
                external::sync(&cluster, name, *propagation_delay, &self.targets, state).await
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
        let secret = WatchedObject {
            resource: ApiResource::erase::<Secret>(&()),
            namespace: Some(self.namespace.clone()),
            name: self.secret.clone(),
        };
        let has_secret = !matches!(self.source, CertificateSource::Files { .. });
        let targets = self.targets.iter().map(InjectTarget::watched);
        targets
            .chain(has_secret.then_some(secret))
            .map(|object| {
                let changes = object.changes(&self.client, &self.watches, &self.controller);
                changes.boxed()
            })
            .collect()
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

/// Adds a jitter of ±10 %, so that replicas do not run at the same time.
fn jittered(period: Duration) -> Duration {
    period.mul_f64(fastrand::f64().mul_add(0.2, 0.9))
}

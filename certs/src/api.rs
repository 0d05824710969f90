//! Cluster operations that certificate rotation needs: few calls, and the process may stop after each of them.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use time::OffsetDateTime;

use crate::ca::authority::CertKeyPair;
use crate::error::CertError;
use crate::inject::notices::Notices;
use crate::inject::target::{InjectOutcome, InjectTarget};
use crate::replica_probe::ReplicaProbe;
use crate::store::files;

/// Access to the cluster and to the volume of the webhook.
pub(crate) trait ClusterApi: Sync {
    /// Returns the current time.
    fn now(&self) -> OffsetDateTime;

    /// Returns a configuration, or `None` if it does not exist or refers only to other installations.
    fn get_target(
        &self,
        target: &InjectTarget,
    ) -> impl Future<Output = Result<Option<DynamicObject>, CertError>> + Send;

    /// Injects the CA bundle `trusted` into a configuration, unless this has changed since `found` was read.
    fn inject_ca(
        &self,
        target: &InjectTarget,
        found: &DynamicObject,
        trusted: &str,
    ) -> impl Future<Output = Result<InjectOutcome, CertError>> + Send;

    /// Returns the Secret, or `None` if it does not exist.
    fn get_secret(&self) -> impl Future<Output = Result<Option<Secret>, CertError>> + Send;

    /// Writes the Secret, unless it has changed since it was read.
    fn put_secret(
        &self,
        secret: &Secret,
    ) -> impl Future<Output = Result<InjectOutcome, CertError>> + Send;

    /// Records that damaged content of the Secret was replaced.
    fn on_secret_repaired(&self, damage: &str);

    /// Returns true if every replica serves a certificate of this CA.
    fn all_replicas_serve(&self, ca: &str) -> impl Future<Output = Result<bool, CertError>> + Send;

    /// Returns the pair that was written for the webhook that shares a volume with this process.
    fn read_served(&self) -> Option<CertKeyPair>;

    /// Writes the pair for the webhook that shares a volume with this process.
    fn write_files(&self, pair: &CertKeyPair) -> Result<(), CertError>;
}

/// [`ClusterApi`] of the Kubernetes API.
pub(crate) struct KubeApi<'a> {
    pub(crate) client: &'a Client,
    pub(crate) secrets: Api<Secret>,
    pub(crate) secret: &'a str,
    pub(crate) directory: &'a Path,
    pub(crate) replicas: &'a ReplicaProbe,
    pub(crate) notices: &'a Notices,
}

impl ClusterApi for KubeApi<'_> {
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }

    async fn get_target(&self, target: &InjectTarget) -> Result<Option<DynamicObject>, CertError> {
        let Some(found) = target.get(self.client).await? else {
            return Ok(None);
        };
        self.notices
            .set_foreign_servers(target, target.foreign_servers(&found));
        let is_own = !target.injected_cas(&found).is_empty();
        Ok(is_own.then_some(found))
    }

    async fn inject_ca(
        &self,
        target: &InjectTarget,
        found: &DynamicObject,
        trusted: &str,
    ) -> Result<InjectOutcome, CertError> {
        let outcome = target.inject_ca(self.client, found, trusted).await?;
        match outcome {
            InjectOutcome::Already => self.notices.set_current(target, trusted),
            InjectOutcome::Now => {
                let before = target.injected_cas(found);
                self.notices.injected(target, &before, trusted);
            }
            InjectOutcome::Conflict => {}
        }
        Ok(outcome)
    }

    async fn get_secret(&self) -> Result<Option<Secret>, CertError> {
        Ok(self.secrets.get_opt(self.secret).await?)
    }

    async fn put_secret(&self, secret: &Secret) -> Result<InjectOutcome, CertError> {
        let params = PostParams::default();
        let written = match secret.metadata.resource_version {
            None => self.secrets.create(&params, secret).await,
            Some(_) => self.secrets.replace(self.secret, &params, secret).await,
        };
        match written {
            Ok(_) => Ok(InjectOutcome::Now),
            // Another replica was faster.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(InjectOutcome::Conflict),
            Err(error) => Err(error.into()),
        }
    }

    fn on_secret_repaired(&self, damage: &str) {
        self.notices.secret_repaired(damage);
    }

    async fn all_replicas_serve(&self, ca: &str) -> Result<bool, CertError> {
        Ok(self.replicas.all_serve(ca).await?)
    }

    fn read_served(&self) -> Option<CertKeyPair> {
        files::read(self.directory)
    }

    fn write_files(&self, pair: &CertKeyPair) -> Result<(), CertError> {
        files::write(self.directory, pair).map_err(|source| CertError::Write {
            directory: PathBuf::from(self.directory),
            source,
        })
    }
}

//! Cluster operations that certificate rotation needs: few calls, and the process may stop after each of them.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use time::OffsetDateTime;

use crate::authority::Pair;
use crate::bundle::{Target, Written};
use crate::files;
use crate::keeper::KeeperError;
use crate::replicas::Replicas;

/// Access to the cluster and to the volume of the webhook.
pub(crate) trait Cluster: Sync {
    /// Returns the current time.
    fn now(&self) -> OffsetDateTime;

    /// Returns a configuration, or `None` if it does not exist.
    fn look(
        &self,
        target: &Target,
    ) -> impl Future<Output = Result<Option<DynamicObject>, KeeperError>> + Send;

    /// Injects the CA bundle `trusted` into a configuration, unless this has changed since `found` was read.
    fn carry(
        &self,
        target: &Target,
        found: &DynamicObject,
        trusted: &str,
    ) -> impl Future<Output = Result<Written, KeeperError>> + Send;

    /// Returns the Secret, or `None` if it does not exist.
    fn load(&self) -> impl Future<Output = Result<Option<Secret>, KeeperError>> + Send;

    /// Writes the Secret, unless it has changed since it was read.
    fn store(&self, secret: &Secret) -> impl Future<Output = Result<Written, KeeperError>> + Send;

    /// Returns true if every replica serves a certificate of this CA.
    fn all_show(&self, ca: &str) -> impl Future<Output = Result<bool, KeeperError>> + Send;

    /// Returns the pair that was written for the webhook that shares a volume with this process.
    fn served(&self) -> Option<Pair>;

    /// Writes the pair for the webhook that shares a volume with this process.
    fn serve(&self, pair: &Pair) -> Result<(), KeeperError>;
}

/// [`Cluster`] of the Kubernetes API.
pub(crate) struct Kubernetes<'a> {
    pub(crate) client: &'a Client,
    pub(crate) secrets: Api<Secret>,
    pub(crate) secret: &'a str,
    pub(crate) directory: &'a Path,
    pub(crate) replicas: &'a Replicas,
}

impl Cluster for Kubernetes<'_> {
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }

    async fn look(&self, target: &Target) -> Result<Option<DynamicObject>, KeeperError> {
        Ok(target.look(self.client).await?)
    }

    async fn carry(
        &self,
        target: &Target,
        found: &DynamicObject,
        trusted: &str,
    ) -> Result<Written, KeeperError> {
        Ok(target.carry(self.client, found, trusted).await?)
    }

    async fn load(&self) -> Result<Option<Secret>, KeeperError> {
        Ok(self.secrets.get_opt(self.secret).await?)
    }

    async fn store(&self, secret: &Secret) -> Result<Written, KeeperError> {
        let params = PostParams::default();
        let written = match secret.metadata.resource_version {
            None => self.secrets.create(&params, secret).await,
            Some(_) => self.secrets.replace(self.secret, &params, secret).await,
        };
        match written {
            Ok(_) => Ok(Written::Now),
            // Another replica was faster.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Written::Conflict),
            Err(error) => Err(error.into()),
        }
    }

    async fn all_show(&self, ca: &str) -> Result<bool, KeeperError> {
        Ok(self.replicas.all_show(ca).await?)
    }

    fn served(&self) -> Option<Pair> {
        files::read(self.directory)
    }

    fn serve(&self, pair: &Pair) -> Result<(), KeeperError> {
        files::write(self.directory, pair).map_err(|source| KeeperError::Write {
            directory: PathBuf::from(self.directory),
            source,
        })
    }
}

//! What keeping keys needs of a cluster: few calls, each of which may be the last one.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use time::OffsetDateTime;

use crate::authority::CertKeyPair;
use crate::bundle::{InjectOutcome, InjectTarget};
use crate::files;
use crate::keeper::CertError;
use crate::replicas::ReplicaProbe;

/// The world around the keys.
pub(crate) trait ClusterApi: Sync {
    /// What time it is.
    fn now(&self) -> OffsetDateTime;

    /// A configuration as it is.
    fn get_target(
        &self,
        target: &InjectTarget,
    ) -> impl Future<Output = Result<Option<DynamicObject>, CertError>> + Send;

    /// Makes a configuration carry what is trusted, unless it has changed since it was looked at.
    fn inject_ca(
        &self,
        target: &InjectTarget,
        found: &DynamicObject,
        trusted: &str,
    ) -> impl Future<Output = Result<InjectOutcome, CertError>> + Send;

    /// The Secret as it is.
    fn get_secret(&self) -> impl Future<Output = Result<Option<Secret>, CertError>> + Send;

    /// Writes the Secret, unless it has changed since it was loaded.
    fn put_secret(
        &self,
        secret: &Secret,
    ) -> impl Future<Output = Result<InjectOutcome, CertError>> + Send;

    /// Whether every replica shows a certificate of this CA.
    fn all_replicas_serve(&self, ca: &str) -> impl Future<Output = Result<bool, CertError>> + Send;

    /// What the gate beside this process has been given.
    fn read_served(&self) -> Option<CertKeyPair>;

    /// Gives the gate beside this process its pair.
    fn write_files(&self, pair: &CertKeyPair) -> Result<(), CertError>;
}

/// A real one.
pub(crate) struct KubeApi<'a> {
    pub(crate) client: &'a Client,
    pub(crate) secrets: Api<Secret>,
    pub(crate) secret: &'a str,
    pub(crate) directory: &'a Path,
    pub(crate) replicas: &'a ReplicaProbe,
}

impl ClusterApi for KubeApi<'_> {
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }

    async fn get_target(&self, target: &InjectTarget) -> Result<Option<DynamicObject>, CertError> {
        Ok(target.get(self.client).await?)
    }

    async fn inject_ca(
        &self,
        target: &InjectTarget,
        found: &DynamicObject,
        trusted: &str,
    ) -> Result<InjectOutcome, CertError> {
        Ok(target.inject_ca(self.client, found, trusted).await?)
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

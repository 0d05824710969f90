//! Keeping everything as it must be, for as long as the process lives.

use std::path::PathBuf;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::select_all;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use time::OffsetDateTime;

use crate::authority::AuthorityError;
use crate::bundle::{self, Target};
use crate::{files, secret};

/// How often everything is looked at: by the wall clock, so that a suspended node catches up.
const LOOK_EVERY: Duration = Duration::from_mins(1);

/// How long several changes of a target count as one.
const SETTLE: Duration = Duration::from_millis(100);

/// How soon a failure is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Why the keys are not as they must be.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
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
    /// What the API server stored is not what it was given.
    #[error("the Secret came back without its keys")]
    Incomplete,
}

/// Keeps the Secret, the serving pair in a directory, and the CA in every target.
pub struct Keeper {
    /// The cluster.
    pub client: Client,
    /// The namespace of the Secret.
    pub namespace: String,
    /// The name of the Secret.
    pub secret: String,
    /// The names that the serving certificate is valid for.
    pub dns_names: Vec<String>,
    /// Where the gate looks for its serving pair.
    pub directory: PathBuf,
    /// The configurations that must trust the CA.
    pub targets: Vec<Target>,
}

impl Keeper {
    /// Does the duty once.
    ///
    /// The serving pair is written before any API server is told to trust it: what is trusted can be
    /// served.
    pub async fn tend(&self) -> Result<(), KeeperError> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let keys = secret::ensure(
            &secrets,
            &self.secret,
            &self.dns_names,
            OffsetDateTime::now_utc(),
        )
        .await?;
        files::write(&self.directory, &keys).map_err(|source| KeeperError::Write {
            directory: self.directory.clone(),
            source,
        })?;
        for target in &self.targets {
            bundle::apply(&self.client, target, &keys.ca_certificate).await?;
        }
        Ok(())
    }

    /// Does the duty for as long as the process lives: on a tick, and whenever somebody has touched a
    /// target. A failure is logged and tried again.
    pub async fn run(self) {
        let changes = self
            .targets
            .iter()
            .map(|target| target.changes(&self.client).boxed());
        let mut changes = select_all(changes);
        loop {
            let pause = match self.tend().await {
                Ok(()) => LOOK_EVERY,
                Err(error) => {
                    tracing::error!(%error, "cannot keep the gate's keys; trying again");
                    RETRY_AFTER
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                // Somebody who fights over a target is answered, but not as fast as both can.
                Some(()) = changes.next() => tokio::time::sleep(SETTLE).await,
            }
        }
    }
}

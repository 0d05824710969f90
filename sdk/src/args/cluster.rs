//! Options for the access to a cluster, as kubectl has them.

use std::path::PathBuf;

use anyhow::Context;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Options for the kubeconfig and its context.
#[derive(clap::Args, Default)]
pub(crate) struct ClusterArgs {
    /// Kubeconfig file. Default: the files in `KUBECONFIG`, or `~/.kube/config`.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: its current context.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Returns a client with the rights of the Pod, or of the user of the current context of the kubeconfig.
///
/// # Errors
///
/// There is no configuration of a cluster, or it cannot be used.
pub async fn cluster_client() -> anyhow::Result<Client> {
    ClusterArgs::default().client().await
}

impl ClusterArgs {
    /// Returns a client with the rights of the user of the context.
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        self.client_with(true).await
    }

    /// Returns the same client, which reports a response with 503 at once. The default one asks again for minutes, also a Pod
    /// behind the API server's proxy that responds so because it is not ready.
    pub(crate) async fn client_without_retries(&self) -> anyhow::Result<Client> {
        self.client_with(false).await
    }

    async fn client_with(&self, retry: bool) -> anyhow::Result<Client> {
        // kube uses rustls, which needs a process-wide TLS provider. If one is already installed, it is kept.
        drop(rustls::crypto::ring::default_provider().install_default());
        let config = self.config().await;
        let mut config = config.context("cannot load the cluster configuration; set KUBECONFIG")?;
        config.default_retry = retry;
        Client::try_from(config).context("cannot use the cluster configuration")
    }

    async fn config(&self) -> anyhow::Result<Config> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        if let Some(file) = &self.kubeconfig {
            let kubeconfig = Kubeconfig::read_from(file)?;
            return Ok(Config::from_custom_kubeconfig(kubeconfig, &options).await?);
        }
        if self.context.is_some() {
            return Ok(Config::from_kubeconfig(&options).await?);
        }
        Ok(Config::infer().await?)
    }
}

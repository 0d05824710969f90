//! Client with the permissions of a service account.

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use lockstep_envtest::Cluster;

/// Returns a client of a service account in the namespace `default`.
///
/// # Panics
///
/// If the cluster does not issue a token for it.
pub async fn service_account_client(cluster: &Cluster, name: &str) -> Client {
    let path = cluster.service_account_kubeconfig("default", name, None);
    let kubeconfig = Kubeconfig::read_from(path.await.expect("the cluster issues a kubeconfig"));
    let kubeconfig = kubeconfig.expect("the kubeconfig is readable");
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    Client::try_from(config.expect("the kubeconfig is valid"))
        .expect("the configuration makes a client")
}

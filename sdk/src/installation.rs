//! Installation in a cluster, as administrators see it with their own rights: what it consists of, and the objects
//! of its kinds. The subcommands `status` and `uninstall` read it.

pub(crate) mod age;
pub(crate) mod lease;
pub(crate) mod manifest_object;
pub(crate) mod objects;
pub(crate) mod stored_object;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use kube::api::Api;
use lockstep_manifests::names;

use crate::args::installation::InstallationArgs;
use crate::registry::{Registry, SelectedKinds};

/// Names of the Deployments: of the Pods with webhook and controller, and of separate controllers.
const DEPLOYMENTS: [&str; 2] = [names::APP, names::LEASE];

/// Installation with its kinds and its scope.
pub(crate) struct Installation<'a> {
    pub(crate) client: Client,
    /// Namespace of the Pods.
    pub(crate) home: String,
    pub(crate) kinds: SelectedKinds<'a>,
    /// The watched namespaces; empty for all.
    pub(crate) namespaces: Vec<String>,
    /// If true, another installation owns the CRDs and the objects.
    pub(crate) is_webhook_only: bool,
    /// If false, there are no webhook configurations and no certificates.
    pub(crate) has_webhook: bool,
}

impl<'a> Installation<'a> {
    /// Selects an installation by the options and by its Deployments.
    pub(crate) fn new(
        client: Client,
        args: &InstallationArgs,
        deployments: &[Deployment],
        registry: &'a Registry,
    ) -> anyhow::Result<Self> {
        let controller = args.controller(deployments)?;
        let kinds = controller.kinds.choose(registry)?;
        let namespaces = controller.scope.namespaces(kinds.cluster_scoped_kind())?;
        let namespaces = namespaces.to_vec();
        Ok(Self {
            client,
            // A namespaced installation runs in the first of its namespaces.
            home: namespaces
                .first()
                .map_or_else(|| args.home().to_owned(), String::clone),
            kinds,
            namespaces,
            is_webhook_only: controller.scope.is_webhook_only(),
            has_webhook: controller.scope.has_webhook(),
        })
    }

    /// Returns true if the installation is limited to some namespaces.
    pub(crate) fn is_namespaced(&self) -> bool {
        !self.namespaces.is_empty()
    }
}

/// Reads the Deployments of the installation in a namespace; those that do not exist are left out.
pub(crate) async fn deployments(
    client: &Client,
    namespace: &str,
) -> Result<Vec<Deployment>, kube::Error> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let mut found = Vec::new();
    for name in DEPLOYMENTS {
        found.extend(api.get_opt(name).await?);
    }
    Ok(found)
}

//! Installation in a cluster, as administrators see it with their own rights: what it consists of, and the objects
//! of its kinds. The subcommands `status` and `uninstall` read it.

pub(crate) mod age;
pub(crate) mod installed_names;
pub(crate) mod lease;
pub(crate) mod manifest_object;
pub(crate) mod objects;
pub(crate) mod stored_object;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use lockstep_manifests::names;

use crate::args::installation::InstallationArgs;
use crate::installation::installed_names::InstalledNames;
use crate::registry::{Registry, SelectedKinds};

/// Labels of the Deployments and their Pods, whatever their names are: webhook with controller, and separate controllers.
pub(crate) fn selector() -> ListParams {
    let selector = format!(
        "app.kubernetes.io/name in ({}, {})",
        names::APP,
        names::LEASE
    );
    ListParams::default().labels(&selector)
}

/// Annotation in which Helm stores the name of a release.
const HELM_RELEASE: &str = "meta.helm.sh/release-name";

/// Installation with its kinds and its scope.
pub(crate) struct Installation<'a> {
    pub(crate) client: Client,
    /// Namespace of the Pods.
    pub(crate) home: String,
    pub(crate) names: InstalledNames,
    /// Name of the Helm release, if Helm has installed it.
    pub(crate) helm_release: Option<String>,
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
        let running = args.controller(deployments)?;
        let controller = running.controller;
        let kinds = controller.kinds.choose(registry)?;
        let namespaces = controller.scope.namespaces(kinds.cluster_scoped_kind())?;
        let namespaces = namespaces.to_vec();
        let found = deployments.first();
        let release = found.and_then(|found| found.annotations().get(HELM_RELEASE));
        Ok(Self {
            client,
            // Without a chart, a namespaced installation runs in the first of its namespaces.
            home: match (found, namespaces.first()) {
                (None, Some(first)) => first.clone(),
                _ => args.home().to_owned(),
            },
            names: running.names,
            helm_release: release.cloned(),
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

/// Reads the Deployments of the installation in a namespace.
pub(crate) async fn deployments(
    client: &Client,
    namespace: &str,
) -> Result<Vec<Deployment>, kube::Error> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    Ok(api.list(&selector()).await?.items)
}

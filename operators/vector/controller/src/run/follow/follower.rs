//! Follower: what the Pods make of what is published.

use kube::Client;
use lockstep_controller::SyncRequest;
use lockstep_vector_api::{RunStatus, WorkloadKind};

use crate::owned;
use crate::run::follow::pod_refresh::{self, Refresh};
use crate::run::follow::reload::{ObservedReloads, ReloadReport};
use crate::run::names::Names;
use crate::run::publish::publisher::Desired;

/// Follower of the workloads of a kind.
pub(crate) struct Follower {
    pub(crate) client: Client,
    pub(crate) reloads: ObservedReloads,
}

/// Refresh of the Pods.
#[derive(Default)]
pub(crate) struct Refreshed {
    /// Versions of the Secrets with which all Pods were refreshed, if there are new ones.
    pub(crate) versions: Option<String>,
    /// If true, a Pod is to be refreshed again.
    pub(crate) is_incomplete: bool,
}

impl Follower {
    /// Reads what the Pods have loaded.
    pub(crate) async fn reload<K: WorkloadKind>(
        &self,
        request: &SyncRequest<'_, K>,
        status: &RunStatus,
        names: &Names,
        desired: &Desired,
    ) -> ReloadReport {
        let (publication, assembly) = (&desired.publication, &desired.assembly);
        self.reloads
            .observe(request, status, names, publication, assembly)
            .await
    }

    /// Refreshes the Pods if Secrets among the desired objects have been published since the last time.
    pub(crate) async fn refresh<K: WorkloadKind>(
        &self,
        request: &SyncRequest<'_, K>,
        status: &RunStatus,
        names: &Names,
        desired: &Desired,
    ) -> Refreshed {
        let observed: Vec<_> = request.children().iter().collect();
        let refreshed = status.refreshed_secret_versions.as_deref();
        let name = request.raw_parent()["metadata"]["name"].as_str();
        let labels = owned::labels_of_pods(K::ROLE, name.unwrap_or_default());
        // Pods that check configurations have Secrets of their own.
        let mounted = desired.children.iter().filter(|child| {
            let of_child = &child["metadata"]["labels"];
            let mut labels = labels.iter();
            labels.all(|(label, value)| of_child[label] == **value)
        });
        let Some(versions) = pod_refresh::new_versions(mounted, &observed, refreshed) else {
            return Refreshed::default();
        };
        let max_pods = pod_refresh::max_pods(&desired.assembly.config);
        let (client, namespace) = (&self.client, &names.namespace);
        match pod_refresh::refresh(client, namespace, &labels, &versions, max_pods).await {
            Refresh::Done | Refresh::Denied => Refreshed {
                versions: Some(versions),
                is_incomplete: false,
            },
            Refresh::Incomplete => Refreshed {
                versions: None,
                is_incomplete: true,
            },
        }
    }

    /// Forgets a workload.
    pub(crate) fn forget(&self, uid: &str) {
        self.reloads.forget(uid);
    }
}

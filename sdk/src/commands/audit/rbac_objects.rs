//! RBAC objects of a cluster, as far as `audit` reads them.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{Api, ListParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use crate::commands::audit::namespace_access::NamespaceRbac;

/// Maximum number of objects in one page of a list request.
const PAGE: u32 = 500;

/// `ClusterRole`s and `ClusterRoleBinding`s of a cluster, read once for all namespaces.
pub(super) struct ClusterRbac {
    client: Client,
    roles: Vec<ClusterRole>,
    bindings: Vec<ClusterRoleBinding>,
}

impl ClusterRbac {
    pub(super) async fn read(client: &Client) -> Result<Self, kube::Error> {
        Ok(Self {
            client: client.clone(),
            roles: list(&Api::all(client.clone())).await?,
            bindings: list(&Api::all(client.clone())).await?,
        })
    }

    /// Returns the roles and bindings that apply in a namespace.
    pub(super) async fn in_namespace(&self, namespace: &str) -> Result<NamespaceRbac, kube::Error> {
        let roles = self.list_in::<Role>(namespace).await?;
        let bindings = self.list_in::<RoleBinding>(namespace).await?;
        Ok(NamespaceRbac::default()
            .with_namespaced(roles, bindings)
            .with_cluster_scoped(&self.roles, &self.bindings))
    }

    async fn list_in<K>(&self, namespace: &str) -> Result<Vec<K>, kube::Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        list(&Api::namespaced(self.client.clone(), namespace)).await
    }
}

async fn list<K: Clone + Debug + DeserializeOwned>(api: &Api<K>) -> Result<Vec<K>, kube::Error> {
    let mut params = ListParams::default().limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page = api.list(&params).await?;
        all.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(all),
        }
    }
}

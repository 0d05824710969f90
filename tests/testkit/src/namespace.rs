//! Temporary namespace of a test.

use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use lockstep_envtest::eventually;
use serde_json::json;

/// Namespace that a test creates and deletes together with its content.
pub struct TemporaryNamespace {
    namespaces: Api<Namespace>,
    name: String,
}

impl TemporaryNamespace {
    /// Creates the namespace.
    ///
    /// # Panics
    ///
    /// If the API server does not store it.
    pub async fn make(client: Client, name: &str) -> Self {
        let namespaces = Api::all(client);
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}));
        let namespace = namespace.expect("the JSON is a Namespace");
        let created = namespaces.create(&PostParams::default(), &namespace).await;
        created.expect("the API server stores the namespace");
        let name = name.to_owned();
        Self { namespaces, name }
    }

    /// Starts the deletion of the namespace.
    ///
    /// # Panics
    ///
    /// If the API server rejects the deletion.
    pub async fn delete(&self) {
        let params = DeleteParams::default();
        let deleted = self.namespaces.delete(&self.name, &params).await;
        deleted.expect("the API server accepts the deletion");
    }

    /// Waits until the namespace no longer exists.
    ///
    /// # Panics
    ///
    /// If the deletion does not complete in time.
    pub async fn wait_until_deleted(&self) {
        let gone = eventually("the namespace to be deleted", async || {
            let left = self.namespaces.get_opt(&self.name).await.ok()?;
            left.is_none().then_some(())
        });
        gone.await.expect("no finalizer blocks the namespace");
    }
}

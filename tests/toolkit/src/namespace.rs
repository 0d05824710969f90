//! A namespace of a test's own.

use control_plane::eventually;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;

/// A namespace that is deleted with all that is in it.
pub struct Leaving {
    namespaces: Api<Namespace>,
    name: String,
}

impl Leaving {
    /// Makes it.
    ///
    /// # Panics
    ///
    /// If the API server does not take it.
    pub async fn make(client: Client, name: &str) -> Self {
        let namespaces = Api::all(client);
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}));
        let namespace = namespace.expect("a Namespace");
        let made = namespaces.create(&PostParams::default(), &namespace).await;
        made.expect("it is stored");
        let name = name.to_owned();
        Self { namespaces, name }
    }

    /// Begins its deletion.
    ///
    /// # Panics
    ///
    /// If the API server refuses that.
    pub async fn delete(&self) {
        let params = DeleteParams::default();
        let deleted = self.namespaces.delete(&self.name, &params).await;
        deleted.expect("deletion begins");
    }

    /// Waits until it is gone.
    ///
    /// # Panics
    ///
    /// If something holds it.
    pub async fn goes(&self) {
        let gone = eventually("the namespace going", async || {
            let left = self.namespaces.get_opt(&self.name).await.ok()?;
            left.is_none().then_some(())
        });
        gone.await.expect("nothing holds it");
    }
}

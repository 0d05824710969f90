//! One `ConfigMap` in the namespace of the installation, in which an operator keeps what it has read elsewhere.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

/// Maximum size of all contents of a `ConfigMap`, in bytes.
pub const MAX_CONFIG_MAP_BYTES: usize = 1 << 20;

/// A `ConfigMap` with a fixed name, which an operator reads and applies. Both containers can mount it.
///
/// # Guarantees
///
/// Each write is a server-side apply, which keeps what others have added. No other `ConfigMap` is read, and none is watched.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::Client;
/// use lockstep_controller::NamedConfigMap;
///
/// # async fn keep(client: Client) -> Result<(), String> {
/// let regions = NamedConfigMap::new(client, "operators", "greeter-regions", "greeter-regions");
/// regions
///     .apply(ConfigMap {
///         data: Some([("regions".to_owned(), "eu, us".to_owned())].into()),
///         ..ConfigMap::default()
///     })
///     .await?;
/// assert!(regions.read().await?.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct NamedConfigMap {
    client: Client,
    namespace: String,
    name: String,
    /// Field manager.
    manager: &'static str,
}

impl NamedConfigMap {
    /// Returns the `ConfigMap` with this name, whose content is applied by a field manager of its own.
    pub fn new(client: Client, namespace: &str, name: &str, manager: &'static str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            manager,
        }
    }

    /// Returns the permissions that are needed in the namespace of the `ConfigMap`.
    #[must_use]
    pub fn rbac_rules(name: &str) -> [Value; 2] {
        let config_maps = json!({"apiGroups": [""], "resources": ["configmaps"]});
        let (mut create, mut write) = (config_maps.clone(), config_maps);
        // RBAC cannot bind `create` to a name. Server-side apply creates.
        create["verbs"] = json!(["create"]);
        write["resourceNames"] = json!([name]);
        write["verbs"] = json!(["get", "patch"]);
        [create, write]
    }

    /// Returns the namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the `ConfigMap`, if it exists.
    ///
    /// # Errors
    ///
    /// A sentence with the reason.
    pub async fn read(&self) -> Result<Option<ConfigMap>, String> {
        let found = self.api().get_opt(&self.name).await;
        found.map_err(|error| format!("the ConfigMap {} cannot be read: {error}", self.name))
    }

    /// Applies the content of the operator: what it had applied before and is not in `content` is removed.
    ///
    /// # Errors
    ///
    /// A sentence with the reason.
    pub async fn apply(&self, mut content: ConfigMap) -> Result<(), String> {
        content.metadata.name = Some(self.name.clone());
        content.metadata.namespace = Some(self.namespace.clone());
        let params = PatchParams::apply(self.manager).force();
        let (api, patch) = (self.api(), Patch::Apply(&content));
        let written = api.patch(&self.name, &params, &patch).await;
        let written = written.map(drop);
        written.map_err(|error| format!("the ConfigMap {} cannot be written: {error}", self.name))
    }

    fn api(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

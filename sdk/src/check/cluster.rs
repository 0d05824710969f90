//! Read-only access to the objects of a cluster.

use anyhow::{Context, bail};
use kube::api::{Api, ApiResource};
use kube::core::GroupVersionKind;
use kube::{Client, Config};
use lockstep_controller::{CustomObject, path_segment};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::check::checker::ObjectSource;

/// Returns a function that gets the stored object that an object would replace, using the current kubeconfig.
pub(crate) fn object_source() -> Result<ObjectSource, String> {
    // kube uses rustls, which needs a process-wide TLS provider. If one is already installed, it is kept.
    drop(rustls::crypto::ring::default_provider().install_default());
    let runtime =
        Runtime::new().map_err(|error| format!("cannot start the async runtime: {error}"))?;
    let (client, namespace) = runtime
        .block_on(connect())
        .map_err(|error| format!("--against-cluster: {error:#}"))?;
    Ok(Box::new(move |object| {
        runtime
            .block_on(fetch(&client, &namespace, object))
            .map_err(|error| format!("cannot get the object from the cluster: {error:#}"))
    }))
}

async fn connect() -> anyhow::Result<(Client, String)> {
    let config = Config::infer()
        .await
        .context("cannot load the cluster configuration; set KUBECONFIG")?;
    let namespace = config.default_namespace.clone();
    Ok((Client::try_from(config)?, namespace))
}

async fn fetch(
    client: &Client,
    default_namespace: &str,
    object: &Value,
) -> anyhow::Result<Option<Value>> {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (group, version) = text("/apiVersion")
        .split_once('/')
        .unwrap_or(("", text("/apiVersion")));
    let gvk = GroupVersionKind::gvk(group, version, text("/kind"));
    let (resource, capabilities) = match kube::discovery::pinned_kind(client, &gvk).await {
        Ok(found) => found,
        Err(kube::Error::Api(status)) if status.code == 404 => {
            bail!(
                "kind {} does not exist in the cluster; apply its CRD first",
                gvk.kind
            )
        }
        Err(error) => return Err(error.into()),
    };
    let name = text("/metadata/name");
    if name.is_empty() {
        return Ok(None);
    }
    let api = api(
        client,
        &resource,
        capabilities.scope == kube::discovery::Scope::Namespaced,
        default_namespace,
        text("/metadata/namespace"),
    );
    let found = api.get_opt(&path_segment(name)).await?;
    let found = found.map(CustomObject::into_inner);
    Ok(found.map(|found| serde_json::to_value(found).unwrap_or_default()))
}

fn api(
    client: &Client,
    resource: &ApiResource,
    namespaced: bool,
    default_namespace: &str,
    namespace: &str,
) -> Api<CustomObject> {
    if !namespaced {
        return Api::all_with(client.clone(), resource);
    }
    let namespace = if namespace.is_empty() {
        default_namespace
    } else {
        namespace
    };
    Api::namespaced_with(client.clone(), &path_segment(namespace), resource)
}

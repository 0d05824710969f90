//! Command line and environment of the containers of a Deployment.

use std::path::Path;

use serde_json::Value;

use crate::error::Error;

/// Path at which the manifests mount the `ConfigMap` with the policy.
const MOUNTS: &str = "/etc/lockstep/";

/// Path at which the manifests mount the volume with the TLS key pair, which both containers share.
const KEYS: &str = "/run/lockstep/tls";

/// Command line and environment of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Container {
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

impl Container {
    /// Reads a container of a Deployment and resolves the fields of the Pod as the kubelet does.
    pub(crate) fn of(deployment: &Value, name: &str, pod_name: &str) -> Result<Self, Error> {
        let containers = deployment
            .pointer("/spec/template/spec/containers")
            .and_then(Value::as_array);
        let container = containers
            .and_then(|containers| {
                containers
                    .iter()
                    .find(|container| container["name"] == name)
            })
            .ok_or_else(|| Error::Manifest(format!("the Deployment has no container `{name}`")))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let args = container["args"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect();
        let mut env = Vec::new();
        for variable in container["env"].as_array().into_iter().flatten() {
            let value = match variable
                .pointer("/valueFrom/fieldRef/fieldPath")
                .and_then(Value::as_str)
            {
                None => text(&variable["value"]),
                Some("metadata.name") => pod_name.to_owned(),
                Some("metadata.namespace") => text(&deployment["metadata"]["namespace"]),
                Some("spec.serviceAccountName") => {
                    text(&deployment["spec"]["template"]["spec"]["serviceAccountName"])
                }
                Some(other) => {
                    return Err(Error::Manifest(format!(
                        "the Pod field `{other}` is not supported; supported are metadata.name, \
                         metadata.namespace and spec.serviceAccountName"
                    )));
                }
            };
            env.push((text(&variable["name"]), value));
        }
        Ok(Self { args, env })
    }

    /// Replaces the paths of mounted volumes by paths of this machine: those of `ConfigMap`s, such as that with the policy, by
    /// folders in a directory, and that of the volume which both containers share.
    pub(crate) fn with_volumes_in(mut self, config_maps: &Path, keys: &Path) -> Self {
        let config_maps = format!("{}/", config_maps.display());
        let keys = keys.display().to_string();
        for arg in &mut self.args {
            *arg = arg.replace(MOUNTS, &config_maps).replace(KEYS, &keys);
        }
        self
    }
}

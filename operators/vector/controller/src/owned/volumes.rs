//! Volumes of the Pods and their mounts in the Vector container.

use serde_json::{Map, Value, json};

use crate::owned::configuration_secret;
use crate::owned::owned_workload::OwnedWorkload;

/// Name of the volume of Vector's data directory.
pub(crate) const DATA: &str = "data";

/// Name of the volume of Vector's configuration directory.
pub(crate) const CONFIG: &str = "config";

/// Path of Vector's configuration directory.
pub(crate) const CONFIG_DIRECTORY: &str = "/etc/vector";

/// Name of the volume with the compressed configuration.
pub(crate) const ARCHIVE: &str = "app-config-compress";

/// Path of the compressed configuration.
pub(crate) const ARCHIVE_DIRECTORY: &str = "/tmp/archive";

/// Path of Vector's data directory in the Pods.
pub(crate) const VECTOR_DATA_DIRECTORY: &str = "/vector-data-dir";

/// Default directory of the nodes for Vector's data.
const DEFAULT_DATA_DIRECTORY: &str = "/var/lib/vector";

/// Volume with the values of Secrets.
const SECRETS: &str = "secret-assets";

/// Directory from which Vector reads the values of Secrets.
const SECRETS_DIRECTORY: &str = "/etc/vector/secrets";

/// Returns the volumes of the Pods. `has_claim` is true if the data directory is a `PersistentVolumeClaim` of the
/// `StatefulSet` instead of a directory of the node.
pub(crate) fn desired(workload: &OwnedWorkload<'_>, has_claim: bool) -> Vec<Value> {
    let name = configuration_secret::first_name(workload);
    let secret = |secret: &str| json!({"secretName": secret});
    let host = |name: &str, path: &str| json!({"name": name, "hostPath": {"path": path}});
    let settings = workload.settings;
    let mut volumes = settings.volumes.as_deref().map_or_else(Vec::new, objects);
    let mut required = Vec::new();
    // Those of the default mounts, too: without them, the API server would reject the Pods.
    if settings.volumes.is_none() || settings.volume_mounts.is_none() {
        required.extend([
            host("var-log", "/var/log/"),
            host("journal", "/var/log/journal"),
            host("var-lib", "/var/lib/"),
        ]);
    }
    let config = if workload.is_compressed() {
        json!({"name": CONFIG, "emptyDir": {}})
    } else {
        match &configuration_secret::names(workload)[..] {
            [] | [_] => json!({"name": CONFIG, "secret": secret(&name)}),
            // All files must be in one directory.
            names => {
                let sources = names.iter().map(|name| json!({"secret": {"name": name}}));
                json!({"name": CONFIG, "projected": {"sources": sources.collect::<Vec<_>>()}})
            }
        }
    };
    required.push(config);
    if !has_claim {
        required.push(host(DATA, data_directory(workload)));
    }
    required.extend([host("procfs", "/proc"), host("sysfs", "/sys")]);
    if workload.is_compressed() {
        required.push(json!({"name": ARCHIVE, "secret": secret(&name)}));
    }
    for volume in required {
        if volumes.iter().all(|it| it["name"] != volume["name"]) {
            volumes.push(volume);
        }
    }
    if workload.uses_secrets() {
        // This volume holds the credentials of pipelines: another one of its name would replace them.
        volumes.retain(|volume| volume["name"] != SECRETS);
        volumes.push(json!({"name": SECRETS, "secret": secret(&workload.secret_assets_name())}));
    }
    volumes
}

/// Returns the mounts of the Vector container.
pub(crate) fn mounts(workload: &OwnedWorkload<'_>) -> Vec<Value> {
    let mount = |name: &str, path: &str| json!({"name": name, "mountPath": path});
    let mut mounts = match &workload.settings.volume_mounts {
        Some(mounts) => objects(mounts),
        None => vec![
            mount("var-log", "/var/log/"),
            mount("journal", "/run/log/journal"),
            mount("var-lib", "/var/lib/"),
        ],
    };
    let mut required = vec![
        mount(CONFIG, CONFIG_DIRECTORY),
        mount(DATA, VECTOR_DATA_DIRECTORY),
        mount("procfs", "/host/proc"),
        mount("sysfs", "/host/sys"),
    ];
    if workload.is_compressed() {
        required.push(mount(ARCHIVE, ARCHIVE_DIRECTORY));
    }
    for required in required {
        // The API server rejects two mounts at one path.
        let is_same =
            |it: &Value| it["name"] == required["name"] || it["mountPath"] == required["mountPath"];
        if !mounts.iter().any(is_same) {
            mounts.push(required);
        }
    }
    if workload.uses_secrets() {
        mounts.retain(|mount| mount["name"] != SECRETS && !hides_secrets(mount));
        mounts.push(mount(SECRETS, SECRETS_DIRECTORY));
    }
    mounts
}

/// Returns true if a mount replaces the directory of secrets or a file in it.
fn hides_secrets(mount: &Value) -> bool {
    let parts = |path: &str| {
        let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
        parts.map(str::to_owned).collect::<Vec<_>>()
    };
    let path = mount["mountPath"].as_str().unwrap_or_default();
    parts(path).starts_with(&parts(SECRETS_DIRECTORY))
}

/// Returns the directory of the nodes for Vector's data.
fn data_directory<'a>(workload: &OwnedWorkload<'a>) -> &'a str {
    let directory = workload.settings.data_dir.as_deref();
    let directory = directory.filter(|directory| !directory.is_empty());
    let default = workload.publication.data_directory.as_deref();
    directory.or(default).unwrap_or(DEFAULT_DATA_DIRECTORY)
}

/// Returns the directory of the nodes for the data of the Pods of an object that runs Vector. None if they have another volume.
pub(crate) fn live_data_directory(object: &Value) -> Option<&str> {
    let volumes = object["spec"]["template"]["spec"]["volumes"].as_array()?;
    let data = volumes.iter().find(|volume| volume["name"] == DATA)?;
    data["hostPath"]["path"].as_str()
}

fn objects(items: &[Map<String, Value>]) -> Vec<Value> {
    items.iter().cloned().map(Value::Object).collect()
}

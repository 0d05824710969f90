//! Init container that moves the data of Vector's components to directories with other names.
//!
//! It runs before Vector, in the new Pods only. A `DaemonSet` deletes the old Pod of a node before it creates the new one,
//! and a `StatefulSet` that of a volume, so that no other process uses the data meanwhile.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::owned::children::OwnedObjectsError;
use crate::owned::fields::Fields;
use crate::owned::owned_workload::OwnedWorkload;
use crate::owned::{configuration_secret, image, resources, volumes};

/// Name of the init container.
const CONTAINER: &str = "migrate-data";

/// Volume with the list of directories.
const VOLUME: &str = "lockstep-data-moves";

/// Path of the list of directories.
const DIRECTORY: &str = "/etc/lockstep/data-moves";

/// Key of the Secret with the list. The list is not among the files of the configuration, which Vector watches.
const KEY: &str = "moves.json.gz";

/// Returns the init container.
pub(crate) fn init_container(workload: &OwnedWorkload<'_>) -> Option<Value> {
    let moved = workload.publication.moved_data.as_ref()?;
    let settings = workload.settings;
    let args = [
        "vector".to_owned(),
        "migrate-data".to_owned(),
        format!("--data-dir={}", volumes::VECTOR_DATA_DIRECTORY),
        format!("{DIRECTORY}/{KEY}"),
    ];
    let mut mounts = volumes::mounts(workload);
    mounts.retain(|mount| mount["mountPath"] == volumes::VECTOR_DATA_DIRECTORY);
    mounts.push(json!({"name": VOLUME, "mountPath": DIRECTORY, "readOnly": true}));
    let container = Fields::new()
        .with("name", CONTAINER)
        .with("image", moved.image.as_str())
        .with_some(
            "imagePullPolicy",
            image::pull_policy(settings.image_pull_policy),
        )
        .with("args", args.to_vec())
        .with("volumeMounts", mounts)
        .with("resources", resources::with_defaults(None))
        .with("securityContext", security_context(workload));
    Some(container.into())
}

/// Returns the security context: the user of the Vector container, which owns the data. In Vector's images it is root, and
/// in ours it is not. If root is forbidden, the image of the workload has another user, which only the workload can name.
fn security_context(workload: &OwnedWorkload<'_>) -> Map<String, Value> {
    let settings = workload.settings;
    let mut context = settings
        .container_security_context
        .clone()
        .unwrap_or_default();
    let of_pod = settings.pod_security_context.as_ref();
    let setting = |name: &str| {
        let of_pod = of_pod.and_then(|of_pod| of_pod.get(name));
        context.get(name).or(of_pod)
    };
    let forbids_root = setting("runAsNonRoot") == Some(&json!(true));
    if setting("runAsUser").is_none() && !forbids_root {
        context.insert("runAsUser".to_owned(), json!(0));
    }
    context
}

/// Returns the volume with the list of directories.
pub(crate) fn volume(workload: &OwnedWorkload<'_>) -> Option<Value> {
    workload.publication.moved_data.as_ref()?;
    Some(json!({"name": VOLUME, "secret": {"secretName": secret_name(workload)}}))
}

/// Returns the Secret with the list of directories.
pub(crate) fn secret(workload: &OwnedWorkload<'_>) -> Result<Option<Value>, OwnedObjectsError> {
    let Some(moved) = &workload.publication.moved_data else {
        return Ok(None);
    };
    let values = BTreeMap::from([(KEY.to_owned(), moved.moves.clone())]);
    let remedy = "set migrateData to false";
    configuration_secret::secret(workload, secret_name(workload), &values, remedy).map(Some)
}

fn secret_name(workload: &OwnedWorkload<'_>) -> String {
    format!("{}-data-moves", workload.object_name())
}

/// Returns the image of the init container in an observed workload.
pub(crate) fn image(live: &Value) -> Option<&str> {
    let containers = live["spec"]["template"]["spec"]["initContainers"].as_array();
    let mut containers = containers.into_iter().flatten();
    containers.find(|it| it["name"] == CONTAINER)?["image"].as_str()
}

/// Returns the end of the name of the Secret that the Pods of an observed workload mount.
pub(crate) fn live_suffix<'l>(live: &'l Value, object_name: &str) -> Option<&'l str> {
    let suffixes = live_secrets(live).filter_map(|name| name.strip_prefix(object_name));
    // Those of further files have a number behind the name of the first one.
    let first = suffixes.min_by_key(|suffix| suffix.len());
    first?.strip_prefix('-')
}

/// Returns the names of the Secrets with the configuration that the Pods of an observed workload mount.
pub(crate) fn live_secrets(live: &Value) -> impl Iterator<Item = &str> {
    let volumes = live["spec"]["template"]["spec"]["volumes"].as_array();
    let volumes = volumes.into_iter().flatten();
    let of_configuration =
        volumes.filter(|it| it["name"] == volumes::CONFIG || it["name"] == volumes::ARCHIVE);
    of_configuration.flat_map(|volume| {
        let direct = volume["secret"]["secretName"].as_str();
        let projected = volume["projected"]["sources"].as_array();
        let projected = projected.into_iter().flatten();
        direct
            .into_iter()
            .chain(projected.filter_map(|source| source["secret"]["name"].as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_of_pods_is_in_all_secrets_that_they_mount_for_it() {
        let live = |volumes: Value| json!({"spec": {"template": {"spec": {"volumes": volumes}}}});
        let projected = live(json!([
            {"name": "data", "secret": {"secretName": "other"}},
            {"name": "config", "projected": {"sources": [
                {"secret": {"name": "a-agent-underscores"}},
                {"secret": {"name": "a-agent-underscores-1"}},
            ]}},
        ]));
        let found: Vec<_> = live_secrets(&projected).collect();
        assert_eq!(found, ["a-agent-underscores", "a-agent-underscores-1"]);
        assert_eq!(live_suffix(&projected, "a-agent"), Some("underscores"));
        let direct = live(json!([{"name": "config", "secret": {"secretName": "a-agent-opt"}}]));
        assert_eq!(live_secrets(&direct).collect::<Vec<_>>(), ["a-agent-opt"]);
        assert_eq!(live_secrets(&json!({})).count(), 0);
    }
}

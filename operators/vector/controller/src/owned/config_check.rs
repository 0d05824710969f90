//! Pods that check configurations with `vector validate` before they are published.
//!
//! They have the environment and the volumes of the Pods that run Vector, because the result depends on them. Their
//! service account has no permissions.

use lockstep_vector_api::{ConfigCheckMode, Workload};
use serde_json::{Value, json};

use crate::owned::children::OwnedObjectsError;
use crate::owned::cluster::Cluster;
use crate::owned::fields::Fields;
use crate::owned::owned_workload::{OwnedWorkload, object};
use crate::owned::publication::{ConfigurationCheck, Publication};
use crate::owned::rbac::Account;
use crate::owned::{
    config_reloader, configuration_secret, container, image, pod, secret_assets, volumes,
};

/// Name of the container that runs `vector validate`.
pub(crate) const CONTAINER: &str = "config-check";

/// Arguments of Vector, before the directory of the configuration. A sink that cannot be reached now is no error of the
/// configuration.
pub(crate) const ARGUMENTS: [&str; 2] = ["validate", "--skip-healthchecks"];

/// Annotation of a Pod with the fingerprint of what it checks. The name of the Pod has only the beginning of it.
pub(crate) const FINGERPRINT: &str = "lockstep.dev/checked-configuration";

/// Returns true if the configurations of a workload are checked in Pods.
pub(crate) fn is_in_pods(settings: &Workload) -> bool {
    let check = settings.config_check.as_ref();
    check.is_some_and(|check| check.effective_mode() != ConfigCheckMode::InProcess)
}

/// Returns the image with which the configurations of a workload are checked.
pub(crate) fn image(settings: &Workload, cluster: &Cluster) -> String {
    image::of_vector(&checking(settings), cluster)
}

/// Returns the service account and, for each configuration that is checked now, the Secrets and the Pod.
pub(crate) fn desired(workload: &OwnedWorkload<'_>) -> Result<Vec<Value>, OwnedObjectsError> {
    let validator = workload.publication.validator.as_ref();
    // The Pods of both have one service account.
    let has_validator = validator.is_some_and(|it| it.is_for_schema);
    if !has_validator && !is_in_pods(workload.settings) {
        return Ok(Vec::new());
    }
    let settings = checking(workload.settings);
    let account = account_name(workload);
    let nothing = Publication::default();
    let any = checking_workload(workload, &settings, &nothing, &account);
    let service_account = Account {
        workload: &any,
        name: account.clone(),
        labels: any.labels(),
        // Vector reads it to build a source that reads the Kubernetes API.
        gives_token: true,
    };
    let mut objects = vec![service_account.service_account()];
    for check in &workload.publication.checks {
        let publication = Publication {
            files: check.files.clone(),
            secrets: check.secrets.clone(),
            ..Publication::default()
        };
        let of_check = checking_workload(workload, &settings, &publication, &check.name);
        objects.extend(configuration_secret::desired(&of_check)?);
        objects.extend(secret_assets::desired(&of_check)?);
        objects.push(pod(&of_check, check, &account));
    }
    Ok(objects)
}

/// Returns the name of the service account of the Pods that check.
pub(crate) fn account_name(workload: &OwnedWorkload<'_>) -> String {
    format!("{}-configcheck", workload.object_name())
}

fn checking_workload<'a>(
    workload: &'a OwnedWorkload<'_>,
    settings: &'a Workload,
    publication: &'a Publication,
    name: &'a str,
) -> OwnedWorkload<'a> {
    OwnedWorkload {
        role: workload.role,
        name: workload.name.clone(),
        namespace: workload.namespace.clone(),
        settings,
        publication,
        cluster: workload.cluster,
        check: Some(name),
    }
}

/// Returns the settings of the Pods that check: those of the workload, unless the check has its own.
pub(crate) fn checking(settings: &Workload) -> Workload {
    let check = settings.config_check.clone().unwrap_or_default();
    let image = image::set(check.image.as_deref()).map(str::to_owned);
    Workload {
        image: image.or(settings.image.clone()),
        resources: check.resources.or(settings.resources.clone()),
        affinity: check.affinity,
        tolerations: if check.tolerations.is_empty() {
            settings.tolerations.clone()
        } else {
            check.tolerations
        },
        annotations: check.annotations,
        labels: check.labels,
        // `vector validate` does not listen, and a port of a node is not needed.
        host_network: None,
        ..settings.clone()
    }
}

fn pod(workload: &OwnedWorkload<'_>, check: &ConfigurationCheck, account: &str) -> Value {
    let mut metadata: Value = workload.metadata(&check.name).into();
    metadata["annotations"][FINGERPRINT] = json!(check.fingerprint);
    let reloader = workload
        .is_compressed()
        .then(|| config_reloader::init_container(workload));
    let spec = pod::scheduling(workload.settings, None)
        .with("serviceAccountName", account)
        .with("restartPolicy", "Never")
        .with("activeDeadlineSeconds", check.timeout_seconds)
        .with("volumes", volumes(workload))
        .with_list("initContainers", reloader)
        .with("containers", vec![container(workload)]);
    object("v1", "Pod", Fields::new())
        .with("metadata", metadata)
        .with("spec", spec)
        .into()
}

fn container(workload: &OwnedWorkload<'_>) -> Value {
    let args = [&ARGUMENTS[..], &["--config-dir", volumes::CONFIG_DIRECTORY]].concat();
    container::with_command(workload, CONTAINER, &args)
        // The end of the log is then part of the status of the Pod, and no permission on logs is needed.
        .with("terminationMessagePolicy", "FallbackToLogsOnError")
        .into()
}

/// Returns the volumes: those of the Pods that run Vector, with an empty data directory. Instead of the volumes that only
/// a `StatefulSet` provides, there are empty ones.
pub(crate) fn volumes(workload: &OwnedWorkload<'_>) -> Vec<Value> {
    let empty = |name: &str| json!({"name": name, "emptyDir": {}});
    let mut volumes = volumes::desired(workload, true);
    volumes.retain(|volume| volume["name"] != volumes::DATA);
    volumes.push(empty(volumes::DATA));
    for mount in volumes::mounts(workload) {
        let name = mount["name"].as_str().unwrap_or_default();
        if volumes.iter().all(|volume| volume["name"] != name) {
            volumes.push(empty(name));
        }
    }
    volumes
}

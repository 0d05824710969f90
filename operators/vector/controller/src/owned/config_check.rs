//! Pods that check configurations with `vector validate` before they are published.
//!
//! They have the environment and the volumes of the Pods that run Vector, because the result depends on them. Their
//! service account has no permissions.

use lockstep_vector_api::{ConfigCheckMode, Workload};
use serde_json::{Value, json};

use crate::owned::children::OwnedObjectsError;
use crate::owned::cluster::Cluster;
use crate::owned::fields::Fields;
use crate::owned::publication::{ConfigurationCheck, Publication};
use crate::owned::rbac::Account;
use crate::owned::runner::{Runner, object};
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
pub(crate) fn is_in_pods(workload: &Workload) -> bool {
    let check = workload.config_check.as_ref();
    check.is_some_and(|check| check.effective_mode() != ConfigCheckMode::InProcess)
}

/// Returns the image with which the configurations of a workload are checked.
pub(crate) fn image(workload: &Workload, cluster: &Cluster) -> String {
    image::of_vector(&checking(workload), cluster)
}

/// Returns the service account and, for each configuration that is checked now, the Secrets and the Pod.
pub(crate) fn of(runner: &Runner<'_>) -> Result<Vec<Value>, OwnedObjectsError> {
    let validator = runner.publication.validator.as_ref();
    // The Pods of both have one service account.
    let has_validator = validator.is_some_and(|it| it.is_for_schema);
    if !has_validator && !is_in_pods(runner.workload) {
        return Ok(Vec::new());
    }
    let workload = checking(runner.workload);
    let account = account_name(runner);
    let nothing = Publication::default();
    let any = checking_runner(runner, &workload, &nothing, &account);
    let service_account = Account {
        runner: &any,
        name: account.clone(),
        labels: any.labels(),
        // Vector reads it to build a source that reads the Kubernetes API.
        gives_token: true,
    };
    let mut objects = vec![service_account.service_account()];
    for check in &runner.publication.checks {
        let publication = Publication {
            files: check.files.clone(),
            secrets: check.secrets.clone(),
            ..Publication::default()
        };
        let of_check = checking_runner(runner, &workload, &publication, &check.name);
        objects.extend(configuration_secret::of(&of_check)?);
        objects.extend(secret_assets::of(&of_check)?);
        objects.push(pod(&of_check, check, &account));
    }
    Ok(objects)
}

/// Returns the name of the service account of the Pods that check.
pub(crate) fn account_name(runner: &Runner<'_>) -> String {
    format!("{}-configcheck", runner.object_name())
}

fn checking_runner<'a>(
    runner: &'a Runner<'_>,
    workload: &'a Workload,
    publication: &'a Publication,
    name: &'a str,
) -> Runner<'a> {
    Runner {
        kind: runner.kind,
        name: runner.name.clone(),
        namespace: runner.namespace.clone(),
        workload,
        publication,
        cluster: runner.cluster,
        check: Some(name),
    }
}

/// Returns the settings of the Pods that check: those of the workload, unless the check has its own.
pub(crate) fn checking(workload: &Workload) -> Workload {
    let check = workload.config_check.clone().unwrap_or_default();
    let image = image::set(check.image.as_deref()).map(str::to_owned);
    Workload {
        image: image.or(workload.image.clone()),
        resources: check.resources.or(workload.resources.clone()),
        affinity: check.affinity,
        tolerations: if check.tolerations.is_empty() {
            workload.tolerations.clone()
        } else {
            check.tolerations
        },
        annotations: check.annotations,
        labels: check.labels,
        // `vector validate` does not listen, and a port of a node is not needed.
        host_network: None,
        ..workload.clone()
    }
}

fn pod(runner: &Runner<'_>, check: &ConfigurationCheck, account: &str) -> Value {
    let mut metadata: Value = runner.metadata(&check.name).into();
    metadata["annotations"][FINGERPRINT] = json!(check.fingerprint);
    let reloader = runner
        .is_compressed()
        .then(|| config_reloader::init_container(runner));
    let spec = pod::scheduling(runner.workload, None)
        .with("serviceAccountName", account)
        .with("restartPolicy", "Never")
        .with("activeDeadlineSeconds", check.timeout_seconds)
        .with("volumes", volumes(runner))
        .with_list("initContainers", reloader)
        .with("containers", vec![container(runner)]);
    object("v1", "Pod", Fields::new())
        .with("metadata", metadata)
        .with("spec", spec)
        .into()
}

fn container(runner: &Runner<'_>) -> Value {
    let args = [&ARGUMENTS[..], &["--config-dir", volumes::CONFIG_DIRECTORY]].concat();
    container::with_command(runner, CONTAINER, &args)
        // The end of the log is then part of the status of the Pod, and no permission on logs is needed.
        .with("terminationMessagePolicy", "FallbackToLogsOnError")
        .into()
}

/// Returns the volumes: those of the Pods that run Vector, with an empty data directory. Instead of the volumes that only
/// a `StatefulSet` provides, there are empty ones.
pub(crate) fn volumes(runner: &Runner<'_>) -> Vec<Value> {
    let empty = |name: &str| json!({"name": name, "emptyDir": {}});
    let mut volumes = volumes::of(runner, true);
    volumes.retain(|volume| volume["name"] != volumes::DATA);
    volumes.push(empty(volumes::DATA));
    for mount in volumes::mounts(runner) {
        let name = mount["name"].as_str().unwrap_or_default();
        if volumes.iter().all(|volume| volume["name"] != name) {
            volumes.push(empty(name));
        }
    }
    volumes
}

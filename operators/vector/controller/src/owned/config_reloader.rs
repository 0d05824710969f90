//! Containers that unpack a compressed configuration: once before Vector starts, and after each change.

use serde_json::{Value, json};

use crate::owned::fields::Fields;
use crate::owned::owned_workload::OwnedWorkload;
use crate::owned::{image, resources, volumes};

/// Returns the init container.
pub(crate) fn init_container(workload: &OwnedWorkload<'_>) -> Value {
    container(workload, "init-config-reloader", true)
}

/// Returns the sidecar container.
pub(crate) fn sidecar(workload: &OwnedWorkload<'_>) -> Value {
    container(workload, "config-reloader", false)
}

fn container(workload: &OwnedWorkload<'_>, name: &str, is_init: bool) -> Value {
    let settings = workload.settings;
    let args = [
        format!("--init-mode={is_init}"),
        format!("--volume-dir-archive={}", volumes::ARCHIVE_DIRECTORY),
        format!("--dir-for-unarchive={}", volumes::CONFIG_DIRECTORY),
    ];
    let mounts = json!([
        {"name": volumes::CONFIG, "mountPath": volumes::CONFIG_DIRECTORY},
        {"name": volumes::ARCHIVE, "mountPath": volumes::ARCHIVE_DIRECTORY},
    ]);
    let requirements = settings.config_reloader_resources.as_ref();
    Fields::new()
        .with("name", name)
        .with("image", image::of_config_reloader(settings))
        .with_some(
            "imagePullPolicy",
            image::pull_policy(settings.image_pull_policy),
        )
        .with("args", args.to_vec())
        .with("volumeMounts", mounts)
        .with("resources", resources::with_defaults(requirements))
        .with_some(
            "securityContext",
            settings.container_security_context.clone(),
        )
        .into()
}

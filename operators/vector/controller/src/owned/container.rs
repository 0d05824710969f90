//! The Vector container.

use serde_json::{Value, json};

use crate::owned::fields::Fields;
use crate::owned::owned_workload::OwnedWorkload;
use crate::owned::{environment, image, ports, probes, resources, volumes};

/// Returns the Vector container. The ports of pipelines are not part of it: they would only be documentation, and
/// each change of them would restart the Pods.
pub(crate) fn desired(workload: &OwnedWorkload<'_>) -> Value {
    let settings = workload.settings;
    let args = ["--config-dir", volumes::CONFIG_DIRECTORY, "--watch-config"];
    let port =
        json!({"name": ports::METRICS_NAME, "containerPort": ports::METRICS, "protocol": "TCP"});
    with_command(workload, &workload.object_name(), &args)
        .with("ports", vec![port])
        .with_some(
            "readinessProbe",
            probes::desired(workload, settings.readiness_probe.as_ref()),
        )
        .with_some(
            "livenessProbe",
            probes::desired(workload, settings.liveness_probe.as_ref()),
        )
        .into()
}

/// Returns a container that runs a command of Vector with the image, the environment and the volumes of a workload.
pub(crate) fn with_command(workload: &OwnedWorkload<'_>, name: &str, args: &[&str]) -> Fields {
    let settings = workload.settings;
    let image = image::of_vector(settings, workload.cluster);
    let mut args = args.to_vec();
    if settings.env_var_interpolation.unwrap_or_default()
        && image::has_interpolation_flag(settings, &image)
    {
        args.push("--dangerously-allow-env-var-interpolation");
    }
    Fields::new()
        .with("name", name)
        .with("image", image)
        .with_some(
            "imagePullPolicy",
            image::pull_policy(settings.image_pull_policy),
        )
        .with("args", args)
        .with("env", environment::desired(&settings.env))
        .with_list("envFrom", settings.env_from.iter().cloned())
        .with("volumeMounts", volumes::mounts(workload))
        .with(
            "resources",
            resources::with_defaults(settings.resources.as_ref()),
        )
        .with_some(
            "securityContext",
            settings.container_security_context.clone(),
        )
}

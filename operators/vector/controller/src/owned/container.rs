//! The Vector container.

use serde_json::{Value, json};

use crate::owned::fields::Fields;
use crate::owned::runner::Runner;
use crate::owned::{environment, image, ports, probes, resources, volumes};

/// Returns the Vector container. The ports of pipelines are not part of it: they would only be documentation, and
/// each change of them would restart the Pods.
pub(crate) fn of(runner: &Runner<'_>) -> Value {
    let workload = runner.workload;
    let args = ["--config-dir", volumes::CONFIG_DIRECTORY, "--watch-config"];
    let port =
        json!({"name": ports::METRICS_NAME, "containerPort": ports::METRICS, "protocol": "TCP"});
    with_command(runner, &runner.object_name(), &args)
        .with("ports", vec![port])
        .with_some(
            "readinessProbe",
            probes::of(runner, workload.readiness_probe.as_ref()),
        )
        .with_some(
            "livenessProbe",
            probes::of(runner, workload.liveness_probe.as_ref()),
        )
        .into()
}

/// Returns a container that runs a command of Vector with the image, the environment and the volumes of a workload.
pub(crate) fn with_command(runner: &Runner<'_>, name: &str, args: &[&str]) -> Fields {
    let workload = runner.workload;
    let image = image::of_vector(workload, runner.cluster);
    let mut args = args.to_vec();
    if workload.env_var_interpolation.unwrap_or_default()
        && image::has_interpolation_flag(workload, &image)
    {
        args.push("--dangerously-allow-env-var-interpolation");
    }
    Fields::new()
        .with("name", name)
        .with("image", image)
        .with_some(
            "imagePullPolicy",
            image::pull_policy(workload.image_pull_policy),
        )
        .with("args", args)
        .with("env", environment::of(&workload.env))
        .with_list("envFrom", workload.env_from.iter().cloned())
        .with("volumeMounts", volumes::mounts(runner))
        .with(
            "resources",
            resources::with_defaults(workload.resources.as_ref()),
        )
        .with_some(
            "securityContext",
            workload.container_security_context.clone(),
        )
}

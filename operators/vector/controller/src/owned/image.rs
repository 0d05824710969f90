//! Container images and how they are pulled.

use lockstep_vector_api::{PullPolicy, VectorVersion, Workload};

use crate::owned::cluster::Cluster;

/// Default image of the configuration reloader.
const CONFIG_RELOADER: &str = "docker.io/kaasops/config-reloader:v0.1.4";

/// Image of the event collector of kaasops, if the image of this program is not known.
pub(crate) const EVENT_COLLECTOR: &str = "kaasops/event-collector:v0.5.0";

/// Returns the image of Vector. The default is the distribution that the operator of kaasops runs, in the version for
/// which pipelines are validated: another version could reject a valid pipeline, and versions before 0.57 would give
/// the environment variables of the Pods to every pipeline.
pub(crate) fn of_vector(workload: &Workload, cluster: &Cluster) -> String {
    let image = set(workload.image.as_deref());
    image.map_or_else(
        || {
            format!(
                "timberio/vector:{}.0-distroless-libc",
                cluster.vector_version
            )
        },
        str::to_owned,
    )
}

/// Returns the image of the configuration reloader.
pub(crate) fn of_config_reloader(workload: &Workload) -> &str {
    set(workload.config_reloader_image.as_deref()).unwrap_or(CONFIG_RELOADER)
}

/// Returns false if the version of Vector in an image is known, and that version replaces environment variables without the
/// flag.
pub(crate) fn has_interpolation_flag(workload: &Workload, image: &str) -> bool {
    let named = workload
        .vector_version
        .as_deref()
        .and_then(VectorVersion::parse);
    let version = named.or_else(|| VectorVersion::of_image(image));
    !version.is_some_and(VectorVersion::always_interpolates)
}

/// Returns an image unless it is empty, which is the same as unset in the operator of kaasops.
pub(crate) fn set(image: Option<&str>) -> Option<&str> {
    image.filter(|image| !image.is_empty())
}

/// Returns the name of a pull policy in the Kubernetes API, if it is set.
pub(crate) fn pull_policy(policy: Option<PullPolicy>) -> Option<&'static str> {
    match policy? {
        PullPolicy::Unset => None,
        PullPolicy::Always => Some("Always"),
        PullPolicy::IfNotPresent => Some("IfNotPresent"),
        PullPolicy::Never => Some("Never"),
    }
}

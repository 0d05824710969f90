//! Releases of Vector in the workloads that run a pipeline.

use lockstep_vector_config::VectorVersion;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Workload that runs a pipeline, with the release of its image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunnerRelease {
    /// Workload.
    pub(crate) runner: String,
    /// Release of its image.
    pub(crate) release: ImageRelease,
}

/// Release of Vector that a container image contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ImageRelease {
    /// No image is set, so that it is the one of the operator.
    Unset,
    /// The tag of the image names the release.
    Named(VectorVersion),
    /// The tag of the image does not name a release.
    Unknown,
}

impl ImageRelease {
    /// Returns the release of a stored workload.
    pub(crate) fn of_workload(workload: &Value) -> Self {
        Self::of_image(image_of_workload(workload))
    }

    pub(crate) fn of_image(image: Option<&str>) -> Self {
        match image.filter(|image| !image.is_empty()) {
            None => Self::Unset,
            Some(image) => VectorVersion::of_image(image).map_or(Self::Unknown, Self::Named),
        }
    }
}

/// Returns the image of a stored workload, if it is set.
pub(crate) fn image_of_workload(workload: &Value) -> Option<&str> {
    let mut paths = ["/spec/agent/image", "/spec/image"].into_iter();
    paths.find_map(|path| workload.pointer(path)?.as_str())
}

/// Part of what a pipeline shares with others.
#[derive(Default, Deserialize)]
struct Related {
    #[serde(default)]
    releases: Vec<RunnerRelease>,
}

/// Returns the releases of the workloads that run a pipeline from what it shares with others, if one of them has an image.
pub(crate) fn of_runners(related: Option<&Value>) -> Vec<RunnerRelease> {
    let related = related.and_then(|related| Related::deserialize(related).ok());
    related.unwrap_or_default().releases
}

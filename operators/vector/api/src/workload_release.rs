//! Releases of Vector in the workloads that run a pipeline.

use lockstep_vector_config::VectorVersion;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tenancy::policy::Section;

/// Workload that runs a pipeline, with the release of its image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkloadRelease {
    /// Workload.
    pub(crate) workload: String,
    /// Release of its image.
    pub(crate) release: ImageRelease,
    /// True if the tag of the image or the workload names a version that replaces variables in pipelines. If they contradict
    /// each other, the values of the agent's variables are safe with neither.
    #[serde(default)]
    pub(crate) replaces_variables: bool,
}

/// Release of Vector that a container image contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ImageRelease {
    /// No image is set, so that it is the one of the operator.
    Unset,
    /// The workload or the tag of its image names the release.
    Named(VectorVersion),
    /// Neither the workload nor the tag of its image names a release.
    Unknown,
}

impl ImageRelease {
    /// Returns the release of a stored workload.
    pub(crate) fn of_workload(workload: &Value) -> Self {
        let version = text_of_workload(workload, "vectorVersion");
        Self::new(version, image_of_workload(workload))
    }

    /// Returns the release that a workload names, or else the tag of its image.
    pub(crate) fn new(version: Option<&str>, image: Option<&str>) -> Self {
        let version = version.and_then(VectorVersion::parse);
        version.map_or_else(|| Self::of_image(image), Self::Named)
    }

    pub(crate) fn of_image(image: Option<&str>) -> Self {
        match image.filter(|image| !image.is_empty()) {
            None => Self::Unset,
            Some(image) => VectorVersion::of_image(image).map_or(Self::Unknown, Self::Named),
        }
    }
}

/// Returns true if the tag of the image of a stored workload, or the workload, names a version that replaces variables in
/// pipelines.
pub(crate) fn replaces_variables(workload: &Value) -> bool {
    let named = text_of_workload(workload, "vectorVersion").and_then(VectorVersion::parse);
    let of_image = image_of_workload(workload).and_then(VectorVersion::of_image);
    let mut versions = named.into_iter().chain(of_image);
    versions.any(VectorVersion::always_interpolates)
}

/// Returns true if the Vector of a stored workload replaces variables in pipelines, whatever its arguments are: one whose version
/// is not known has that of the policy. `settings` is the section of the policy.
#[must_use]
pub fn always_interpolates(settings: Option<&Value>, workload: &Value) -> bool {
    let of_policy = || {
        let version = Section::of(settings).version;
        version.is_some_and(VectorVersion::always_interpolates)
    };
    let is_unknown = ImageRelease::of_workload(workload) == ImageRelease::Unknown;
    replaces_variables(workload) || is_unknown && of_policy()
}

/// Returns the image of a stored workload, if it is set.
pub(crate) fn image_of_workload(workload: &Value) -> Option<&str> {
    text_of_workload(workload, "image")
}

/// Returns a field of the Pods of a stored workload, of whatever kind it is.
fn text_of_workload<'a>(workload: &'a Value, field: &str) -> Option<&'a str> {
    let spec = &workload["spec"];
    spec["agent"][field].as_str().or(spec[field].as_str())
}

/// Part of what a pipeline shares with others.
#[derive(Default, Deserialize)]
struct Related {
    #[serde(default)]
    releases: Vec<WorkloadRelease>,
}

/// Returns the releases of the workloads that run a pipeline from what it shares with others, if one of them has an image.
pub(crate) fn of_workloads(related: Option<&Value>) -> Vec<WorkloadRelease> {
    let related = related.and_then(|related| Related::deserialize(related).ok());
    related.unwrap_or_default().releases
}

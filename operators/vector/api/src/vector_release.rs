//! Vector releases of workloads, compared with the one that pipelines are validated for.

use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath, Rule, RuleContext, Severity};
use lockstep_vector_config::{Catalogue, VectorVersion};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::types::runs_vector::RunsVector;

/// Rule about the Vector release of a workload or of the workloads that run a pipeline.
pub const VECTOR_VERSION: &str = "vector-version";

/// Page with the releases of Vector.
const RELEASES: &str = "https://vector.dev/releases/";

/// Workload that runs a pipeline with another Vector release than the pipeline is validated for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OtherRelease {
    /// Workload.
    pub(crate) runner: String,
    /// Release of its image, if the tag names one.
    pub(crate) version: Option<String>,
}

/// Release of Vector that a container image contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageRelease {
    /// The release that pipelines are validated for, or no image is set.
    Validated,
    /// Another release.
    Other(VectorVersion),
    /// The tag of the image does not name a release.
    Unknown,
}

impl ImageRelease {
    /// Returns the release of a stored workload.
    pub(crate) fn of_workload(workload: &Value) -> Self {
        let images = ["/spec/agent/image", "/spec/image"].into_iter();
        let mut images = images.filter_map(|path| workload.pointer(path)?.as_str());
        Self::of_image(images.next())
    }

    fn of_image(image: Option<&str>) -> Self {
        let Some(image) = image.filter(|image| !image.is_empty()) else {
            return Self::Validated;
        };
        match VectorVersion::of_image(image) {
            None => Self::Unknown,
            Some(version) if Some(version) == validated() => Self::Validated,
            Some(version) => Self::Other(version),
        }
    }

    /// Returns the input of the rule of a pipeline that this workload runs.
    pub(crate) fn as_other(self, runner: &str) -> Option<OtherRelease> {
        let version = match self {
            Self::Validated => return None,
            Self::Other(version) => Some(version.to_string()),
            Self::Unknown => None,
        };
        Some(OtherRelease {
            runner: runner.to_owned(),
            version,
        })
    }
}

/// Returns the release that pipelines are validated for.
fn validated() -> Option<VectorVersion> {
    VectorVersion::parse(&Catalogue::shipped().version)
}

/// Describes the release that pipelines are validated for.
fn description() -> String {
    let Catalogue { version, vrl, .. } = Catalogue::shipped();
    format!("Vector {version} (VRL {vrl})")
}

/// Returns the rule about the image of a workload.
pub(crate) fn workload_rule<K: RunsVector>() -> Rule<K> {
    Rule {
        id: VECTOR_VERSION,
        description: "The image contains the release of Vector that pipelines are validated for.",
        severity: Severity::Warning,
        reference: RELEASES,
        fields: K::IMAGE,
        validate: validate_image,
    }
}

/// Reports an image with another release.
fn validate_image<K: RunsVector>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    let workload = context.object.workload();
    let Some(image) = workload.and_then(|workload| workload.image.as_deref()) else {
        return;
    };
    let detail = match ImageRelease::of_image(Some(image)) {
        ImageRelease::Validated => return,
        ImageRelease::Other(version) => format!(
            "contains Vector {version}, but pipelines are validated for {}, so that it may reject a valid one; use an image of Vector {}",
            description(),
            Catalogue::shipped().version
        ),
        ImageRelease::Unknown => format!(
            "has no tag that names a release of Vector, and pipelines are validated for {}; use a tag that begins with the release, such as `{}.0-alpine`",
            description(),
            Catalogue::shipped().version
        ),
    };
    diagnostics.push(FieldError::invalid(
        FieldPath::new(K::WORKLOAD).child("image"),
        image,
        detail,
    ));
}

/// Reports the workloads that run a pipeline with another release.
pub(crate) fn validate_runners(others: Vec<OtherRelease>, diagnostics: &mut Diagnostics) {
    for OtherRelease { runner, version } in others {
        let detail = match version {
            Some(version) => format!(
                "is validated for {}, but {runner} runs it with Vector {version}, which may reject it; use an image of Vector {} there",
                description(),
                Catalogue::shipped().version
            ),
            None => format!(
                "is validated for {}, but the image of {runner}, which runs it, has no tag that names a release of Vector",
                description()
            ),
        };
        diagnostics.push(FieldError::invalid_hidden(FieldPath::new("spec"), detail));
    }
}

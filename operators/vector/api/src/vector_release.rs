//! Rules about the releases of Vector in workloads: pipelines are validated for them.

use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath, Rule, RuleContext, Severity};
use lockstep_vector_config::{Catalogue, VRL_VERSION, VectorVersion};

use crate::rules::cached_validation::CachedValidation;
use crate::rules::context;
use crate::tenancy::policy::Section;
use crate::types::workload_kind::WorkloadKind;
use crate::workload_release::{ImageRelease, WorkloadRelease};

/// Rule about the Vector release of a workload or of the workloads that run a pipeline.
pub const VECTOR_VERSION: &str = "vector-version";

/// Page with the releases of Vector.
const RELEASES: &str = "https://vector.dev/releases/";

/// Describes the release of a catalogue. Programs are compiled by the compiler of this program for every release.
fn description(catalogue: &Catalogue) -> String {
    format!("Vector {} (VRL {VRL_VERSION})", catalogue.version)
}

/// Returns the rule about the image of a workload.
pub(crate) fn workload_rule<K: WorkloadKind>() -> Rule<K> {
    Rule {
        id: VECTOR_VERSION,
        description: "The image contains the release of Vector that pipelines are validated for.",
        severity: Severity::Warning,
        reference: RELEASES,
        fields: K::IMAGE,
        validate: validate_image,
    }
}

/// Reports an image with a release for which pipelines are not validated.
fn validate_image<K: WorkloadKind>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    let workload = context.object.workload();
    let Some(image) = workload.and_then(|workload| workload.image.as_deref()) else {
        return;
    };
    let catalogues = context::catalogues(context.extension());
    let section = Section::of(context.settings);
    let validated = catalogues.preferred(section.version);
    let version = workload.and_then(|workload| workload.vector_version.as_deref());
    if let Some(version) = version
        && let ImageRelease::Named(tag) = ImageRelease::of_image(Some(image))
        && VectorVersion::parse(version) != Some(tag)
    {
        let path = FieldPath::new(K::WORKLOAD).child("vectorVersion");
        let detail = format!(
            "is not the version that the tag of the image names, Vector {tag}; remove the field, or use another tag"
        );
        return diagnostics.push(FieldError::invalid(path, version, detail));
    }
    let detail = match ImageRelease::new(version, Some(image)) {
        ImageRelease::Unset => return,
        ImageRelease::Named(version) if version.is_measured() => return,
        ImageRelease::Named(version)
            if catalogues.get(version).is_some() && version > VectorVersion::DEFAULT =>
        {
            format!(
                "contains Vector {version}, whose programs are compiled here by VRL {VRL_VERSION}, that of an older version: functions that are new in it are denied, and others may have other results or types"
            )
        }
        ImageRelease::Named(version) if catalogues.get(version).is_some() => format!(
            "contains Vector {version}, whose programs are compiled here by VRL {VRL_VERSION}, that of a newer version: functions that Vector {version} lacks are denied, and others may have other results or types"
        ),
        ImageRelease::Named(version) if section.learns_catalogues() => format!(
            "contains Vector {version}, and pipelines are validated for {} until the controller has learned the catalogue of Vector {version} from the image; see `status.catalogue`",
            description(validated)
        ),
        ImageRelease::Named(version) => format!(
            "contains Vector {version}, but pipelines are validated for {}, so that it may reject a valid one; use an image of Vector {}, add a catalogue of Vector {version}, or set `settings.vector.catalogue: Learn` in the policy",
            description(validated),
            validated.version
        ),
        ImageRelease::Unknown => format!(
            "has no tag that names a release of Vector, and pipelines are validated for {}; use a tag that begins with the release, such as `{}.0-alpine`, or set `vectorVersion`",
            description(validated),
            validated.version
        ),
    };
    let path = FieldPath::new(K::WORKLOAD).child("image");
    diagnostics.push(FieldError::invalid(path, image, detail));
}

/// Reports the workloads that run a pipeline with a release for which it is not validated.
pub(crate) fn validate_workloads(validation: &CachedValidation, diagnostics: &mut Diagnostics) {
    let mut report = |detail| {
        diagnostics.push(FieldError::invalid_hidden(FieldPath::new("spec"), detail));
    };
    let validated: Vec<_> = validation
        .catalogues
        .iter()
        .map(|used| description(&used.catalogue))
        .collect();
    let validated = validated.join(" and ");
    if let Some(version) = validation.missing {
        report(format!(
            "is validated for {validated}, because there is no catalogue of Vector {version}, which the policy sets; add the catalogue, or change `settings.vector.version` in the policy"
        ));
    }
    for WorkloadRelease {
        workload, release, ..
    } in &validation.releases
    {
        match release {
            ImageRelease::Unset => {}
            ImageRelease::Named(version) => {
                let mut validated_for = validation.catalogues.iter();
                if !validated_for.any(|used| used.catalogue.number() == *version) {
                    report(format!(
                        "is validated for {validated}, but {workload} runs it with Vector {version}, which may reject it; use an image of Vector {} there, or add a catalogue of Vector {version}",
                        Catalogue::shipped().version
                    ));
                }
            }
            ImageRelease::Unknown => report(format!(
                "is validated for {validated}, but the image of {workload}, which runs it, has no tag that names a release of Vector"
            )),
        }
    }
}

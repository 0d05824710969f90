//! Catalogues of the versions of Vector for which pipelines can be validated.

use std::cmp::Reverse;
use std::sync::Arc;

use lockstep_vector_config::{Catalogue, VectorVersion};
use serde_json::Value;

use crate::tenancy::policy::Section;
use crate::workload_release::{self, ImageRelease, WorkloadRelease};

/// Catalogues of the versions of Vector for which pipelines can be validated: those that are compiled into the program,
/// and others.
#[derive(Default)]
pub struct Catalogues {
    /// Catalogues that were added. One of a version that is compiled in replaces it.
    added: Vec<Arc<Catalogue>>,
}

impl Catalogues {
    /// Returns the compiled-in catalogues with others. One of a compiled-in version replaces it.
    #[must_use]
    pub fn with(added: &[Arc<Catalogue>]) -> Self {
        Self {
            added: added.to_vec(),
        }
    }

    /// Returns the version that the image of a workload names and of which there is no catalogue, with the image.
    #[must_use]
    pub fn missing_of_workload(&self, workload: &Value) -> Option<(VectorVersion, String)> {
        let image = workload_release::image_of_workload(workload)?;
        match ImageRelease::of_workload(workload) {
            ImageRelease::Named(version) if self.get(version).is_none() => {
                Some((version, image.to_owned()))
            }
            _ => None,
        }
    }

    /// Returns the version that the image of a workload names, if there is a catalogue of it.
    #[must_use]
    pub fn known_version_of_workload(&self, workload: &Value) -> Option<VectorVersion> {
        let known = self.of_release(ImageRelease::of_workload(workload))?;
        Some(known.number())
    }

    /// Returns true if the section of a policy tells the controller to learn catalogues from images.
    #[must_use]
    pub fn are_learned(settings: Option<&Value>) -> bool {
        Section::of(settings).learns_catalogues()
    }

    /// Returns a fingerprint of the default catalogue and of those that were added.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let all = [self.preferred(None)].into_iter().chain(&self.added);
        combined(all.map(|catalogue| catalogue.digest()))
    }

    /// Returns a fingerprint of the catalogues that the result for a pipeline depends on: those for which it is validated,
    /// and the preferred one. `settings` is the section of the policy, `related` the facts about other objects.
    #[must_use]
    pub fn digest_for_pipeline(&self, settings: Option<&Value>, related: Option<&Value>) -> u64 {
        let of_policy = Section::of(settings).version;
        let releases = workload_release::of_workloads(related);
        let of_workloads = releases
            .iter()
            .map(|workload| self.nearest(workload.release, of_policy).digest());
        combined(of_workloads.chain([self.preferred(of_policy).digest()]))
    }

    /// Returns a fingerprint of the catalogue that the result for a workload depends on.
    #[must_use]
    pub fn digest_for_workload(&self, settings: Option<&Value>, workload: &Value) -> u64 {
        self.of_workload(settings, workload).catalogue.digest()
    }

    /// Returns the catalogue for which the pipelines of a workload are validated: that of its version. A workload without an
    /// image has the version of the operator's image, and one whose version is not known that which the section of the policy
    /// sets.
    #[must_use]
    pub fn of_workload(&self, settings: Option<&Value>, workload: &Value) -> UsedCatalogue {
        let of_policy = Section::of(settings).version;
        match ImageRelease::of_workload(workload) {
            ImageRelease::Unset => self.of_image(ImageRelease::Named(VectorVersion::DEFAULT), None),
            release => self.of_image(release, of_policy),
        }
    }

    /// Returns the catalogue for which pipelines in an image are validated. `of_policy` is the version that the policy sets.
    fn of_image(&self, release: ImageRelease, of_policy: Option<VectorVersion>) -> UsedCatalogue {
        let version = match release {
            ImageRelease::Named(version) => Some(version),
            ImageRelease::Unset | ImageRelease::Unknown => of_policy,
        };
        UsedCatalogue {
            catalogue: Arc::clone(self.nearest(release, of_policy)),
            unmeasured: version.filter(|version| !version.is_measured()),
        }
    }

    /// Returns the catalogue of the release of an image, or of the version that is the nearest to it: another one would know
    /// options that it lacks. For an image that names no release of Vector, it is the preferred one.
    fn nearest(&self, release: ImageRelease, of_policy: Option<VectorVersion>) -> &Arc<Catalogue> {
        let ImageRelease::Named(version) = release else {
            return self.preferred(of_policy);
        };
        let measured = VectorVersion::MEASURED.into_iter();
        let measured = measured.filter_map(|measured| self.get(measured));
        let all = self.added.iter().chain(measured);
        let near = all.filter_map(|known| Some((version.distance(known.number())?, known)));
        let nearest = near.min_by_key(|(distance, _)| *distance);
        nearest.map_or_else(|| self.preferred(of_policy), |(_, known)| known)
    }

    /// Returns the catalogue of a version.
    #[must_use]
    pub fn get(&self, version: VectorVersion) -> Option<&Arc<Catalogue>> {
        let mut added = self.added.iter();
        let found = added.find(|catalogue| catalogue.number() == version);
        found.or_else(|| Catalogue::of_version(version))
    }

    /// Returns the catalogue of the release of an image.
    fn of_release(&self, release: ImageRelease) -> Option<&Arc<Catalogue>> {
        match release {
            ImageRelease::Named(version) => self.get(version),
            ImageRelease::Unset | ImageRelease::Unknown => None,
        }
    }

    /// Returns the catalogue of the version that a policy sets, or the shipped one.
    pub(crate) fn preferred(&self, version: Option<VectorVersion>) -> &Arc<Catalogue> {
        let chosen = version.and_then(|version| self.get(version));
        let default = || self.get(VectorVersion::DEFAULT);
        chosen
            .or_else(default)
            .unwrap_or_else(|| Catalogue::shipped())
    }

    /// Returns the catalogues for which a pipeline is validated: those of the releases of the workloads that run it, and
    /// the one of the `version` that the policy sets if no workload runs it or the catalogue of one is not known.
    pub(crate) fn of_workloads(
        &self,
        version: Option<VectorVersion>,
        releases: &[WorkloadRelease],
    ) -> Vec<UsedCatalogue> {
        let of_image = |release| self.of_image(release, version);
        let mut used: Vec<_> = releases
            .iter()
            .map(|workload| of_image(workload.release))
            .collect();
        if used.is_empty() {
            used.push(of_image(ImageRelease::Unset));
        }
        // Of several releases with one catalogue, the one that has most of the rules decides.
        used.sort_by_key(|used| {
            let rules = used
                .unmeasured
                .map_or(Some(VectorVersion::DEFAULT), |version| {
                    Some(version).filter(|version| *version < VectorVersion::DEFAULT)
                });
            (Reverse(used.catalogue.number()), Reverse(rules))
        });
        used.dedup_by_key(|used| used.catalogue.number());
        used
    }
}

/// Catalogue for which pipelines are validated.
pub struct UsedCatalogue {
    /// Catalogue.
    pub catalogue: Arc<Catalogue>,
    /// Version that runs the pipelines, if the rules about its start were not compared with it.
    pub unmeasured: Option<VectorVersion>,
}

fn combined(digests: impl Iterator<Item = u64>) -> u64 {
    digests.fold(0, |all, one| all.rotate_left(1) ^ one)
}

//! Catalogues of the versions of Vector for which pipelines can be validated.

use std::cmp::Reverse;
use std::sync::Arc;

use lockstep_vector_config::{Catalogue, VectorVersion};
use serde_json::Value;

use crate::runner_release::{self, ImageRelease, RunnerRelease};
use crate::tenancy::policy::Section;

/// Catalogues of the versions of Vector for which pipelines can be validated: the one that is compiled into the program,
/// and others.
pub struct Catalogues {
    /// The shipped catalogue first.
    all: Vec<Arc<Catalogue>>,
}

impl Default for Catalogues {
    fn default() -> Self {
        Self::with(&[])
    }
}

impl Catalogues {
    /// Returns the shipped catalogue with others. One of the shipped version replaces it.
    #[must_use]
    pub fn with(others: &[Arc<Catalogue>]) -> Self {
        let shipped = Catalogue::shipped();
        let is_replaced = others.iter().any(|it| it.number() == shipped.number());
        let own = (!is_replaced).then_some(shipped);
        Self {
            all: own.into_iter().chain(others).cloned().collect(),
        }
    }

    /// Returns the version that the image of a workload names and of which there is no catalogue, with the image.
    #[must_use]
    pub fn missing_of_workload(&self, workload: &Value) -> Option<(VectorVersion, String)> {
        let image = runner_release::image_of_workload(workload)?;
        match ImageRelease::of_image(Some(image)) {
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

    /// Returns a fingerprint of all catalogues.
    #[must_use]
    pub fn digest(&self) -> u64 {
        combined(self.all.iter().map(|catalogue| catalogue.digest()))
    }

    /// Returns a fingerprint of the catalogues that the result for a pipeline depends on: those for which it is validated,
    /// and the preferred one. `settings` is the section of the policy, `related` the facts about other objects.
    #[must_use]
    pub fn digest_for_pipeline(&self, settings: Option<&Value>, related: Option<&Value>) -> u64 {
        let preferred = self.preferred(Section::of(settings).version);
        let releases = runner_release::of_runners(related);
        let of_runners = releases.iter().map(|runner| {
            let known = self.of_release(runner.release);
            known.unwrap_or(preferred).digest()
        });
        combined(of_runners.chain([preferred.digest()]))
    }

    /// Returns a fingerprint of the catalogue that the result for a workload depends on.
    #[must_use]
    pub fn digest_for_workload(&self, settings: Option<&Value>, workload: &Value) -> u64 {
        let known = self.of_release(ImageRelease::of_workload(workload));
        let preferred = || self.preferred(Section::of(settings).version);
        known.unwrap_or_else(preferred).digest()
    }

    /// Returns the catalogue for which a workload is validated: that of the release of its image, or the shipped one.
    #[must_use]
    pub fn of_workload(&self, workload: &Value) -> &Arc<Catalogue> {
        let known = self.of_release(ImageRelease::of_workload(workload));
        known.unwrap_or_else(|| self.preferred(None))
    }

    /// Returns the catalogue of a version.
    #[must_use]
    pub fn get(&self, version: VectorVersion) -> Option<&Arc<Catalogue>> {
        let mut all = self.all.iter();
        all.find(|catalogue| catalogue.number() == version)
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
        let version = version.unwrap_or_else(|| Catalogue::shipped().number());
        self.get(version).unwrap_or_else(|| Catalogue::shipped())
    }

    /// Returns the catalogues for which a pipeline is validated: those of the releases of the workloads that run it, and
    /// the preferred one if no workload runs it or the catalogue of one is not known.
    pub(crate) fn of_runners(
        &self,
        preferred: &Arc<Catalogue>,
        releases: &[RunnerRelease],
    ) -> Vec<Arc<Catalogue>> {
        let known = |runner: &RunnerRelease| self.of_release(runner.release);
        let mut chosen: Vec<_> = releases
            .iter()
            .map(|runner| Arc::clone(known(runner).unwrap_or(preferred)))
            .collect();
        if chosen.is_empty() {
            chosen.push(Arc::clone(preferred));
        }
        chosen.sort_unstable_by_key(|catalogue| Reverse(catalogue.number()));
        chosen.dedup_by_key(|catalogue| catalogue.number());
        chosen
    }
}

fn combined(digests: impl Iterator<Item = u64>) -> u64 {
    digests.fold(0, |all, one| all.rotate_left(1) ^ one)
}

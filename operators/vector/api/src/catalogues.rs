//! Catalogues of the versions of Vector for which pipelines can be validated.

use lockstep_vector_config::{Catalogue, VectorVersion};
use serde_json::Value;

use crate::runner_release::{ImageRelease, RunnerRelease};

/// Catalogues of the versions of Vector for which pipelines can be validated: the one that is compiled into the program,
/// and others.
pub struct Catalogues {
    /// The shipped catalogue first.
    all: Vec<&'static Catalogue>,
}

impl Default for Catalogues {
    fn default() -> Self {
        Self::with(&[])
    }
}

impl Catalogues {
    /// Returns the shipped catalogue with others. One of the shipped version replaces it.
    #[must_use]
    pub fn with(others: &[&'static Catalogue]) -> Self {
        let shipped = Catalogue::shipped();
        let is_replaced = others.iter().any(|it| it.number() == shipped.number());
        let own = (!is_replaced).then_some(shipped);
        Self {
            all: own.into_iter().chain(others.iter().copied()).collect(),
        }
    }

    /// Returns a fingerprint of all catalogues.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let digests = self.all.iter().map(|catalogue| catalogue.digest());
        digests.fold(0, |all: u64, one| all.rotate_left(1) ^ one)
    }

    /// Returns the catalogue for which a workload is validated: that of the release of its image, or the shipped one.
    #[must_use]
    pub fn of_workload(&self, workload: &Value) -> &'static Catalogue {
        let shipped = self.preferred(None);
        match ImageRelease::of_workload(workload) {
            ImageRelease::Named(version) => self.get(version).unwrap_or(shipped),
            ImageRelease::Unset | ImageRelease::Unknown => shipped,
        }
    }

    /// Returns the catalogue of a version.
    pub(crate) fn get(&self, version: VectorVersion) -> Option<&'static Catalogue> {
        let mut all = self.all.iter().copied();
        all.find(|catalogue| catalogue.number() == version)
    }

    /// Returns the catalogue of the version that a policy sets, or the shipped one.
    pub(crate) fn preferred(&self, version: Option<VectorVersion>) -> &'static Catalogue {
        let version = version.unwrap_or_else(|| Catalogue::shipped().number());
        self.get(version).unwrap_or_else(Catalogue::shipped)
    }

    /// Returns the catalogues for which a pipeline is validated: those of the releases of the workloads that run it, and
    /// the preferred one if no workload runs it or the catalogue of one is not known.
    pub(crate) fn of_runners(
        &self,
        preferred: &'static Catalogue,
        releases: &[RunnerRelease],
    ) -> Vec<&'static Catalogue> {
        let known = |runner: &RunnerRelease| match runner.release {
            ImageRelease::Named(version) => self.get(version),
            ImageRelease::Unset | ImageRelease::Unknown => None,
        };
        let mut chosen: Vec<_> = releases
            .iter()
            .map(|runner| known(runner).unwrap_or(preferred))
            .collect();
        if chosen.is_empty() {
            chosen.push(preferred);
        }
        chosen.sort_unstable_by_key(|catalogue| std::cmp::Reverse(catalogue.number()));
        chosen.dedup_by_key(|catalogue| catalogue.number());
        chosen
    }
}

//! CRD status: whether the CRDs of the cluster match the compiled ones. It is valid until it expires.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use shared_validation::{ClusterCrd, Judge, Rulesets, Sighting, Sightings};

/// Current CRD status, shared by the task that updates it and by validation. Initially unknown for all kinds.
#[derive(Clone, Default)]
pub struct CurrentCrds {
    /// Fingerprint of each compiled CRD, by kind.
    ours: Arc<BTreeMap<String, String>>,
    known: Arc<RwLock<Option<Known>>>,
}

struct Known {
    until: Instant,
    by_name: BTreeMap<String, ClusterCrd>,
}

impl CurrentCrds {
    /// Creates a status for the kinds of `rulesets`, unknown for all of them.
    #[must_use]
    pub fn new(rulesets: &Rulesets) -> Self {
        let ours = rulesets.iter().map(|ruleset| {
            let fingerprint = Sighting::fingerprint(ruleset.crd(), ruleset.version());
            (Sightings::name(ruleset.as_ref()), fingerprint)
        });
        Self {
            ours: Arc::new(ours.collect()),
            known: Arc::default(),
        }
    }

    /// Stores a reported CRD status and returns the resulting status of each kind. `now` is in seconds since the
    /// Unix epoch. If the report has expired, or claims to be valid for longer than [`Sightings::LIFE`], all
    /// kinds become unknown.
    pub fn set(&self, seen: &Sightings, now: u64) -> Vec<ClusterCrd> {
        let left = Duration::from_secs(seen.until.saturating_sub(now));
        let is_taken = !left.is_zero() && left <= Sightings::LIFE;
        let by_name: BTreeMap<_, _> = self
            .ours
            .iter()
            .map(|(name, ours)| {
                let known = is_taken.then(|| seen.of(name, ours));
                (name.clone(), known.unwrap_or_default())
            })
            .collect();
        let standings = by_name.values().copied().collect();
        let known = is_taken.then(|| Known {
            until: Instant::now() + left,
            by_name,
        });
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
        standings
    }

    /// Returns the CRD status of a kind.
    pub(crate) fn of(&self, ruleset: &dyn Judge) -> ClusterCrd {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_ref().filter(|known| Instant::now() < known.until);
        let standing = known.and_then(|known| known.by_name.get(&Sightings::name(ruleset)));
        standing.copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared_validation::CustomResource;

    use super::*;

    fn kind(least: u32) -> CustomResource {
        let crd = json!({"spec": {
            "group": "example.com",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"size": {"type": "integer", "minimum": least}}}}}],
        }});
        CustomResource::compile(&crd, "v1").expect("it compiles")
    }

    fn known(cluster: &CustomResource, settled: bool, left: i64) -> ClusterCrd {
        const NOW: u64 = 1_790_000_000;
        let ours = kind(1);
        let rulesets = Rulesets::default().with(Arc::new(kind(1)));
        let seen = Sighting {
            crd: Sighting::fingerprint(cluster.crd(), "v1"),
            settled,
        };
        let seen = Sightings {
            until: NOW.saturating_add_signed(left),
            kinds: [(Sightings::name(&ours), seen)].into(),
        };
        let crds = CurrentCrds::new(&rulesets);
        assert_eq!(crds.of(&ours), ClusterCrd::Unknown);
        let told = crds.set(&seen, NOW);
        assert_eq!(told, [crds.of(&ours)]);
        crds.of(&ours)
    }

    #[test]
    fn a_crd_status_is_valid_for_a_limited_time() {
        let life = i64::try_from(Sightings::LIFE.as_secs()).expect("a short time");
        assert_eq!(known(&kind(1), true, life), ClusterCrd::Same);
        assert_eq!(known(&kind(2), true, life), ClusterCrd::Different);
        assert_eq!(known(&kind(2), false, life), ClusterCrd::Different);
        let never = [0, -life, life + 1, i64::MAX, i64::MIN];
        for (settled, left) in [(false, life)]
            .into_iter()
            .chain(never.map(|left| (true, left)))
        {
            assert_eq!(known(&kind(1), settled, left), ClusterCrd::Unknown);
        }
    }
}

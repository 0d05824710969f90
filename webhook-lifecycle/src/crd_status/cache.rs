//! Cache of the CRD status that a file reports. It is valid until it expires.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use lockstep_shared_validation::{CrdMatch, Validator, ValidatorRegistry, crd_fingerprint};

use crate::crd_status::report::CrdStatusReport;

/// Interval at which the file is read.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// Current CRD status, shared by the task that updates it and by validation. Initially unknown for all kinds.
#[derive(Clone, Default)]
pub struct CrdStatusCache {
    /// Fingerprint of each compiled CRD, by kind.
    ours: Arc<BTreeMap<String, String>>,
    known: Arc<RwLock<Option<Known>>>,
}

struct Known {
    until: Instant,
    by_name: BTreeMap<String, CrdMatch>,
}

impl CrdStatusCache {
    /// Creates a status for the kinds of `validators`, unknown for all of them.
    #[must_use]
    pub fn new(validators: &ValidatorRegistry) -> Self {
        let ours = validators.iter().map(|ruleset| {
            let fingerprint = crd_fingerprint(ruleset.crd(), ruleset.version());
            (CrdStatusReport::name(ruleset.as_ref()), fingerprint)
        });
        Self {
            ours: Arc::new(ours.collect()),
            known: Arc::default(),
        }
    }

    /// Reads the file for as long as the process lives, and logs each change of the CRD status.
    pub async fn watch_file(self, file: PathBuf) {
        let mut ticks = tokio::time::interval(READ_INTERVAL);
        let mut before = Vec::new();
        loop {
            ticks.tick().await;
            let now = Timestamp::now().as_second().unsigned_abs();
            let known = self.update(&CrdStatusReport::read(&file), now);
            if known != before {
                tracing::info!(known = describe(&known), "the CRD status has changed");
                before = known;
            }
        }
    }

    /// Stores a reported CRD status and returns the resulting status of each kind. `now` is in seconds since the
    /// Unix epoch. If the report has expired, or claims to be valid for longer than [`CrdStatusReport::TTL`], all
    /// kinds become unknown.
    pub fn update(&self, seen: &CrdStatusReport, now: u64) -> Vec<CrdMatch> {
        let left = Duration::from_secs(seen.until.saturating_sub(now));
        let is_valid = !left.is_zero() && left <= CrdStatusReport::TTL;
        let by_name: BTreeMap<_, _> = self
            .ours
            .iter()
            .map(|(name, ours)| {
                let known = is_valid.then(|| seen.of(name, ours));
                (name.clone(), known.unwrap_or_default())
            })
            .collect();
        let statuses = by_name.values().copied().collect();
        let known = is_valid.then(|| Known {
            until: Instant::now() + left,
            by_name,
        });
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
        statuses
    }

    /// Returns the CRD status of a kind.
    pub fn get(&self, ruleset: &dyn Validator) -> CrdMatch {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_ref().filter(|known| Instant::now() < known.until);
        let status = known.and_then(|known| known.by_name.get(&CrdStatusReport::name(ruleset)));
        status.copied().unwrap_or_default()
    }
}

fn describe(known: &[CrdMatch]) -> String {
    let words = known.iter().map(|crd| match crd {
        CrdMatch::Unknown => "unknown",
        CrdMatch::Same => "same",
        CrdMatch::Different => "different",
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use lockstep_shared_validation::CrdValidator;
    use serde_json::json;

    use super::*;
    use crate::crd_status::report::CrdStatus;

    fn kind(least: u32) -> CrdValidator {
        let crd = json!({"spec": {
            "group": "example.com",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"size": {"type": "integer", "minimum": least}}}}}],
        }});
        CrdValidator::compile(&crd, "v1").expect("it compiles")
    }

    fn known(cluster: &CrdValidator, propagated: bool, left: i64) -> CrdMatch {
        const NOW: u64 = 1_790_000_000;
        let ours = kind(1);
        let validators = ValidatorRegistry::default().register(Arc::new(kind(1)));
        let seen = CrdStatus {
            crd: crd_fingerprint(cluster.crd(), "v1"),
            propagated,
        };
        let seen = CrdStatusReport {
            until: NOW.saturating_add_signed(left),
            kinds: [(CrdStatusReport::name(&ours), seen)].into(),
        };
        let crds = CrdStatusCache::new(&validators);
        assert_eq!(crds.get(&ours), CrdMatch::Unknown);
        let statuses = crds.update(&seen, NOW);
        assert_eq!(statuses, [crds.get(&ours)]);
        crds.get(&ours)
    }

    #[test]
    fn a_crd_status_is_valid_for_a_limited_time() {
        let ttl = i64::try_from(CrdStatusReport::TTL.as_secs()).expect("a short time");
        assert_eq!(known(&kind(1), true, ttl), CrdMatch::Same);
        assert_eq!(known(&kind(2), true, ttl), CrdMatch::Different);
        assert_eq!(known(&kind(2), false, ttl), CrdMatch::Different);
        let never = [0, -ttl, ttl + 1, i64::MAX, i64::MIN];
        for (propagated, left) in [(false, ttl)]
            .into_iter()
            .chain(never.map(|left| (true, left)))
        {
            assert_eq!(known(&kind(1), propagated, left), CrdMatch::Unknown);
        }
    }
}

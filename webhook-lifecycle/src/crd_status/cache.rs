//! Cache of the CRD status that a file reports. It is valid until it expires.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use lockstep_shared_validation::{CrdMatch, Validator, ValidatorRegistry, crd_fingerprint};

use crate::crd_status::report::{CrdStatus, CrdStatusReport};

/// Interval at which the file is read.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// Current CRD status, shared by the task that updates it and by validation. Initially unknown for all kinds.
#[derive(Clone, Default)]
pub struct CrdStatusCache {
    /// Compiled CRD of each kind.
    ours: Arc<BTreeMap<String, CompiledCrd>>,
    known: Arc<RwLock<Option<Known>>>,
}

/// Compiled CRD. Its fingerprint is computed for the first review of the kind, because that compiles its ruleset.
struct CompiledCrd {
    ruleset: Arc<dyn Validator>,
    fingerprint: OnceLock<String>,
}

impl CompiledCrd {
    fn fingerprint(&self) -> &str {
        let crd = || crd_fingerprint(self.ruleset.crd(), self.ruleset.version());
        self.fingerprint.get_or_init(crd)
    }
}

struct Known {
    until: Instant,
    report: CrdStatusReport,
}

impl CrdStatusCache {
    /// Creates a status for the kinds of `validators`, unknown for all of them.
    #[must_use]
    pub fn new(validators: &ValidatorRegistry) -> Self {
        let ours = validators.iter().map(|ruleset| {
            let compiled = CompiledCrd {
                ruleset: Arc::clone(ruleset),
                fingerprint: OnceLock::new(),
            };
            (CrdStatusReport::name(ruleset.as_ref()), compiled)
        });
        Self {
            ours: Arc::new(ours.collect()),
            known: Arc::default(),
        }
    }

    /// Reads the file for as long as the process lives, and logs each change of the reported CRDs.
    pub async fn watch_file(self, file: PathBuf) {
        let mut ticks = tokio::time::interval(READ_INTERVAL);
        let mut before = BTreeMap::new();
        loop {
            ticks.tick().await;
            let now = Timestamp::now().as_second().unsigned_abs();
            let report = CrdStatusReport::read(&file);
            let reported = report.kinds.clone();
            let reported = if self.update(report, now) {
                reported
            } else {
                BTreeMap::new()
            };
            if reported != before {
                tracing::info!(
                    reported = describe(&reported),
                    "the reported CRD status has changed"
                );
                before = reported;
            }
        }
    }

    /// Stores a reported CRD status, and returns true if it is valid. `now` is in seconds since the Unix epoch. If the
    /// report has expired, or claims to be valid for longer than [`CrdStatusReport::TTL`], all kinds become unknown.
    pub fn update(&self, report: CrdStatusReport, now: u64) -> bool {
        let left = Duration::from_secs(report.until.saturating_sub(now));
        let is_valid = !left.is_zero() && left <= CrdStatusReport::TTL;
        let known = is_valid.then(|| Known {
            until: Instant::now() + left,
            report,
        });
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
        is_valid
    }

    /// Returns the CRD status of a kind.
    pub fn get(&self, ruleset: &dyn Validator) -> CrdMatch {
        let name = CrdStatusReport::name(ruleset);
        let Some(ours) = self.ours.get(&name) else {
            return CrdMatch::Unknown;
        };
        // Computed before the lock is taken, for which the report of the next second would wait otherwise.
        let fingerprint = ours.fingerprint();
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_ref().filter(|known| Instant::now() < known.until);
        known.map_or(CrdMatch::Unknown, |known| {
            known.report.of(&name, fingerprint)
        })
    }
}

fn describe(reported: &BTreeMap<String, CrdStatus>) -> String {
    let kinds = reported.iter().map(|(name, status)| {
        let propagated = if status.propagated {
            "propagated"
        } else {
            "not propagated yet"
        };
        format!("{name} {} ({propagated})", status.crd)
    });
    kinds.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use lockstep_shared_validation::CrdValidator;
    use serde_json::json;

    use super::*;

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
        crds.update(seen, NOW);
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

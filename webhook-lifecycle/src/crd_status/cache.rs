//! Cache of the CRD status that a file reports. It is valid until it expires.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use lockstep_shared_validation::{CrdMatch, Validator, ValidatorRegistry, crd_fingerprint};

use crate::crd_status::report::CrdStatusReport;

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

    /// Reads the file for as long as the process lives, and logs each change of the CRD status.
    pub async fn watch_file(self, file: PathBuf) {
        let mut ticks = tokio::time::interval(READ_INTERVAL);
        let mut before = String::new();
        loop {
            ticks.tick().await;
            let now = Timestamp::now().as_second().unsigned_abs();
            self.update(CrdStatusReport::read(&file), now);
            let status = self.describe();
            if status != before {
                tracing::info!(status, "the CRD status has changed");
                before = status;
            }
        }
    }

    /// Stores a reported CRD status. `now` is in seconds since the Unix epoch. If the
    /// report has expired, or claims to be valid for longer than [`CrdStatusReport::TTL`], all kinds become unknown.
    pub fn update(&self, report: CrdStatusReport, now: u64) {
        let left = Duration::from_secs(report.until.saturating_sub(now));
        let is_valid = !left.is_zero() && left <= CrdStatusReport::TTL;
        let known = is_valid.then(|| Known {
            until: Instant::now() + left,
            report,
        });
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
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

    /// Returns the status of all kinds for the log. The CRD of a kind that is not compiled is not compared, because no review needs it.
    fn describe(&self) -> String {
        let status = |ours: &CompiledCrd| match ours.fingerprint.get() {
            None => "not compared before the first review",
            Some(_) => match self.get(&*ours.ruleset) {
                CrdMatch::Same => "same",
                CrdMatch::Different => "different",
                CrdMatch::Unknown => "unknown",
            },
        };
        let kinds = self.ours.iter();
        let kinds = kinds.map(|(name, ours)| format!("{name}: {}", status(ours)));
        kinds.collect::<Vec<_>>().join(", ")
    }
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

    /// Returns the status of a kind, after its description was compared with that of the log.
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
        let unused = "Widget.example.com: not compared before the first review";
        assert_eq!(crds.describe(), unused);
        assert_eq!(crds.get(&ours), CrdMatch::Unknown);
        crds.update(seen, NOW);
        let known = crds.get(&ours);
        let described = format!("{known:?}").to_lowercase();
        assert_eq!(crds.describe(), format!("Widget.example.com: {described}"));
        known
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

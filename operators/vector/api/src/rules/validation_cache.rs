//! Cache of validation results: the same configuration is not validated twice.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hash, RandomState};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lockstep_shared_validation::ErrorType;
use lockstep_vector_config::confinement::OptOut;
use lockstep_vector_config::{Diagnostic, Interpolation};
use lru::LruCache;
use serde_json::Value;
use siphasher::sip128::{Hasher128, SipHasher13};

/// Maximum number of cached results.
const CAPACITY: NonZeroUsize = NonZeroUsize::new(1024).expect("not zero");

/// Maximum size of a cached result, in bytes.
const MAX_CACHED_BYTES: usize = 16 << 10;

/// Fingerprint of a configuration and its conditions, with 128 bits and random keys, so that an attacker cannot construct collisions.
type Fingerprint = u128;

/// Problems of a configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Problems {
    /// Problems with which Vector does not load the configuration.
    pub(crate) load: Vec<Diagnostic>,
    /// Problems with which Vector does not start, or ends right after its start.
    pub(crate) start_up: Vec<Diagnostic>,
}

impl Problems {
    /// Returns true if Vector does not load the configuration.
    pub(crate) fn prevent_loading(&self) -> bool {
        let mut load = self.load.iter();
        load.any(|problem| !problem.check.is_warning())
    }
}

/// Everything besides the configuration that its problems depend on.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Conditions<'a> {
    /// Functions that programs must not call.
    pub(crate) denied_functions: &'a BTreeSet<String>,
    pub(crate) opt_out: OptOut,
    pub(crate) interpolation: Interpolation,
}

/// Cache of validation results.
pub(crate) struct ValidationCache {
    hasher: SipHasher13,
    known: Mutex<LruCache<Fingerprint, Arc<Problems>>>,
}

impl Default for ValidationCache {
    fn default() -> Self {
        let random = RandomState::new();
        let hasher = SipHasher13::new_with_keys(random.hash_one(0), random.hash_one(1));
        Self {
            hasher,
            known: Mutex::new(LruCache::new(CAPACITY)),
        }
    }
}

impl ValidationCache {
    /// Returns the result for a configuration, the conditions and the digest of the catalogue, from the cache if
    /// possible.
    pub(crate) fn get_or_compute(
        &self,
        key: (&Value, Conditions<'_>, u64),
        validate: impl FnOnce() -> Problems,
    ) -> Arc<Problems> {
        let mut hasher = self.hasher;
        key.hash(&mut hasher);
        let fingerprint = hasher.finish128().as_u128();
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&fingerprint) {
            return Arc::clone(found);
        }
        // Without the lock: a slow validation must not block others.
        let found = Arc::new(validate());
        if is_cacheable(&found) {
            known().put(fingerprint, Arc::clone(&found));
        }
        found
    }
}

/// Returns true if a result may be cached: it is complete and not too large.
fn is_cacheable(problems: &Problems) -> bool {
    let all = || problems.load.iter().chain(&problems.start_up);
    let errors = || all().map(|problem| &problem.error);
    let size = |text: &str| text.len() + size_of::<Diagnostic>();
    let sizes = errors().map(|error| size(&error.detail) + error.path.as_str().len());
    sizes.sum::<usize>() <= MAX_CACHED_BYTES
        && errors().all(|error| error.error_type != ErrorType::Internal)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use lockstep_shared_validation::{FieldError, FieldPath};
    use lockstep_vector_config::{Check, VectorVersion};
    use serde_json::json;

    use super::*;

    #[test]
    fn incomplete_and_large_results_are_not_cached() {
        let problem = |error| Diagnostic {
            check: Check::Programs,
            error,
            since: VectorVersion::FIRST_READ,
        };
        let path = || FieldPath::new("transforms[a].source");
        let wrong = problem(FieldError::invalid_hidden(path(), "wrong"));
        let internal = problem(FieldError::internal(path(), "unknown"));
        let is_cacheable = |problems: Vec<Diagnostic>| {
            let of = |load: &[Diagnostic], start_up: &[Diagnostic]| {
                let (load, start_up) = (load.to_vec(), start_up.to_vec());
                super::is_cacheable(&Problems { load, start_up })
            };
            let (first, second) = problems.split_at(problems.len() / 2);
            let all = [of(&problems, &[]), of(&[], &problems), of(first, second)];
            assert!(all.iter().all(|it| *it == all[0]), "{problems:?}");
            all[0]
        };
        assert!(is_cacheable(vec![]));
        assert!(is_cacheable(vec![wrong.clone()]));
        assert!(!is_cacheable(vec![wrong.clone(), internal]));
        let long = problem(FieldError::invalid_hidden(
            path(),
            "x".repeat(MAX_CACHED_BYTES),
        ));
        // The detail of one error is shortened.
        let bytes = long.error.detail.len();
        assert!(!is_cacheable(vec![long; MAX_CACHED_BYTES / bytes + 1]));
        assert!(!is_cacheable(vec![
            wrong;
            MAX_CACHED_BYTES
                / size_of::<Diagnostic>()
        ]));
    }

    #[test]
    fn the_same_configuration_under_the_same_conditions_is_validated_once() {
        let cache = ValidationCache::default();
        let calls = Cell::new(0);
        let (none, now) = (BTreeSet::new(), BTreeSet::from(["now".to_owned()]));
        let usual = Conditions {
            denied_functions: &none,
            opt_out: OptOut::Author,
            interpolation: Interpolation::Off,
        };
        let call = |config: &Value, conditions, catalogue| {
            cache.get_or_compute((config, conditions, catalogue), || {
                calls.set(calls.get() + 1);
                Problems::default()
            });
            calls.get()
        };
        let config = json!({"sources": {}});
        assert_eq!(call(&config, usual, 1), 1);
        assert_eq!(call(&config, usual, 1), 1);
        assert_eq!(call(&json!({"sinks": {}}), usual, 1), 2);
        assert_eq!(call(&config, usual, 2), 3);
        let others = [
            Conditions {
                denied_functions: &now,
                ..usual
            },
            Conditions {
                opt_out: OptOut::Administrator,
                ..usual
            },
            Conditions {
                interpolation: Interpolation::On,
                ..usual
            },
        ];
        for (conditions, expected) in others.into_iter().zip(4..) {
            assert_eq!(call(&config, conditions, 1), expected, "{conditions:?}");
        }
    }
}

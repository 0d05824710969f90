//! Cache of validation results: the same configuration is not validated twice.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lockstep_shared_validation::ErrorType;
use lockstep_vector_config::Diagnostic;
use lru::LruCache;
use serde_json::Value;

/// Maximum number of cached results.
const CAPACITY: NonZeroUsize = NonZeroUsize::new(1024).expect("not zero");

/// Maximum size of a cached result, in bytes.
const MAX_CACHED_BYTES: usize = 16 << 10;

/// Fingerprint of a text, with 128 bits and random keys, so that an attacker cannot construct collisions.
type Fingerprint = (u64, u64);

/// Cache of validation results.
pub(crate) struct ValidationCache {
    hashers: (RandomState, RandomState),
    known: Mutex<LruCache<Fingerprint, Arc<Vec<Diagnostic>>>>,
}

impl Default for ValidationCache {
    fn default() -> Self {
        Self {
            hashers: (RandomState::new(), RandomState::new()),
            known: Mutex::new(LruCache::new(CAPACITY)),
        }
    }
}

impl ValidationCache {
    /// Returns the result for a configuration, the denied functions and the digest of the catalogue, from the cache if
    /// possible.
    pub(crate) fn get_or_compute(
        &self,
        (config, denied, catalogue): (&Value, &BTreeSet<String>, u64),
        validate: impl FnOnce() -> Vec<Diagnostic>,
    ) -> Arc<Vec<Diagnostic>> {
        let text = (config.to_string(), denied, catalogue);
        let (first, second) = &self.hashers;
        let fingerprint = (first.hash_one(&text), second.hash_one(&text));
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
fn is_cacheable(problems: &[Diagnostic]) -> bool {
    let errors = || problems.iter().map(|problem| &problem.error);
    let size = |text: &str| text.len() + size_of::<Diagnostic>();
    let sizes = errors().map(|error| size(&error.detail) + error.path.as_str().len());
    sizes.sum::<usize>() <= MAX_CACHED_BYTES
        && errors().all(|error| error.error_type != ErrorType::Internal)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use lockstep_shared_validation::{FieldError, FieldPath};
    use lockstep_vector_config::Check;
    use serde_json::json;

    use super::*;

    #[test]
    fn incomplete_and_large_results_are_not_cached() {
        let problem = |error| Diagnostic {
            check: Check::Programs,
            error,
        };
        let path = || FieldPath::new("transforms[a].source");
        let wrong = problem(FieldError::invalid_hidden(path(), "wrong"));
        let internal = problem(FieldError::internal(path(), "unknown"));
        assert!(is_cacheable(&[]));
        assert!(is_cacheable(std::slice::from_ref(&wrong)));
        assert!(!is_cacheable(&[wrong.clone(), internal]));
        let long = problem(FieldError::invalid_hidden(
            path(),
            "x".repeat(MAX_CACHED_BYTES),
        ));
        assert!(!is_cacheable(&[long]));
        assert!(!is_cacheable(&vec![
            wrong;
            MAX_CACHED_BYTES
                / size_of::<Diagnostic>()
        ]));
    }

    #[test]
    fn the_same_configuration_with_the_same_functions_and_catalogue_is_validated_once() {
        let cache = ValidationCache::default();
        let calls = Cell::new(0);
        let call = |config: &Value, denied: &[&str], catalogue| {
            let denied = denied.iter().map(|name| (*name).to_owned()).collect();
            cache.get_or_compute((config, &denied, catalogue), || {
                calls.set(calls.get() + 1);
                Vec::new()
            });
            calls.get()
        };
        let config = json!({"sources": {}});
        assert_eq!(call(&config, &[], 1), 1);
        assert_eq!(call(&config, &[], 1), 1);
        assert_eq!(call(&config, &["now"], 1), 2);
        assert_eq!(call(&json!({"sinks": {}}), &[], 1), 3);
        assert_eq!(call(&config, &[], 2), 4);
    }
}

//! Cache of validation results: the same configuration is not validated twice.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use lru::LruCache;
use serde_json::Value;
use shared_validation::ErrorType;

use crate::config::catalogue::Catalogue;
use crate::config::diagnostic::Diagnostic;
use crate::config::validate::validate_config;

/// Maximum number of cached results.
const KEPT: NonZeroUsize = NonZeroUsize::new(1024).expect("not zero");

/// Maximum size of a cached result, in bytes.
const LARGEST_KEPT: usize = 16 << 10;

/// Fingerprint of a text, with 128 bits and random keys, so that an attacker cannot construct collisions.
type Fingerprint = (u64, u64);

struct ValidationCache {
    hashers: (RandomState, RandomState),
    known: Mutex<LruCache<Fingerprint, Arc<Vec<Diagnostic>>>>,
}

static VERDICTS: LazyLock<ValidationCache> = LazyLock::new(|| ValidationCache {
    hashers: (RandomState::new(), RandomState::new()),
    known: Mutex::new(LruCache::new(KEPT)),
});

/// Returns the result of the validation, from the cache if possible.
pub(crate) fn of(config: &Value, denied: &BTreeSet<String>) -> Arc<Vec<Diagnostic>> {
    let text = (config.to_string(), denied);
    let (first, second) = &VERDICTS.hashers;
    let fingerprint = (first.hash_one(&text), second.hash_one(&text));
    let known = || {
        VERDICTS
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    };
    if let Some(found) = known().get(&fingerprint) {
        return Arc::clone(found);
    }
    // Without the lock: a slow validation must not block others.
    let found = Arc::new(validate_config(Catalogue::shipped(), config, denied));
    if is_kept(&found) {
        known().put(fingerprint, Arc::clone(&found));
    }
    found
}

/// Returns true if a result may be cached: it is complete and not too large.
fn is_kept(problems: &[Diagnostic]) -> bool {
    let errors = || problems.iter().map(|problem| &problem.error);
    let size = |text: &str| text.len() + size_of::<Diagnostic>();
    let sizes = errors().map(|error| size(&error.detail) + error.path.as_str().len());
    sizes.sum::<usize>() <= LARGEST_KEPT
        && errors().all(|error| error.error_type != ErrorType::Internal)
}

#[cfg(test)]
mod tests {
    use shared_validation::{FieldError, FieldPath};

    use super::*;
    use crate::config::diagnostic::Check;

    #[test]
    fn incomplete_and_large_results_are_not_cached() {
        let problem = |error| Diagnostic {
            check: Check::Programs,
            error,
        };
        let path = || FieldPath::new("transforms[a].source");
        let wrong = problem(FieldError::invalid_hidden(path(), "wrong"));
        let internal = problem(FieldError::internal(path(), "unknown"));
        assert!(is_kept(&[]));
        assert!(is_kept(std::slice::from_ref(&wrong)));
        assert!(!is_kept(&[wrong.clone(), internal]));
        let long = problem(FieldError::invalid_hidden(path(), "x".repeat(LARGEST_KEPT)));
        assert!(!is_kept(&[long]));
        assert!(!is_kept(&vec![
            wrong;
            LARGEST_KEPT / size_of::<Diagnostic>()
        ]));
    }
}

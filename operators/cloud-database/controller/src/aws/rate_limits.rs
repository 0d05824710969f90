//! Rate limits of RDS: AWS throttles the calls of an account in a region, of all clients together.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use lockstep_controller::RateLimiter;

/// Account, if it is known, and region.
type Key = (Option<String>, Option<String>);

/// Number of buckets at which all are replaced by full ones: annotations can name any regions.
const MAX_BUCKETS: usize = 1_000;

/// Token buckets, one for each account and region. They are shared by clones.
#[derive(Clone, Debug)]
pub struct RateLimits {
    limit: Option<(NonZeroU32, NonZeroU32)>,
    buckets: Arc<Mutex<HashMap<Key, RateLimiter>>>,
}

impl RateLimits {
    /// Returns limits with buckets that fill at a rate, up to a number of tokens that can be taken in one burst.
    #[must_use]
    pub fn new(per_second: NonZeroU32, burst: NonZeroU32) -> Self {
        Self {
            limit: Some((per_second, burst)),
            buckets: Arc::default(),
        }
    }

    /// Returns limits whose buckets are never empty.
    #[cfg(test)]
    pub(crate) fn unlimited() -> Self {
        Self {
            limit: None,
            buckets: Arc::default(),
        }
    }

    /// Returns the bucket of an account and region.
    pub(crate) fn of(&self, account: Option<String>, region: Option<String>) -> RateLimiter {
        let Some((per_second, burst)) = self.limit else {
            return RateLimiter::unlimited();
        };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS {
            buckets.clear();
        }
        let bucket = buckets.entry((account, region));
        let bucket = bucket.or_insert_with(|| RateLimiter::new(per_second, burst));
        bucket.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn each_account_and_region_has_a_bucket_of_its_own() {
        let limits = RateLimits::new(NonZeroU32::MIN, NonZeroU32::MIN);
        let takes = async |account: &str, region: &str| {
            let bucket = limits.of(Some(account.to_owned()), Some(region.to_owned()));
            timeout(Duration::from_millis(50), bucket.acquire())
                .await
                .is_ok()
        };
        assert!(takes("1", "eu-central-1").await);
        assert!(!takes("1", "eu-central-1").await, "no token is left");
        assert!(takes("1", "us-east-1").await);
        assert!(takes("2", "eu-central-1").await);
    }
}

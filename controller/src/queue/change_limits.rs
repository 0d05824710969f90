//! Limits for the reconciliations that changes in one namespace cause for objects of other namespaces.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota};

use crate::cache::object_key::ObjectKey;

/// Number of changes that cause a reconciliation at once.
const BURST: NonZeroU32 = NonZeroU32::new(10).expect("10 is not zero");

/// Time after which another one does.
const PERIOD: Duration = Duration::from_secs(5);

/// Number of buckets from which on those that are full are removed.
const MAX_BUCKETS: usize = 10_000;

/// Token buckets, one for each object and other namespace.
///
/// # Guarantees
///
/// A change is delayed, never lost, and for no longer than five seconds. Those of one namespace delay no change of another one,
/// and an object reconciled for that one is reconciled for all.
pub(crate) struct ChangeLimits(DefaultKeyedRateLimiter<(ObjectKey, String)>);

impl Default for ChangeLimits {
    fn default() -> Self {
        let quota = Quota::with_period(PERIOD).expect("a period");
        Self(DefaultKeyedRateLimiter::keyed(quota.allow_burst(BURST)))
    }
}

impl ChangeLimits {
    /// Returns the time after which an object is reconciled of which another one in `namespace` has changed. Without a
    /// namespace, or in that of the object itself, it is at once.
    pub(crate) fn delay(&self, object: &ObjectKey, namespace: &str) -> Duration {
        if namespace.is_empty() || namespace == object.namespace() {
            return Duration::ZERO;
        }
        if self.0.len() > MAX_BUCKETS {
            self.0.retain_recent();
        }
        let checked = self.0.check_key(&(object.clone(), namespace.to_owned()));
        let wait =
            |until: governor::NotUntil<_>| until.wait_time_from(DefaultClock::default().now());
        checked.err().map_or(Duration::ZERO, wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_changes_in_another_namespace_wait_and_delay_no_others() {
        let limits = ChangeLimits::default();
        let workload = ObjectKey::new("infra", "agent");
        let at_once = |namespace: &str| {
            let delays = (0..100).map(|_| limits.delay(&workload, namespace));
            let delays: Vec<_> = delays.collect();
            assert!(delays.iter().all(|delay| *delay <= PERIOD), "{delays:?}");
            delays.iter().filter(|delay| delay.is_zero()).count()
        };
        assert_eq!(at_once("team-a"), 10);
        assert_eq!(at_once("team-b"), 10);
        assert_eq!(at_once("infra"), 100);
        assert_eq!(at_once(""), 100);
        let other = ObjectKey::new("infra", "other");
        assert!(limits.delay(&other, "team-a").is_zero());
        let cluster_scoped = ObjectKey::new("", "aggregator");
        assert!((0..11).any(|_| !limits.delay(&cluster_scoped, "team-a").is_zero()));
    }
}

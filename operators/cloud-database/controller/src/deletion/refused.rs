//! Deletions that AWS refuses for a reason outside of their instances, such as a missing permission.
//!
//! One cause stops many deletions, and no watch reports its end. All objects would cost a call each, so the one that has
//! waited longest for a cause tries again often. Once its call is accepted, the others follow at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::aws::call_error::ROLE_NOT_ASSUMED;
use crate::aws::error_code::{self, Class};
use crate::aws::rds_events::changed_instances::Owner;
use crate::clock;

/// Interval at which the object that has waited longest for a cause tries again.
pub(crate) const PROBE_INTERVAL: Duration = Duration::from_mins(2);

/// Time after which an object that has not tried again is not waited for: a user may have removed its finalizer.
const ABANDONED_AFTER: Duration = Duration::from_mins(20);

/// Calls of a deletion, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum DeletionCall {
    /// Finds the account and the instance.
    Describe,
    /// Lifts the deletion protection.
    LiftProtection,
    Delete,
    /// Finds the final snapshot of an instance that is gone.
    FindSnapshot,
}

/// Reason of a refusal, for which other objects of the same region and role may wait as well.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cause {
    pub(crate) call: DeletionCall,
    /// Code of the error.
    pub(crate) code: String,
}

impl Cause {
    /// Returns true if it is the access of the controller.
    fn is_access(&self) -> bool {
        self.code == ROLE_NOT_ASSUMED
            || error_code::class(Some(&self.code), Some(403)) == Class::Access
    }
}

/// Objects whose deletion is refused, by cause, of one region and role. It is shared by its clones.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefusedDeletions(Arc<Mutex<HashMap<Cause, BTreeMap<Owner, Waiting>>>>);

#[derive(Clone, Copy, Debug)]
struct Waiting {
    since: Instant,
    last_refused: Instant,
}

impl RefusedDeletions {
    /// Records that a call of an object was refused. Returns true if the object has waited longest for this cause.
    pub(crate) fn add(&self, owner: &Owner, cause: Cause) -> bool {
        let now = clock::instant();
        let mut causes = self.lock();
        let waiting = causes.entry(cause).or_default();
        let entry = waiting.entry(owner.clone()).or_insert(Waiting {
            since: now,
            last_refused: now,
        });
        entry.last_refused = now;
        waiting.retain(|_, entry| now.duration_since(entry.last_refused) < ABANDONED_AFTER);
        longest(waiting) == Some(owner)
    }

    /// Removes an object from all causes but one. Returns those that have waited longest instead, which are to try again.
    #[must_use]
    pub(crate) fn leave(&self, owner: &Owner, except: Option<&Cause>) -> Vec<Owner> {
        let mut next = Vec::new();
        self.lock().retain(|cause, waiting| {
            let was_longest = longest(waiting) == Some(owner);
            if Some(cause) != except && waiting.remove(owner).is_some() && was_longest {
                next.extend(longest(waiting).cloned());
            }
            !waiting.is_empty()
        });
        next
    }

    /// Records that a call of an object was accepted. Returns the objects that are to try again, because they wait for the same
    /// reason as this one did: all if it was the access of the controller, and one after the other if it was something that each
    /// of them takes a part of, such as a quota.
    #[must_use]
    pub(crate) fn accepted(&self, owner: &Owner, call: DeletionCall) -> Vec<Owner> {
        let mut owners = Vec::new();
        self.lock().retain(|cause, waiting| {
            if cause.call != call || waiting.remove(owner).is_none() {
                return true;
            }
            if !cause.is_access() {
                owners.extend(longest(waiting).cloned());
                return !waiting.is_empty();
            }
            owners.extend(waiting.keys().cloned());
            false
        });
        owners
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Cause, BTreeMap<Owner, Waiting>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the object that has waited longest.
fn longest(waiting: &BTreeMap<Owner, Waiting>) -> Option<&Owner> {
    let first = waiting.iter().min_by_key(|(_, waiting)| waiting.since);
    first.map(|(owner, _)| owner)
}

//! Usage of the objects of each namespace, as far as the controller has granted or found it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lockstep_cloud_database_api::Quota;

use crate::aws::rds_events::changed_instances::Owner;
use crate::clock;
use crate::quota::usage::{Amount, Usage};

/// Time after which the status of an object shows its last grant.
const STATUS_DELAY: Duration = Duration::from_mins(1);

/// Usage by namespace. It is shared by its clones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Arc<Mutex<HashMap<String, Namespace>>>);

#[derive(Debug, Default)]
struct Namespace {
    /// Usage of objects that have an instance, or are about to have one, by name.
    granted: BTreeMap<String, Granted>,
    /// Objects that were released, with the time. A list that is older still has them.
    released: BTreeMap<String, Instant>,
    /// Sum of what is granted.
    total: Usage,
    /// Objects that wait because of a quota.
    waiting: BTreeSet<String>,
    /// Time of the last list of the objects.
    listed_at: Option<Instant>,
}

/// Usage of an object.
#[derive(Clone, Copy, Debug)]
struct Granted {
    usage: Usage,
    /// Time at which this process has granted it. None if a list has shown it.
    at: Option<Instant>,
}

/// Change of the usage of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Usage that the instance has already. It is counted, and never refused.
    pub(crate) present: Usage,
    /// Usage that the spec demands.
    pub(crate) desired: Usage,
    /// If true, there is no instance yet. The list of a namespace grants none: a status does not say what was granted.
    pub(crate) is_new: bool,
}

/// Resource of which a namespace would have too much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exceeded {
    /// Key in the policy.
    pub(crate) key: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) limit: u64,
    /// Amount of all other objects.
    pub(crate) others: u64,
    /// Amount of the object, as it demands.
    pub(crate) desired: u64,
}

impl Ledger {
    /// Returns true if the objects of a namespace were listed within this time.
    pub(crate) fn is_listed_within(&self, namespace: &str, time: Duration) -> bool {
        let namespaces = self.lock();
        let listed = namespaces.get(namespace).and_then(|known| known.listed_at);
        listed.is_some_and(|at| clock::instant().duration_since(at) <= time)
    }

    /// Returns true if this process has granted this to an object before.
    pub(crate) fn has_granted(&self, owner: &Owner, usage: Usage) -> bool {
        let namespaces = self.lock();
        let granted = namespaces
            .get(&owner.namespace)
            .and_then(|namespace| namespace.granted.get(&owner.name));
        granted.is_some_and(|granted| granted.at.is_some() && usage.is_within(granted.usage))
    }

    /// Takes over a list of the objects of a namespace, which was begun at this time, with the usage of those that have an instance
    /// as their status says. What this process has granted shortly before and since then stays: their status may not tell yet.
    pub(crate) fn set_listed(
        &self,
        namespace: &str,
        begun: Instant,
        objects: &BTreeMap<String, Option<Usage>>,
    ) {
        let mut namespaces = self.lock();
        let namespace = namespaces.entry(namespace.to_owned()).or_default();
        let is_recent = |at: &Instant| begun.saturating_duration_since(*at) < STATUS_DELAY;
        namespace.released.retain(|_, at| is_recent(at));
        namespace
            .granted
            .retain(|_, granted| granted.at.as_ref().is_some_and(is_recent));
        for (name, usage) in objects {
            if let Some(usage) = *usage
                && !namespace.released.contains_key(name)
            {
                let listed = Granted { usage, at: None };
                namespace.granted.entry(name.clone()).or_insert(listed);
            }
        }
        let all = namespace.granted.values();
        namespace.total = all.fold(Usage::default(), |sum, granted| sum.plus(granted.usage));
        namespace.listed_at = Some(begun);
    }

    /// Grants an object what it wants, if the quota of its namespace is enough. Returns the objects that are to try again because
    /// this one needs less than before.
    ///
    /// # Errors
    ///
    /// The quota is not enough. What the object has is counted, and it waits.
    pub(crate) fn request(
        &self,
        owner: &Owner,
        wanted: Wanted,
        quota: Quota,
    ) -> Result<Vec<Owner>, Exceeded> {
        let mut namespaces = self.lock();
        let namespace = namespaces.entry(owner.namespace.clone()).or_default();
        let listed = namespace.granted.get(&owner.name);
        let counts = !wanted.is_new || listed.is_some_and(|granted| granted.at.is_some());
        let granted = namespace.take(&owner.name);
        let had = granted.filter(|_| counts).unwrap_or_default();
        let had = had.max(wanted.present);
        let desired = wanted.desired.max(wanted.present);
        let exceeded = exceeded(namespace.total, had, desired, quota);
        let usage = if exceeded.is_some() { had } else { desired };
        if usage != Usage::default() {
            namespace.total = namespace.total.plus(usage);
            let granted = Granted {
                usage,
                at: Some(clock::instant()),
            };
            namespace.granted.insert(owner.name.clone(), granted);
            namespace.released.remove(&owner.name);
        }
        if let Some(exceeded) = exceeded {
            namespace.waiting.insert(owner.name.clone());
            return Err(exceeded);
        }
        namespace.waiting.remove(&owner.name);
        let is_less = granted.is_some_and(|granted| !granted.is_within(usage));
        Ok(if is_less {
            namespace.wake(&owner.namespace)
        } else {
            Vec::new()
        })
    }

    /// Removes an object that does not exist any more. Returns the objects that are to try again.
    #[must_use]
    pub(crate) fn release(&self, owner: &Owner) -> Vec<Owner> {
        if let Some(namespace) = self.lock().get_mut(&owner.namespace) {
            namespace.waiting.remove(&owner.name);
        }
        self.revoke(owner)
    }

    /// Takes back what an object was granted that has no instance. Returns the objects that are to try again.
    #[must_use]
    pub(crate) fn revoke(&self, owner: &Owner) -> Vec<Owner> {
        let mut namespaces = self.lock();
        let Some(namespace) = namespaces.get_mut(&owner.namespace) else {
            return Vec::new();
        };
        if namespace.take(&owner.name).is_none() {
            return Vec::new();
        }
        let now = clock::instant();
        namespace.released.insert(owner.name.clone(), now);
        let mut woken = namespace.wake(&owner.namespace);
        woken.retain(|other| other != owner);
        woken
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Namespace>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Namespace {
    /// Removes what an object was granted.
    fn take(&mut self, name: &str) -> Option<Usage> {
        let usage = self.granted.remove(name)?.usage;
        self.total = self.total.minus(usage);
        Some(usage)
    }

    /// Returns the objects that wait.
    fn wake(&self, namespace: &str) -> Vec<Owner> {
        let waiting = self.waiting.iter().map(|name| Owner {
            namespace: namespace.to_owned(),
            name: name.clone(),
        });
        waiting.collect()
    }
}

/// Returns the first resource of which an object would have more than before, and its namespace too much.
fn exceeded(others: Usage, had: Usage, desired: Usage, quota: Quota) -> Option<Exceeded> {
    let with = |usage: Usage| usage.beside(quota);
    let resources = with(others).into_iter().zip(with(had)).zip(with(desired));
    resources
        .filter(|((_, had), desired)| desired.used > had.used)
        .find(|((others, _), desired)| others.used.saturating_add(desired.used) > desired.limit)
        .map(|((others, _), desired)| {
            let Amount {
                key,
                unit,
                used,
                limit,
            } = desired;
            Exceeded {
                key,
                unit,
                limit,
                others: others.used,
                desired: used,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> Owner {
        Owner {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        }
    }

    fn usage(storage_gib: u64) -> Usage {
        Usage {
            instances: 1,
            storage_gib,
            provisioned_iops: 0,
        }
    }

    const QUOTA: Quota = Quota {
        instances: 2,
        storage_gib: 100,
        provisioned_iops: 0,
    };

    fn create(ledger: &Ledger, name: &str, storage_gib: u64) -> Result<Vec<Owner>, &'static str> {
        let wanted = Wanted {
            present: Usage::default(),
            desired: usage(storage_gib),
            is_new: true,
        };
        let result = ledger.request(&owner(name), wanted, QUOTA);
        result.map_err(|exceeded| exceeded.key)
    }

    /// Wants storage for an instance that has 20 GiB.
    fn grow(ledger: &Ledger, name: &str, storage_gib: u64) -> Result<Vec<Owner>, Exceeded> {
        let wanted = Wanted {
            present: usage(20),
            desired: usage(storage_gib),
            is_new: false,
        };
        ledger.request(&owner(name), wanted, QUOTA)
    }

    #[test]
    fn what_exceeds_waits_until_others_need_less() {
        let ledger = Ledger::default();
        assert_eq!(create(&ledger, "a", 20), Ok(Vec::new()));
        assert_eq!(create(&ledger, "b", 20), Ok(Vec::new()));
        assert_eq!(create(&ledger, "c", 20), Err("instances"));
        // Another try of one that has a place.
        assert_eq!(create(&ledger, "b", 20), Ok(Vec::new()));
        assert_eq!(ledger.release(&owner("a")), [owner("c")]);
        assert_eq!(create(&ledger, "c", 20), Ok(Vec::new()));
        assert!(ledger.release(&owner("a")).is_empty());
    }

    #[test]
    fn a_growth_is_refused_and_what_runs_is_counted_whatever_the_quota_says() {
        let ledger = Ledger::default();
        assert_eq!(grow(&ledger, "a", 70), Ok(Vec::new()));
        let exceeded = grow(&ledger, "b", 40).expect_err("110 GiB");
        let expected = Exceeded {
            key: "storageGib",
            unit: "GiB of storage",
            limit: 100,
            others: 70,
            desired: 40,
        };
        assert_eq!(exceeded, expected);
        // Both have less than they may: b runs with 20 GiB.
        assert_eq!(create(&ledger, "c", 1), Err("instances"));
        // The instance of a has grown less than the spec said.
        let waiting = grow(&ledger, "a", 50).expect("less than before");
        assert_eq!(waiting, [owner("b"), owner("c")]);
        assert_eq!(grow(&ledger, "b", 40), Ok(Vec::new()));
        // A smaller quota takes nothing away.
        let none = Quota {
            instances: 0,
            storage_gib: 0,
            provisioned_iops: 0,
        };
        let same = Wanted {
            present: usage(20),
            desired: usage(40),
            is_new: false,
        };
        assert_eq!(ledger.request(&owner("b"), same, none), Ok(Vec::new()));
    }

    #[test]
    fn a_list_adds_what_other_processes_have_granted_and_removes_what_is_gone() {
        let ledger = Ledger::default();
        let minute = Duration::from_mins(1);
        assert!(!ledger.is_listed_within("shop", minute));
        assert_eq!(create(&ledger, "a", 20), Ok(Vec::new()));
        assert_eq!(create(&ledger, "gone", 20), Ok(Vec::new()));
        let listed = [("a", None), ("b", Some(usage(60))), ("c", None)];
        let listed = listed.map(|(name, usage)| (name.to_owned(), usage));
        let later = Instant::now() + 2 * STATUS_DELAY;
        ledger.set_listed("shop", Instant::now(), &BTreeMap::from(listed.clone()));
        assert_eq!(create(&ledger, "c", 1), Err("instances"), "a, gone and b");
        ledger.set_listed("shop", later, &BTreeMap::from(listed));
        assert!(ledger.is_listed_within("shop", minute));
        assert_eq!(create(&ledger, "a", 20), Ok(Vec::new()));
        assert_eq!(create(&ledger, "c", 1), Err("instances"));
        assert_eq!(ledger.release(&owner("b")), [owner("c")]);
        assert_eq!(create(&ledger, "c", 90), Err("storageGib"));
        // What a list shows of an object that has no instance yet was not granted by it.
        let located = BTreeMap::from([("d".to_owned(), Some(usage(200)))]);
        ledger.set_listed("shop", later + 2 * STATUS_DELAY, &located);
        assert_eq!(create(&ledger, "d", 200), Err("storageGib"));
    }
}

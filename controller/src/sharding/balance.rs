//! Balance: which shards a replica acquires and releases, so that each replica holds as many as any other, or one more.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

use fnv::FnvHasher;

/// Shards and replicas as one replica sees them.
pub(crate) struct Situation<'a> {
    /// Identity of this replica.
    pub(crate) identity: &'a str,
    /// Identities of all replicas that take shards, including this one.
    pub(crate) replicas: &'a BTreeSet<String>,
    /// Other holder of each shard. If there is none, this replica holds it or can acquire it.
    pub(crate) holders: &'a BTreeMap<u32, Option<String>>,
    /// Shards that this replica holds, and whether it is about to release them.
    pub(crate) held: &'a BTreeMap<u32, bool>,
}

/// Shards that this replica acquires, in the order in which it tries, and shards that it releases.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) acquire: Vec<u32>,
    pub(crate) release: Vec<u32>,
}

impl Situation<'_> {
    /// Returns what this replica does now.
    ///
    /// A limit of the quotient alone, rounded up, is not a balance: with nine shards and four replicas, three replicas would
    /// hold three shards each, and the fourth none. So a replica with one shard more than the quotient releases it if
    /// another replica has less than the quotient and cannot get it elsewhere. All replicas compute this from the same
    /// Leases, and the first of them in the order of their identities release a shard.
    pub(crate) fn plan(&self) -> Plan {
        let shards = self.holders.len();
        let replicas = self.replicas.len().max(1);
        let (least, most) = (shards / replicas, shards.div_ceil(replicas));
        let active: BTreeSet<u32> = self
            .held
            .iter()
            .filter_map(|(shard, is_suspended)| (!is_suspended).then_some(*shard))
            .collect();
        let free: Vec<u32> = self
            .holders
            .iter()
            .filter_map(|(shard, holder)| {
                (holder.is_none() && !self.held.contains_key(shard)).then_some(*shard)
            })
            .collect();
        let counts = self.counts(active.len());
        let missing: usize = counts
            .values()
            .map(|count| least.saturating_sub(*count))
            .sum();
        let mine = active.len();
        let missing_here = least.saturating_sub(mine);
        let at_most: usize = counts.values().filter(|count| **count >= most).count();
        let is_one_more_left = most > least && at_most < shards % replicas;
        let one_more = mine + missing_here < most && is_one_more_left && free.len() > missing;
        let acquire = (missing_here + usize::from(one_more)).min(free.len());
        let surplus = mine.saturating_sub(most);
        let kept = mine - surplus;
        // Shards of replicas that have ended become free when their Leases expire.
        let held_by_replicas: usize = counts.values().sum();
        let coming = shards - held_by_replicas.min(shards);
        let over: usize = counts
            .values()
            .map(|count| count.saturating_sub(most))
            .sum();
        let lacking = missing.saturating_sub(coming + over);
        let before = counts
            .iter()
            .filter(|(name, count)| **count >= most && name.as_str() < self.identity);
        let gives_one = most > least && kept == most && before.count() < lacking;
        Plan {
            acquire: self.ordered(free).into_iter().take(acquire).collect(),
            release: self
                .ordered(active.into_iter().collect())
                .into_iter()
                .rev()
                .take(surplus + usize::from(gives_one))
                .collect(),
        }
    }

    /// Returns the number of shards of each replica.
    fn counts(&self, mine: usize) -> BTreeMap<&String, usize> {
        let mut counts: BTreeMap<_, _> = self.replicas.iter().map(|name| (name, 0)).collect();
        for holder in self.holders.values().flatten() {
            if let Some(count) = counts.get_mut(holder) {
                *count += 1;
            }
        }
        for (name, count) in &mut counts {
            if name.as_str() == self.identity {
                *count = mine;
            }
        }
        counts
    }

    /// Orders shards differently for each replica, so that two of them rarely try to acquire the same one.
    fn ordered(&self, mut shards: Vec<u32>) -> Vec<u32> {
        shards.sort_by_key(|shard| {
            let mut hasher = FnvHasher::default();
            hasher.write(&shard.to_le_bytes());
            hasher.write(self.identity.as_bytes());
            Reverse((hasher.finish(), *shard))
        });
        shards
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replicas that act one after the other on the same Leases.
    struct World {
        replicas: BTreeSet<String>,
        holders: BTreeMap<u32, Option<String>>,
    }

    impl World {
        fn plan(&self, identity: &str) -> Plan {
            let held = self.holders.iter();
            let held = held.filter(|(_, holder)| holder.as_deref() == Some(identity));
            let held = held.map(|(shard, _)| (*shard, false)).collect();
            let mut holders = self.holders.clone();
            for holder in holders.values_mut() {
                holder.take_if(|holder| holder == identity);
            }
            let situation = Situation {
                identity,
                replicas: &self.replicas,
                holders: &holders,
                held: &held,
            };
            situation.plan()
        }

        /// Carries out what all replicas plan at the same time. Returns the number of moves.
        fn step(&mut self) -> usize {
            let names: Vec<_> = self.replicas.iter().cloned().collect();
            let plans: Vec<_> = names.iter().map(|name| self.plan(name)).collect();
            let mut moves = 0;
            for (name, plan) in names.iter().zip(plans) {
                for shard in plan.release {
                    self.holders.insert(shard, None);
                    moves += 1;
                }
                for shard in plan.acquire {
                    let holder = self.holders.get_mut(&shard).expect("a shard");
                    moves += 1;
                    // Of two replicas that acquire the same shard, one fails.
                    holder.get_or_insert_with(|| name.clone());
                }
            }
            moves
        }

        fn settle(&mut self) -> usize {
            let mut moves = 0;
            for _ in 0..50 {
                match self.step() {
                    0 => return moves,
                    more => moves += more,
                }
            }
            panic!("no balance: {:?}", self.holders);
        }

        fn counts(&self) -> Vec<usize> {
            let of = |name: &String| {
                let holders = self.holders.values().flatten();
                holders.filter(|holder| *holder == name).count()
            };
            self.replicas.iter().map(of).collect()
        }
    }

    #[test]
    fn replicas_that_come_and_go_reach_a_balance_with_few_moves() {
        let mut random = fastrand::Rng::with_seed(7);
        for shards in [1, 3, 4, 9, 10, 32] {
            let holders = (0..shards).map(|shard| (shard, None)).collect();
            let replicas = BTreeSet::from(["pod-a".to_owned()]);
            let mut world = World { replicas, holders };
            for _ in 0..60 {
                let before = world.replicas.len();
                let name = format!("pod-{}", (b'a' + random.u8(0..7)) as char);
                // At least one replica stays.
                if !world.replicas.remove(&name) || world.replicas.is_empty() {
                    world.replicas.insert(name.clone());
                }
                for holder in world.holders.values_mut() {
                    holder.take_if(|holder| !world.replicas.contains(holder));
                }
                let is_new = world.replicas.len() > before;
                let moves = world.settle();
                let counts = world.counts();
                let (least, most) = (counts.iter().min(), counts.iter().max());
                let difference = most.expect("a replica") - least.expect("a replica");
                assert!(difference <= 1, "{shards} shards: {counts:?}");
                assert_eq!(counts.iter().sum::<usize>(), shards as usize);
                if is_new && before > 1 {
                    // Each moved shard is released once and acquired once, perhaps by several that compete for it.
                    let share = shards as usize / world.replicas.len();
                    assert!(moves <= 4 * (share + 1), "{shards} shards: {moves} moves");
                }
            }
        }
    }

    #[test]
    fn shards_of_a_replica_that_has_ended_are_awaited() {
        let holders = [(0, "a"), (1, "a"), (2, "gone"), (3, "gone")];
        let world = World {
            replicas: ["a", "b"].map(String::from).into(),
            holders: holders
                .map(|(shard, holder)| (shard, Some(holder.to_owned())))
                .into(),
        };
        assert_eq!(world.plan("a"), Plan::default());
        assert_eq!(world.plan("b"), Plan::default());
    }
}

//! Keys that can be handed out: by priority, and in turn by namespace.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Priority of a key: a change goes before what can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Priority {
    /// Something has changed.
    Event,
    /// The requeue time of the last reconciliation has come.
    Requeue,
    /// The object existed when the watch started.
    Initial,
}

/// Key of an object of a namespace.
pub(crate) trait Namespaced {
    /// Returns the namespace, which is empty if the object is cluster-scoped.
    fn namespace(&self) -> &str;
}

/// Priority of a key, and the number of its arrival.
pub(crate) type Position = (Priority, u64);

/// Number of workers of which one is kept for other namespaces than that with the most work.
const WORKERS_PER_RESERVED: usize = 8;

/// Keys that can be handed out.
///
/// # Guarantees
///
/// Among keys of one priority, the next one belongs to a namespace with the fewest keys in work, and those namespaces take
/// turns. Where there are several namespaces, none has all workers of a controller with at least eight, whatever its objects
/// wait for: another namespace need not wait for one of them. Keys of cluster-scoped objects have no such limit.
#[derive(Debug)]
pub(crate) struct ReadyKeys<K> {
    keys: BTreeMap<Position, K>,
    by_priority: BTreeMap<Priority, Turns>,
    /// Number of keys of each namespace that are handed out.
    in_work: HashMap<String, usize>,
    /// Maximum of these numbers.
    max_in_work: usize,
    turns: u64,
}

/// Turns of the namespaces that have keys of one priority.
#[derive(Debug, Default)]
struct Turns {
    /// Namespaces by turn.
    order: BTreeMap<u64, String>,
    waiting: HashMap<String, Waiting>,
}

/// Keys of one priority and namespace.
#[derive(Debug)]
struct Waiting {
    turn: u64,
    arrivals: BTreeSet<u64>,
}

impl<K: Namespaced> Default for ReadyKeys<K> {
    fn default() -> Self {
        Self::new(None)
    }
}

impl<K: Namespaced> ReadyKeys<K> {
    /// Returns a collection without keys. `workers` are those of the controller; none if all its objects are in one namespace.
    pub(crate) fn new(workers: Option<usize>) -> Self {
        let limit = workers.map(|workers| workers - workers / WORKERS_PER_RESERVED);
        Self {
            keys: BTreeMap::new(),
            by_priority: BTreeMap::new(),
            in_work: HashMap::new(),
            max_in_work: limit.unwrap_or(usize::MAX),
            turns: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the keys by priority and age.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &K> {
        self.keys.values()
    }

    pub(crate) fn insert(&mut self, position: Position, key: K) {
        let (priority, arrival) = position;
        let turns = self.by_priority.entry(priority).or_default();
        let waiting = turns.waiting.entry(key.namespace().to_owned());
        let waiting = waiting.or_insert_with(|| {
            self.turns += 1;
            turns.order.insert(self.turns, key.namespace().to_owned());
            Waiting {
                turn: self.turns,
                arrivals: BTreeSet::new(),
            }
        });
        waiting.arrivals.insert(arrival);
        self.keys.insert(position, key);
    }

    pub(crate) fn remove(&mut self, position: Position) -> Option<K> {
        let key = self.keys.remove(&position)?;
        let (priority, arrival) = position;
        if let Some(turns) = self.by_priority.get_mut(&priority)
            && let Some(waiting) = turns.waiting.get_mut(key.namespace())
        {
            waiting.arrivals.remove(&arrival);
            if waiting.arrivals.is_empty() {
                turns.order.remove(&waiting.turn);
                turns.waiting.remove(key.namespace());
            }
        }
        Some(key)
    }

    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.by_priority.clear();
    }

    /// Removes the next key, which is in work from now on.
    pub(crate) fn take(&mut self) -> Option<(Position, K)> {
        let mut by_priority = self.by_priority.iter();
        let next = by_priority.find_map(|(priority, turns)| {
            let waiting = &turns.waiting[self.next_namespace(turns)?];
            let first = waiting.arrivals.first()?;
            Some((*priority, *first))
        });
        self.hand_out(next?)
    }

    /// Removes the oldest key of all priorities and namespaces. It is in work from now on.
    pub(crate) fn take_oldest(&mut self) -> Option<(Position, K)> {
        let all = self.by_priority.iter();
        let of_each = all.flat_map(|(priority, turns)| {
            let waiting = turns.waiting.iter();
            let may = waiting.filter(|(namespace, _)| self.in_work(namespace) < self.max_in_work);
            may.filter_map(|(_, waiting)| Some((*priority, *waiting.arrivals.first()?)))
        });
        let oldest = of_each.min_by_key(|(_, arrival)| *arrival);
        self.hand_out(oldest?)
    }

    /// Records that a key is in work no longer.
    pub(crate) fn finish(&mut self, key: &K) {
        let namespace = key.namespace();
        if let Some(count) = self.in_work.get_mut(namespace) {
            *count -= 1;
            if *count == 0 {
                self.in_work.remove(namespace);
            }
        }
    }

    /// Returns the namespace with the fewest keys in work; the one of several whose turn it is.
    fn next_namespace<'t>(&self, turns: &'t Turns) -> Option<&'t String> {
        let mut fewest = None;
        // No more namespaces than there are workers have keys in work, so that this ends soon.
        for namespace in turns.order.values() {
            match self.in_work(namespace) {
                0 => return Some(namespace),
                count if count >= self.max_in_work => {}
                count if fewest.is_none_or(|(least, _)| count < least) => {
                    fewest = Some((count, namespace));
                }
                _ => {}
            }
        }
        fewest.map(|(_, namespace)| namespace)
    }

    fn in_work(&self, namespace: &str) -> usize {
        // Cluster-scoped objects belong to no tenant.
        if namespace.is_empty() {
            return 0;
        }
        self.in_work.get(namespace).copied().unwrap_or_default()
    }

    fn hand_out(&mut self, position: Position) -> Option<(Position, K)> {
        let key = self.remove(position)?;
        let namespace = key.namespace();
        *self.in_work.entry(namespace.to_owned()).or_default() += 1;
        // The next turn is that of another namespace.
        if let Some(turns) = self.by_priority.get_mut(&position.0)
            && let Some(waiting) = turns.waiting.get_mut(namespace)
            && let Some(name) = turns.order.remove(&waiting.turn)
        {
            self.turns += 1;
            waiting.turn = self.turns;
            turns.order.insert(self.turns, name);
        }
        Some((position, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Namespaced for &'static str {
        /// Returns the part before a slash.
        fn namespace(&self) -> &str {
            self.split_once('/').map_or("", |(namespace, _)| namespace)
        }
    }

    fn ready(workers: usize, keys: &[&'static str]) -> ReadyKeys<&'static str> {
        let mut ready = ReadyKeys::new(Some(workers));
        for (arrival, key) in (0..).zip(keys) {
            ready.insert((Priority::Event, arrival), *key);
        }
        ready
    }

    fn taken(ready: &mut ReadyKeys<&'static str>) -> Vec<&'static str> {
        let taken = std::iter::from_fn(|| ready.take());
        taken.map(|(_, key)| key).collect()
    }

    #[test]
    fn namespaces_take_turns() {
        let mut ready = ready(1, &["a/1", "a/2", "a/3", "b/1", "c/1", "b/2"]);
        let mut order = Vec::new();
        while let Some((_, key)) = ready.take() {
            order.push(key);
            ready.finish(&key);
        }
        assert_eq!(order, ["a/1", "b/1", "c/1", "a/2", "b/2", "a/3"]);
    }

    #[test]
    fn the_next_key_is_of_the_namespace_with_the_fewest_in_work() {
        let mut ready = ready(4, &["a/1", "a/2", "a/3", "a/4"]);
        assert_eq!(ready.take().map(|(_, key)| key), Some("a/1"));
        assert_eq!(ready.take().map(|(_, key)| key), Some("a/2"));
        ready.insert((Priority::Event, 9), "b/1");
        ready.insert((Priority::Event, 10), "b/2");
        assert_eq!(taken(&mut ready), ["b/1", "b/2", "a/3", "a/4"]);
    }

    #[test]
    fn a_namespace_never_has_all_of_eight_workers() {
        let names: Vec<String> = (0..20).map(|at| format!("a/{at}")).collect();
        let names: Vec<&'static str> = names
            .into_iter()
            .map(|name| &*Box::leak(name.into()))
            .collect();
        let mut of_one = ready(8, &names);
        assert_eq!(taken(&mut of_one).len(), 7);
        assert_eq!(of_one.take_oldest(), None);
        of_one.insert((Priority::Initial, 99), "b/1");
        assert_eq!(taken(&mut of_one), ["b/1"]);
        of_one.finish(&"a/3");
        assert_eq!(taken(&mut of_one).len(), 1);
        assert_eq!(taken(&mut ready(7, &names)).len(), 7);
        let cluster_scoped = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
        assert_eq!(taken(&mut ready(8, &cluster_scoped)).len(), 9);
    }

    #[test]
    fn a_removed_key_leaves_no_turn() {
        let mut ready = ready(1, &["a/1", "b/1"]);
        assert_eq!(ready.remove((Priority::Event, 0)), Some("a/1"));
        assert_eq!(ready.remove((Priority::Event, 0)), None);
        assert_eq!(taken(&mut ready), ["b/1"]);
        assert!(ready.by_priority[&Priority::Event].order.is_empty());
        ready.finish(&"b/1");
        assert!(ready.in_work.is_empty());
    }
}

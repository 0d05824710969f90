//! Memory of collections that have lost most of their entries.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

/// Capacity that is never released.
const SMALL: usize = 64;

/// Releases the memory of a map that contains less than a quarter of what it has memory for: a replica that has released its
/// shards, or an operator whose objects were deleted, does not keep the memory for all of them.
pub(crate) fn release_unused<K: Eq + Hash, V, S: BuildHasher>(map: &mut HashMap<K, V, S>) {
    if map.capacity() > SMALL && map.len() < map.capacity() / 4 {
        map.shrink_to(map.len() * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_that_loses_its_entries_releases_their_memory() {
        let mut map: HashMap<_, _> = (0..10_000).map(|at| (at, at)).collect();
        let mut releases = 0;
        for at in 0..9_900 {
            map.remove(&at);
            let before = map.capacity();
            release_unused(&mut map);
            releases += usize::from(map.capacity() != before);
        }
        assert!(map.capacity() < 1_000, "{}", map.capacity());
        assert!(releases < 10, "{releases} releases");
        assert!((9_900..10_000).all(|at| map[&at] == at));
    }
}

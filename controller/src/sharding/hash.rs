//! Shard of an object: jump consistent hashing of its UID.

use std::hash::Hasher;
use std::num::NonZeroU32;

use fnv::FnvHasher;

/// Returns the shard of an object.
///
/// The result depends on nothing but the arguments: replicas on other machines and of other releases must compute the
/// same. It is that of "A Fast, Minimal Memory, Consistent Hash Algorithm" (Lamping and Veach, 2014) for the 64-bit FNV-1a
/// hash of the UID.
pub(crate) fn shard_of(uid: &str, count: NonZeroU32) -> u32 {
    let mut hasher = FnvHasher::default();
    hasher.write(uid.as_bytes());
    let mut key = hasher.finish();
    let (mut shard, mut next) = (0, 0);
    while next < i64::from(count.get()) {
        shard = next;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        next = jump(shard, key);
    }
    u32::try_from(shard).unwrap_or_default()
}

/// Returns the number of shards from which on the key is in another shard.
// The quotient is below 2^63 / 1 and is only compared with a 32-bit number: what a float cannot represent is beyond it.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn jump(shard: i64, key: u64) -> i64 {
    let factor = (1_i64 << 31) as f64 / ((key >> 33) + 1) as f64;
    ((shard + 1) as f64 * factor) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(count: u32) -> NonZeroU32 {
        NonZeroU32::new(count).expect("not zero")
    }

    fn uids() -> impl Iterator<Item = String> {
        (0..10_000).map(|at| format!("3f2b6c1e-0000-4000-8000-{at:012x}"))
    }

    #[test]
    fn the_shard_of_an_object_never_changes() {
        let shards = |uid: &str| [1, 3, 9, 1000].map(|shards| shard_of(uid, count(shards)));
        assert_eq!(
            shards("3f2b6c1e-0000-4000-8000-000000000000"),
            [0, 2, 5, 407]
        );
        assert_eq!(
            shards("c56a4180-65aa-42ec-a945-5fd21dec0538"),
            [0, 2, 8, 329]
        );
        assert_eq!(shards(""), [0, 1, 1, 266]);
    }

    #[test]
    fn objects_are_spread_evenly() {
        for shards in [2, 3, 9, 64] {
            let mut objects = vec![0_u32; shards as usize];
            for uid in uids() {
                objects[shard_of(&uid, count(shards)) as usize] += 1;
            }
            let mean = 10_000 / shards;
            // Five standard deviations of a binomial distribution are below this.
            let tolerance = 5 * mean.isqrt() + 5;
            for objects in objects {
                assert!(objects.abs_diff(mean) < tolerance, "{objects} of {mean}");
            }
        }
    }

    #[test]
    fn a_further_shard_takes_objects_from_all_others_and_moves_no_other_object() {
        for uid in uids() {
            let (before, after) = (shard_of(&uid, count(9)), shard_of(&uid, count(10)));
            assert!(before == after || after == 9, "{uid}: {before} {after}");
        }
    }
}

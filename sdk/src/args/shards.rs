//! Number of shards.

use std::num::NonZeroU32;

/// Maximum number of shards. Each has a Lease, which costs its holder a call to the API server each second.
const MAX: u32 = 256;

/// Parses a number of shards.
pub(crate) fn shard_count(text: &str) -> Result<NonZeroU32, String> {
    let count = text.parse().ok().filter(|count| *count <= MAX);
    count
        .and_then(NonZeroU32::new)
        .ok_or_else(|| format!("must be a number from 1 to {MAX}"))
}

#[cfg(test)]
mod tests {
    use super::shard_count;

    #[test]
    fn a_number_of_shards_is_limited() {
        assert_eq!(shard_count("1").map(u32::from), Ok(1));
        assert_eq!(shard_count("256").map(u32::from), Ok(256));
        for text in ["", "0", "257", "-1", "many"] {
            assert_eq!(
                shard_count(text),
                Err("must be a number from 1 to 256".to_owned())
            );
        }
    }
}

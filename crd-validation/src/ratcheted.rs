//! Ratcheted errors of an object as they are stored: the first of them in full, and all of them in a filter of bounded size.

use std::collections::BTreeSet;
use std::hash::Hasher;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use crate::bounded::MAX_REPORTED;
use crate::field::path::FieldPath;
use crate::violation::RatchetedViolation;

/// Ratcheted errors of an object.
///
/// # Guarantees
///
/// [`contains`](Self::contains) returns true for each of them, however many there are: whether an object is valid does not
/// depend on a bound. The size is bounded: if there are more than [`MAX_REPORTED`], all of them are in a
/// [filter](RatchetedFilter).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RatchetedViolations {
    /// The first ones in their order, at most [`MAX_REPORTED`].
    #[serde(rename = "ratcheted", default, skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<RatchetedViolation>,
    /// All of them, if some are not listed.
    #[serde(
        rename = "ratchetedFilter",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub filter: Option<RatchetedFilter>,
}

impl RatchetedViolations {
    /// Creates the stored form of the ratcheted errors with these identities. `shown` are those errors that were kept.
    pub fn new(all: Identities, shown: impl IntoIterator<Item = RatchetedViolation>) -> Self {
        let shown: BTreeSet<_> = shown.into_iter().collect();
        let listed: Vec<_> = shown.into_iter().take(MAX_REPORTED).collect();
        let filter = (all.len() != Some(listed.len())).then(|| all.into_filter());
        Self { listed, filter }
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.filter.is_none()
    }

    /// Returns true if an error is among them. If it is not, the result is nevertheless true with the small probability
    /// of a [filter](RatchetedFilter).
    #[must_use]
    pub fn contains(&self, rule: &str, at: &FieldPath, inputs: u64) -> bool {
        if let Some(filter) = &self.filter {
            return filter.contains(identity(rule, at, inputs));
        }
        let mut of_rule = self.listed.iter().filter(|known| known.is_of_rule(rule));
        of_rule.any(|known| *known == RatchetedViolation::new(rule, at, inputs))
    }
}

/// Returns the fingerprint of the identity of an error. It is stored in the cluster, so the algorithm must never change.
#[must_use]
pub fn identity(rule: &str, at: &FieldPath, inputs: u64) -> u64 {
    let mut hasher = fnv::FnvHasher::default();
    for part in [rule.as_bytes(), at.as_str().as_bytes()] {
        hasher.write(part);
        hasher.write_u8(0);
    }
    hasher.write(&inputs.to_le_bytes());
    // Every bit of the result depends on all bits of the hash: the finalizer of SplitMix64.
    let hash = hasher.finish();
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Identities of any number of errors, in bounded memory.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    /// At most [`MAX_EXACT`]. Empty if there are more.
    exact: BTreeSet<u64>,
    /// All of them, if there are more.
    filter: Option<RatchetedFilter>,
}

/// Maximum number of identities that are collected one by one. A filter of the largest size has 32 bits for each of them.
const MAX_EXACT: usize = 8 * MAX_FILTER_BYTES / 32;

impl Identities {
    /// Adds an identity.
    pub fn insert(&mut self, identity: u64) {
        if let Some(filter) = &mut self.filter {
            return filter.insert(identity);
        }
        self.exact.insert(identity);
        if self.exact.len() > MAX_EXACT {
            let all = std::mem::take(&mut self.exact);
            self.filter = Some(RatchetedFilter::with_all(MAX_FILTER_BYTES, &all));
        }
    }

    /// Adds other identities.
    pub fn append(&mut self, mut other: Self) {
        // The cost is that of the smaller set, which has a filter only if both have one.
        let size = |all: &Self| (all.filter.is_some(), all.exact.len());
        if size(&other) > size(self) {
            std::mem::swap(self, &mut other);
        }
        if let Some((filter, other)) = self.filter.as_mut().zip(other.filter) {
            filter.append(&other);
        }
        for identity in other.exact {
            self.insert(identity);
        }
    }

    /// Returns the number of identities, if it is known.
    fn len(&self) -> Option<usize> {
        self.filter.is_none().then_some(self.exact.len())
    }

    fn into_filter(self) -> RatchetedFilter {
        self.filter.unwrap_or_else(|| {
            let bits = (64 * self.exact.len()).next_power_of_two();
            RatchetedFilter::with_all((bits / 8).min(MAX_FILTER_BYTES), &self.exact)
        })
    }
}

/// Maximum length of a filter.
const MAX_FILTER_BYTES: usize = 32 << 10;

/// Maximum length of a filter as text.
pub const MAX_FILTER_TEXT_BYTES: usize = MAX_FILTER_BYTES.div_ceil(3) * 4;

/// Number of bits of a filter that are set for each identity.
const PROBES: u64 = 8;

/// Bloom filter of identities of errors.
///
/// # Guarantees
///
/// Each identity that was added is found. Another one is found with a probability of less than 10⁻⁷ up to 4,000 identities,
/// 10⁻⁵ up to 8,000 and 0.1 up to 40,000.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RatchetedFilter {
    /// A power of two, at most [`MAX_FILTER_BYTES`].
    bytes: Vec<u8>,
}

impl RatchetedFilter {
    fn with_all(bytes: usize, identities: &BTreeSet<u64>) -> Self {
        let mut filter = Self {
            bytes: vec![0; bytes],
        };
        for identity in identities {
            filter.insert(*identity);
        }
        filter
    }

    fn insert(&mut self, identity: u64) {
        for bit in self.bits(identity) {
            self.bytes[bit / 8] |= 1 << (bit % 8);
        }
    }

    fn contains(&self, identity: u64) -> bool {
        let mut bits = self.bits(identity);
        bits.all(|bit| self.bytes[bit / 8] & (1 << (bit % 8)) != 0)
    }

    /// Adds the identities of a filter of the same length.
    fn append(&mut self, other: &Self) {
        for (byte, more) in self.bytes.iter_mut().zip(&other.bytes) {
            *byte |= more;
        }
    }

    /// Returns the bits of an identity, by two hashes: Kirsch and Mitzenmacher, "Less Hashing, Same Performance".
    fn bits(&self, identity: u64) -> impl Iterator<Item = usize> + use<> {
        let mask = 8 * self.bytes.len() as u64 - 1;
        let (start, step) = (identity & 0xffff_ffff, identity >> 32 | 1);
        let bits = (0..PROBES).map(move |probe| (start + probe * step) & mask);
        bits.map(|bit| usize::try_from(bit).unwrap_or_default())
    }
}

impl From<RatchetedFilter> for String {
    fn from(filter: RatchetedFilter) -> Self {
        BASE64_STANDARD.encode(filter.bytes)
    }
}

impl TryFrom<String> for RatchetedFilter {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let bytes = BASE64_STANDARD.decode(text).unwrap_or_default();
        let is_filter = bytes.len().is_power_of_two() && bytes.len() <= MAX_FILTER_BYTES;
        is_filter.then_some(Self { bytes }).ok_or("no filter")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(index: usize) -> FieldPath {
        FieldPath::new("spec.tags").index(index)
    }

    /// Returns what is stored of this many errors, of which as many are kept as in a report, and how many others than these
    /// are found in it, of a hundred thousand.
    fn stored(count: usize) -> (RatchetedViolations, usize) {
        let mut all = Identities::default();
        // As the errors of parts of an object are put together.
        for part in (0..count).collect::<Vec<_>>().chunks(7) {
            let mut identities = Identities::default();
            for index in part {
                identities.insert(identity("rule", &path(*index), 1));
            }
            all.append(identities);
        }
        let shown = (0..count.min(MAX_REPORTED)).map(path);
        let shown = shown.map(|at| RatchetedViolation::new("rule", &at, 1));
        let stored = RatchetedViolations::new(all, shown);
        let text = serde_json::to_string(&stored).expect("JSON");
        let stored: RatchetedViolations = serde_json::from_str(&text).expect("what was written");
        for index in 0..count {
            assert!(stored.contains("rule", &path(index), 1), "{index}");
        }
        let others = (0..100_000).filter(|index| stored.contains("rule", &path(*index), 2));
        let others = others.count();
        (stored, others)
    }

    #[test]
    fn each_ratcheted_error_is_recognized_and_another_one_is_not() {
        for (count, bytes) in [
            (1, 0),
            (MAX_REPORTED, 0),
            (MAX_REPORTED + 1, 1 << 10),
            (150, 2 << 10),
            (2_000, 16 << 10),
            (MAX_EXACT, MAX_FILTER_BYTES),
            (MAX_EXACT + 1, MAX_FILTER_BYTES),
        ] {
            let (stored, others) = stored(count);
            assert_eq!(stored.listed.len(), count.min(MAX_REPORTED));
            let filter = stored.filter.map_or(0, |filter| filter.bytes.len());
            assert_eq!((filter, others <= 3), (bytes, true), "{count}: {others}");
        }
    }

    #[test]
    fn of_very_many_ratcheted_errors_each_one_is_recognized_and_the_size_is_bounded() {
        let (stored, others) = stored(40_000);
        let text = String::from(stored.filter.expect("a filter"));
        assert_eq!(text.len(), MAX_FILTER_TEXT_BYTES);
        assert!(others < 10_000, "{others}");
    }

    #[test]
    fn what_is_stored_does_not_depend_on_the_order_in_which_errors_are_found() {
        for count in [200, MAX_EXACT, MAX_EXACT + 100, 3 * MAX_EXACT] {
            let identities: Vec<_> = (0..count).map(|at| identity("", &path(at), 1)).collect();
            let mut rising = Identities::default();
            let mut falling = Identities::default();
            for identity in &identities {
                rising.insert(*identity);
            }
            for part in identities.chunks(count / 2).rev() {
                let mut some = Identities::default();
                for identity in part.iter().rev() {
                    some.insert(*identity);
                }
                falling.append(some);
            }
            assert_eq!(rising.into_filter(), falling.into_filter(), "{count}");
        }
    }

    #[test]
    fn a_text_that_is_no_filter_is_an_error() {
        for text in ["", "?", "AAAA", &"A".repeat(MAX_FILTER_TEXT_BYTES * 2)] {
            assert!(RatchetedFilter::try_from(text.to_owned()).is_err());
        }
        assert!(RatchetedFilter::try_from("AAA=".to_owned()).is_ok());
    }
}

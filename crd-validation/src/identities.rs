//! Identities of any number of errors, in bounded memory.

use std::collections::BTreeSet;
use std::hash::Hasher;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use crate::field::path::FieldPath;

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
pub(crate) const MAX_EXACT: usize = 8 * MAX_FILTER_BYTES / 32;

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
    pub(crate) fn len(&self) -> Option<usize> {
        self.filter.is_none().then_some(self.exact.len())
    }

    pub(crate) fn into_filter(self) -> RatchetedFilter {
        self.filter.unwrap_or_else(|| {
            let bits = (64 * self.exact.len()).next_power_of_two();
            RatchetedFilter::with_all((bits / 8).min(MAX_FILTER_BYTES), &self.exact)
        })
    }
}

/// Maximum length of a filter.
pub(crate) const MAX_FILTER_BYTES: usize = 32 << 10;

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
    pub(crate) bytes: Vec<u8>,
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

    pub(crate) fn contains(&self, identity: u64) -> bool {
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

//! Language of a version of Vector, as far as it differs from that of the compiler.

use serde::{Deserialize, Serialize};

/// Functions that VRL has got after Vector 0.40, with the minor version of Vector 0.x that has them first: from the functions
/// that each release of Vector, and the VRL in its lock file, define.
const SINCE: [(&str, u32); 36] = [
    ("aggregate_vector_metrics", 53),
    ("basename", 51),
    ("camelcase", 41),
    ("crc", 44),
    ("decode_charset", 44),
    ("decode_lz4", 46),
    ("decrypt_ip", 50),
    ("dirname", 51),
    ("encode_charset", 44),
    ("encode_csv", 55),
    ("encode_lz4", 46),
    ("encrypt_ip", 50),
    ("find_vector_metrics", 53),
    ("from_entries", 55),
    ("get_vector_metric", 53),
    ("haversine", 49),
    ("http_request", 50),
    ("kebabcase", 41),
    ("object_from_array", 44),
    ("parse_bytes", 44),
    ("parse_cbor", 44),
    ("parse_dnstap", 44),
    ("parse_influxdb", 41),
    ("parse_yaml", 54),
    ("pascalcase", 41),
    ("pop", 50),
    ("screamingsnakecase", 41),
    ("shannon_entropy", 45),
    ("snakecase", 41),
    ("split_path", 51),
    ("to_entries", 55),
    ("to_syslog_facility_code", 45),
    ("unflatten", 41),
    ("validate_json_schema", 49),
    ("xxhash", 50),
    ("zip", 44),
];

/// Language of a minor version of Vector 0.x.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Language {
    vector: u32,
}

impl Language {
    /// Language of the compiler.
    pub const NEWEST: Self = Self { vector: u32::MAX };

    /// Returns the language of Vector 0.`minor`.
    #[must_use]
    pub const fn of_vector(minor: u32) -> Self {
        Self { vector: minor }
    }

    /// Returns true if the compiler takes the result of `round` for an integer, as before VRL 0.35, also where a program gets a
    /// float.
    pub(crate) fn rounds_to_integers(self) -> bool {
        self.vector < 58
    }

    /// Returns the minor version that has a function first, if this one does not have it.
    pub(crate) fn lacks(self, function: &str) -> Option<u32> {
        let mut all = SINCE.iter();
        let (_, since) = all.find(|(name, _)| *name == function)?;
        Some(*since).filter(|since| self.vector < *since)
    }
}

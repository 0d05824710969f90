//! Filters of enrichment tables in memory, which Vector has from 0.58 on. The numbers are those of its libraries, `cuckoo-clock`
//! 0.2.7 and `bloomy` 1.2.0.

use lockstep_shared_validation::{FieldError, FieldPath};
use serde_json::Value;

use crate::diagnostic::{Check, DiagnosticList};

/// Options that a `bloom` filter does not have, with the only value that Vector accepts beside it.
const NOT_OF_BLOOM: [(&str, Option<u64>); 3] = [
    ("ttl", Some(600)),
    ("ttl_field", None),
    ("scan_interval", Some(30)),
];

/// Default lifetime of an entry and interval between two scans, in seconds.
const TTL: u64 = 600;
const SCAN_INTERVAL: u64 = 30;

/// Default number of bits of each field of an entry, and the maximum.
const BITS: u64 = 8;
const MAX_BITS: u64 = 32;

/// Default number of entries in a bucket of a `cuckoo` filter.
const BUCKET_SIZE: u64 = 4;

/// Bytes of a `cuckoo` filter, and of each bucket, besides its entries.
const FILTER_BYTES: u64 = 368;
const BUCKET_BYTES: u64 = 32;

/// Bits of a `bloom` filter for each entry: -ln(0.01) / ln(2)².
const BLOOM_BITS: f64 = 9.585_058_377_367_439;

/// Table with a filter.
struct Table<'a> {
    path: &'a FieldPath,
    options: &'a Value,
    filter: &'a Value,
}

/// Validates the filter of a table.
pub(super) fn validate(path: &FieldPath, table: &Value, problems: &mut DiagnosticList) {
    if !table["source_config"].is_null() {
        let detail = "cannot be set beside `filter`: a filter does not have the values of a source";
        forbid(path.child("source_config"), detail, problems);
    }
    let table = Table {
        path,
        options: table,
        filter: &table["filter"],
    };
    match table.filter["type"].as_str() {
        Some("bloom") => table.validate_bloom(problems),
        Some("cuckoo") => table.validate_cuckoo(problems),
        _ => {}
    }
}

fn forbid(path: FieldPath, detail: &str, problems: &mut DiagnosticList) {
    problems.add(Check::StartUp, FieldError::forbidden(path, detail));
}

impl Table<'_> {
    fn validate_bloom(&self, problems: &mut DiagnosticList) {
        for (option, allowed) in NOT_OF_BLOOM {
            let value = &self.options[option];
            let is_allowed = allowed.is_some() && value.as_u64() == allowed;
            if !value.is_null() && !is_allowed {
                let detail = "cannot be set beside a `bloom` filter, which forgets nothing";
                forbid(self.path.child(option), detail, problems);
            }
        }
        if let Some(entries) = self.filter["max_entries"].as_u64() {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_precision_loss,
                clippy::cast_sign_loss
            )]
            let bits = (entries as f64 * BLOOM_BITS).ceil() as u64;
            self.validate_size(bits.div_ceil(8), problems);
        }
    }

    fn validate_cuckoo(&self, problems: &mut DiagnosticList) {
        let is = |option: &str, default| self.filter[option].as_bool().unwrap_or(default);
        let mut fields = vec![("fingerprint_bits", 0, "")];
        if is("lru_enabled", false) {
            for option in ["lru_starting_value", "lru_increment"] {
                fields.push(("lru_bits", self.filter_number(option, 1), option));
            }
        }
        if is("ttl_enabled", true) {
            let ttl = self.options["ttl"].as_u64().unwrap_or(TTL);
            let scan_interval = self.options["scan_interval"]
                .as_u64()
                .unwrap_or(SCAN_INTERVAL);
            let scans = ttl.div_ceil(scan_interval.max(1)).max(1);
            fields.push(("ttl_bits", scans, "ttl / scan_interval"));
        }
        if is("counter_enabled", false) {
            fields.push(("counter_bits", 0, ""));
        }
        fields.dedup_by(|next, first| next.0 == first.0 && next.1 <= first.1);
        let mut entry_bits = 0;
        let mut last = "";
        for (option, value, of) in fields {
            let bits = self.filter_number(option, BITS);
            let needed = u64::from(value.checked_ilog2().map_or(1, |log| log + 1));
            let path = self.path.child("filter").child(option);
            if bits > MAX_BITS {
                let detail = format!("must be at most {MAX_BITS}");
                problems.add(Check::StartUp, FieldError::invalid(path, bits, detail));
            } else if needed > bits {
                let detail = format!("must be at least {needed}, for the value {value} of `{of}`");
                problems.add(Check::StartUp, FieldError::invalid(path, bits, detail));
            }
            if option != last {
                entry_bits += bits.min(MAX_BITS);
                last = option;
            }
        }
        let bucket_size = self.filter_number("bucket_size", BUCKET_SIZE).max(1);
        let entries = self.filter_number("max_entries", 0);
        let size = entries.div_ceil(bucket_size).checked_next_power_of_two();
        let size = size.and_then(|buckets| {
            let entries = bucket_size.checked_mul(entry_bits.div_ceil(8))?;
            buckets.checked_mul(entries.checked_add(BUCKET_BYTES)?)
        });
        let size = size.map(|size| size.saturating_add(FILTER_BYTES));
        match size.filter(|size| i64::try_from(*size).is_ok()) {
            Some(size) => self.validate_size(size, problems),
            None => {
                let path = self.path.child("filter").child("max_entries");
                let detail = "no memory has room for so many entries: Vector ends at start";
                problems.add(Check::StartUp, FieldError::invalid(path, entries, detail));
            }
        }
    }

    fn filter_number(&self, option: &str, default: u64) -> u64 {
        self.filter[option].as_u64().unwrap_or(default)
    }

    /// Validates that a filter of this size, in bytes, is not larger than the table may be.
    fn validate_size(&self, size: u64, problems: &mut DiagnosticList) {
        let max = self.options["max_byte_size"].as_u64();
        if let Some(max) = max.filter(|max| size > *max) {
            let path = self.path.child("max_byte_size");
            let detail = format!("must be at least {size}, the size of the filter");
            problems.add(Check::StartUp, FieldError::invalid(path, max, detail));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(table: &Value) -> Vec<String> {
        let mut problems = DiagnosticList::default();
        validate(&FieldPath::new("t"), table, &mut problems);
        let found = problems.into_diagnostics().into_iter();
        found
            .map(|problem| problem.error.path.to_string())
            .collect()
    }

    #[test]
    fn the_bits_of_a_filter_hold_its_numbers() {
        let none = [""; 0];
        let cuckoo = |options: Value| {
            let mut filter = json!({"type": "cuckoo", "max_entries": 100});
            filter
                .as_object_mut()
                .expect("an object")
                .extend(options.as_object().cloned().expect("options"));
            refused(&json!({"filter": filter}))
        };
        assert_eq!(cuckoo(json!({})), none);
        assert_eq!(
            cuckoo(json!({"fingerprint_bits": 33})),
            ["t.filter.fingerprint_bits"]
        );
        assert_eq!(cuckoo(json!({"fingerprint_bits": 32})), none);
        // 600 s at 30 s are 20 scans.
        assert_eq!(cuckoo(json!({"ttl_bits": 4})), ["t.filter.ttl_bits"]);
        assert_eq!(cuckoo(json!({"ttl_bits": 5})), none);
        assert_eq!(cuckoo(json!({"ttl_bits": 4, "ttl_enabled": false})), none);
        assert_eq!(cuckoo(json!({"lru_bits": 40})), none);
        let lru = |start: u64| cuckoo(json!({"lru_enabled": true, "lru_starting_value": start}));
        assert_eq!(lru(255), none);
        assert_eq!(lru(256), ["t.filter.lru_bits"]);
        assert_eq!(
            cuckoo(json!({"counter_enabled": true, "counter_bits": 33})),
            ["t.filter.counter_bits"]
        );
        assert_eq!(
            cuckoo(json!({"max_entries": u64::MAX})),
            ["t.filter.max_entries"]
        );
    }

    /// The sizes are those that the libraries of Vector compute.
    #[test]
    fn a_filter_is_not_larger_than_its_table() {
        let table = |filter: &Value, size: u64| {
            refused(&json!({"max_byte_size": size, "filter": filter})).is_empty()
        };
        for (entries, bucket, size) in [
            (1, 4, 408),
            (100, 4, 1648),
            (1000, 3, 19_824),
            (100_000, 8, 786_800),
        ] {
            let filter = json!({"type": "cuckoo", "max_entries": entries, "bucket_size": bucket});
            assert!(
                table(&filter, size) && !table(&filter, size - 1),
                "{filter}"
            );
        }
        for (entries, size) in [(1, 2), (1000, 1199), (1_000_000, 1_198_133)] {
            let filter = json!({"type": "bloom", "max_entries": entries});
            assert!(
                table(&filter, size) && !table(&filter, size - 1),
                "{filter}"
            );
        }
    }
}

//! CRD status file: the observed CRDs of all kinds, with an expiration time.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use lockstep_shared_validation::{CrdMatch, Validator};
use serde::{Deserialize, Serialize};

/// Observed state of one CRD.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrdStatus {
    /// Fingerprint of the parts of the CRD that affect validation: [`lockstep_shared_validation::crd_fingerprint`].
    pub crd: String,
    /// If true, the CRD has not changed for the propagation delay, so every API server uses it.
    pub propagated: bool,
}

/// Observed CRDs of all kinds, with an expiration time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrdStatusReport {
    /// Expiration time, in seconds since 1970.
    pub until: u64,
    /// Observed CRDs by kind and group, such as `Widget.example.com`.
    pub kinds: BTreeMap<String, CrdStatus>,
}

impl CrdStatusReport {
    /// Maximum validity of a report.
    pub const TTL: Duration = Duration::from_secs(30);

    /// Returns the key of a kind in `kinds`.
    #[must_use]
    pub fn name(ruleset: &dyn Validator) -> String {
        format!("{}.{}", ruleset.kind(), ruleset.group())
    }

    /// Returns the CRD status of a kind, given the fingerprint of the compiled CRD.
    #[must_use]
    pub fn of(&self, name: &str, ours: &str) -> CrdMatch {
        match self.kinds.get(name) {
            Some(seen) if seen.crd != ours => CrdMatch::Different,
            Some(seen) if seen.propagated => CrdMatch::Same,
            None | Some(_) => CrdMatch::Unknown,
        }
    }

    /// Reads a report from a file. A file that cannot be read yields an empty report, which has expired.
    #[must_use]
    pub fn read(file: &Path) -> Self {
        let text = fs::read(file).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Writes the report to a file atomically.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory)?;
        }
        let partial = file.with_extension("partial");
        fs::write(&partial, serde_json::to_vec(self)?)?;
        fs::rename(partial, file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written_and_a_missing_file_is_an_expired_report() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("run/crds.json");
        assert_eq!(CrdStatusReport::read(&file), CrdStatusReport::default());
        assert_eq!(CrdStatusReport::default().until, 0);
        let status = CrdStatus {
            crd: "0123456789abcdef".to_owned(),
            propagated: true,
        };
        let report = CrdStatusReport {
            until: 1_790_000_000,
            kinds: [("Widget.example.com".to_owned(), status)].into(),
        };
        report.write(&file).expect("the file is written");
        assert_eq!(CrdStatusReport::read(&file), report);
    }
}

//! CRD status: comparison of the CRD in the cluster with the compiled one. A process that may read the CRD from
//! the cluster reports it.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::format::go_fmt;
use crate::ruleset::Validator;

/// CRD status, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrdMatch {
    /// The CRD in the cluster is unknown. All layers are evaluated and deny.
    #[default]
    Unknown,
    /// The CRD equals the compiled one, and every API server uses it. The API server has just evaluated the
    /// schema and the CEL rules, so they need not be evaluated again.
    Same,
    /// The CRD is that of another release. Errors of the compiled schema and CEL rules are warnings.
    Different,
}

/// Observed state of one CRD.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrdStatus {
    /// Fingerprint of the parts of the CRD that affect validation.
    pub crd: String,
    /// If true, the CRD has not changed for the propagation delay, so every API server uses it.
    pub propagated: bool,
}

impl CrdStatus {
    /// Computes the fingerprint of a CRD: all parts that affect the validation of one version.
    #[must_use]
    pub fn fingerprint(crd: &Value, version: &str) -> String {
        let versions = crd["spec"]["versions"].as_array();
        let version = versions
            .into_iter()
            .flatten()
            .find(|one| one["name"] == version);
        let validated = json!([
            crd["spec"]["scope"],
            crd["spec"]["preserveUnknownFields"]
                .as_bool()
                .unwrap_or(false),
            version.map(|version| [&version["schema"], &version["subresources"]]),
        ]);
        let mut hasher = fnv::FnvHasher::default();
        hasher.write(go_fmt::json(&validated).as_bytes());
        format!("{:016x}", hasher.finish())
    }
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
    pub const LIFE: Duration = Duration::from_secs(30);

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
}

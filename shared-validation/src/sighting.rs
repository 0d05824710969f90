//! How the CRD in the cluster compares with the one that is compiled here, as somebody has seen it who may
//! look.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::go;
use crate::ruleset::Validator;

/// What is known of the CRD that the API server judges by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrdMatch {
    /// Nothing: every layer judges, and refuses.
    #[default]
    Unknown,
    /// It is exactly the one that is compiled here, and every API server knows it: what it says has just
    /// been judged.
    Same,
    /// It is another one, another release's: what the one compiled here says is advice.
    Different,
}

/// One CRD as it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrdStatus {
    /// The fingerprint of what it judges by.
    pub crd: String,
    /// Whether it has been like that for long enough that every API server knows.
    pub propagated: bool,
}

impl CrdStatus {
    /// What a CRD is told by: all that a version of it judges by.
    #[must_use]
    pub fn fingerprint(crd: &Value, version: &str) -> String {
        let versions = crd["spec"]["versions"].as_array();
        let version = versions
            .into_iter()
            .flatten()
            .find(|one| one["name"] == version);
        let judged = json!([
            crd["spec"]["scope"],
            crd["spec"]["preserveUnknownFields"]
                .as_bool()
                .unwrap_or(false),
            version.map(|version| [&version["schema"], &version["subresources"]]),
        ]);
        let mut hasher = fnv::FnvHasher::default();
        hasher.write(go::json(&judged).as_bytes());
        format!("{:016x}", hasher.finish())
    }
}

/// The CRDs of all kinds as they were seen, for as long as that is worth anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrdStatusReport {
    /// Until when, in seconds since 1970.
    pub until: u64,
    /// Each by kind and group, such as `Widget.example.com`.
    pub kinds: BTreeMap<String, CrdStatus>,
}

impl CrdStatusReport {
    /// The longest time for which anybody is believed.
    pub const LIFE: Duration = Duration::from_secs(30);

    /// What a kind is called in it.
    #[must_use]
    pub fn name(ruleset: &dyn Validator) -> String {
        format!("{}.{}", ruleset.kind(), ruleset.group())
    }

    /// How the CRD of that kind compares with ours, by its fingerprint.
    #[must_use]
    pub fn of(&self, name: &str, ours: &str) -> CrdMatch {
        match self.kinds.get(name) {
            Some(seen) if seen.crd != ours => CrdMatch::Different,
            Some(seen) if seen.propagated => CrdMatch::Same,
            None | Some(_) => CrdMatch::Unknown,
        }
    }
}

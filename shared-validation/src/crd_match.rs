//! CRD match: comparison of the CRD in the cluster with the compiled one. A process that may read the CRD from the
//! cluster reports it.

use std::hash::Hasher;

use serde_json::{Value, json};

use crate::format::go_fmt;

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

/// Computes the fingerprint of a CRD: all parts that affect the validation of one version.
#[must_use]
pub fn crd_fingerprint(crd: &Value, version: &str) -> String {
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

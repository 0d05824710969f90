//! Versions of CRDs in files.

use std::sync::{Arc, OnceLock};

use lockstep_shared_validation::{CrdValidator, Validator};
use serde_json::Value;

/// Served version of a CRD in a file. It is compiled for its first object: a CRD that cannot be used stops no other one.
pub(crate) struct GivenVersion {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) version: String,
    crd: Arc<Value>,
    /// Name of the file.
    source: String,
    compiled: OnceLock<Result<CrdValidator, String>>,
}

impl GivenVersion {
    pub(crate) fn all_of(crd: Value, source: &str) -> Vec<Self> {
        let crd = Arc::new(crd);
        let text = |pointer: &str| {
            let text = crd.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
        let served = versions.into_iter().flatten();
        let served = served.filter(|version| version["served"] != false);
        let names = served.filter_map(|version| version["name"].as_str());
        let versions = names.map(|version| Self {
            group: text("/spec/group"),
            kind: text("/spec/names/kind"),
            version: version.to_owned(),
            crd: Arc::clone(&crd),
            source: source.to_owned(),
            compiled: OnceLock::new(),
        });
        versions.collect()
    }

    pub(crate) fn compiled(&self) -> Result<&dyn Validator, String> {
        let compiled = self.compiled.get_or_init(|| {
            CrdValidator::compile(&self.crd, &self.version)
                .map_err(|error| format!("the CRD in {} cannot be used: {error}", self.source))
        });
        match compiled {
            Ok(validator) => Ok(validator),
            Err(error) => Err(error.clone()),
        }
    }
}

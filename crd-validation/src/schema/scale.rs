//! Scale subresource of a CRD.

use serde_json::Value;

/// Paths of the fields that the scale subresource shows.
pub(crate) struct Scale {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) label_selector: Option<String>,
}

impl Scale {
    /// Reads the paths from one version of a CRD, which may have no scale subresource.
    pub(crate) fn of(version: &Value) -> Option<Self> {
        let scale = version.pointer("/subresources/scale")?.as_object()?;
        let path = |name: &str| Some(scale.get(name)?.as_str()?.to_owned());
        Some(Self {
            spec_replicas: path("specReplicasPath")?,
            status_replicas: path("statusReplicasPath")?,
            label_selector: path("labelSelectorPath"),
        })
    }

    /// Returns the fields and the type that each must have.
    pub(crate) fn demands(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let count = "an integer from 0 to 2147483647";
        [
            Some((&self.spec_replicas, count)),
            Some((&self.status_replicas, count)),
            self.label_selector.as_ref().map(|path| (path, "a string")),
        ]
        .into_iter()
        .flatten()
        .map(|(path, demand)| (path.trim_start_matches('.'), demand))
    }
}

//! Configuration that is published now.

use std::collections::BTreeMap;

use lockstep_vector_assembly::{PipelineKey, PipelinePart, SecretValues};

/// Configuration that is published, with the values of its Secrets.
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) parts: BTreeMap<PipelineKey, PipelinePart>,
    pub(crate) values: SecretValues,
    /// If true, something runs that is not recorded: another operator has published it, or the record is lost.
    pub(crate) is_unknown: bool,
}

impl Published {
    /// Returns the part that a pipeline last ran. None if a value that it then had is unknown.
    pub(crate) fn part(&self, pipeline: &PipelineKey) -> Option<&PipelinePart> {
        let part = self.parts.get(pipeline)?;
        let mut files = part.secrets.iter().map(|secret| &secret.file_name);
        files
            .all(|file| self.values.contains_key(file))
            .then_some(part)
    }
}

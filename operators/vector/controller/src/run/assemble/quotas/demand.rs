//! Amounts that a pipeline has, and those that it is to have.

use lockstep_vector_api::quota;
use lockstep_vector_api::usage::Usage;
use lockstep_vector_assembly::{PipelinePart, SecretValues};

use crate::run::collect::published::Published;

/// Amounts that a pipeline takes, or several together: those of [`RESOURCES`].
pub(super) type Amounts = [u64; RESOURCES.len()];

/// Resources, as a message names their amounts.
pub(super) const RESOURCES: [&str; 7] = [
    "pipelines",
    "components",
    "bytes of configuration",
    "bytes of Secrets",
    "bytes of memory",
    "bytes of disk",
    "connections",
];

/// Amounts of a pipeline that does not run.
pub(super) const NOTHING: Amounts = [0; RESOURCES.len()];

/// Place of the bytes of configuration among the resources.
pub(super) const CONFIGURATION: usize = 2;

/// Amounts that a pipeline has, and those that it is to have.
pub(super) struct Demand<'a> {
    pub(super) part: &'a PipelinePart,
    /// Part that runs.
    pub(super) published: Option<&'a PipelinePart>,
    pub(super) held: Amounts,
    pub(super) wanted: Amounts,
}

impl<'a> Demand<'a> {
    pub(super) fn new(
        part: &'a PipelinePart,
        values: &SecretValues,
        published: &'a Published,
    ) -> Self {
        let before = published.parts.get(&part.pipeline);
        let wanted = amounts(part, values);
        let held = match before {
            None => NOTHING,
            Some(before) if before == part && values == &published.values => wanted,
            Some(before) => amounts(before, &published.values),
        };
        Self {
            part,
            published: before,
            held,
            wanted,
        }
    }

    /// Returns what the pipeline may take until its change is published: it may fall back to what it has.
    pub(super) fn most(&self) -> Amounts {
        std::array::from_fn(|at| self.held[at].max(self.wanted[at]))
    }
}

pub(super) fn amounts(part: &PipelinePart, values: &SecretValues) -> Amounts {
    let Usage {
        components,
        memory_bytes,
        disk_bytes,
        connections,
        ..
    } = Usage::total(part.all_components());
    let files = part.secrets.iter();
    let files = files.filter_map(|secret| values.get(&secret.file_name));
    let secret_bytes: usize = files.map(Vec::len).sum();
    [
        1,
        components,
        quota::bytes(part.all_components()),
        u64::try_from(secret_bytes).unwrap_or(u64::MAX),
        memory_bytes,
        disk_bytes,
        connections,
    ]
}

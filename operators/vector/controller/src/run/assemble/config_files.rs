//! Files of a configuration.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_vector_api::WorkloadRole;
use lockstep_vector_assembly::{Assembly, PublicationLimits, TooLarge, publish};

use crate::owned;

/// Returns the files of a configuration. `present` are the numbers of those that the Pods read now.
///
/// # Errors
///
/// The configuration does not fit into Secrets.
pub(crate) fn files(
    role: WorkloadRole,
    assembly: &Assembly,
    is_compressed: bool,
    present: &BTreeSet<usize>,
) -> Result<BTreeMap<String, Vec<u8>>, TooLarge> {
    let stem = match role {
        WorkloadRole::Agent => "agent",
        WorkloadRole::Aggregator => "config",
    };
    let limits = PublicationLimits {
        // Compressed files are in one Secret, so that dividing the configuration gains nothing. Its size is checked later.
        max_file_bytes: if is_compressed {
            usize::MAX
        } else {
            owned::MAX_SECRET_BYTES
        },
        present,
    };
    publish(assembly, stem, limits)
}

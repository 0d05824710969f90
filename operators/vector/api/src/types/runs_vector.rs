//! The common interface of the kinds that run Vector.

use lockstep_shared_validation::ValidatedResource;
use serde::Serialize;

use crate::types::workload::Workload;

/// Kind that runs Vector.
pub(crate) trait RunsVector: ValidatedResource + Serialize {
    /// Path of the workload.
    const WORKLOAD: &'static str;

    /// Path of the image.
    const IMAGE: &'static [&'static str];

    /// Paths of the fields that turn interpolation on.
    const INTERPOLATION: &'static [&'static str];

    /// Returns the workload, if it is set.
    fn workload(&self) -> Option<&Workload>;
}

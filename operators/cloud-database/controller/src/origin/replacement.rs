//! Replacement of instances by new ones, which users request with an annotation.

use std::collections::BTreeSet;

use kube::ResourceExt;
use lockstep_cloud_database_api::{CloudDatabase, REPLACES_INSTANCE};

/// Returns the resource IDs of the instances that the user wants to have replaced by a new one.
pub(crate) fn replaced(object: &CloudDatabase) -> BTreeSet<&str> {
    let annotation = object.annotations().get(REPLACES_INSTANCE);
    let ids = annotation.map_or("", String::as_str).split(',');
    ids.map(str::trim).filter(|id| !id.is_empty()).collect()
}

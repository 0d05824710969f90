//! Replacement of instances by new ones, which users request with an annotation.

use std::collections::BTreeSet;

use cloud_database_rules::{CloudDatabase, REPLACES_INSTANCE};
use kube::ResourceExt;

/// Returns the resource IDs of the instances that the user wants to have replaced by a new one.
pub(crate) fn replaced(object: &CloudDatabase) -> BTreeSet<&str> {
    let annotation = object.annotations().get(REPLACES_INSTANCE);
    let ids = annotation.map_or("", String::as_str).split(',');
    ids.map(str::trim).filter(|id| !id.is_empty()).collect()
}

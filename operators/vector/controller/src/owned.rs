//! Owned objects: the Kubernetes objects that run Vector for a workload.
//!
//! ```text
//! workload + publication + cluster (+ observed workloads) ─► desired children
//! ```
//!
//! All functions are pure: they read no clock and send no request. The children are JSON without owner references and
//! without a status, as `lockstep-controller` expects them from a reconciler.
//!
//! Names, labels, mounts, arguments and defaults are those of the operator of kaasops, so that its users keep their
//! dashboards, `NetworkPolicies` and volumes. Where a child differs, it needs fewer permissions, or it is valid where the
//! one of that operator would be rejected.
//!
//! # Restarts
//!
//! Vector reloads its pipelines, so nothing of them is part of the Pod template, except for two cases: the first use and
//! the last use of a Secret, which adds or removes a mount, and the first use of the Kubernetes API by an aggregator,
//! which adds a token. The global options, which Vector does not reload, are represented by a checksum in an annotation.
//! [`Change`] tells which of both a reconciliation causes.
//!
//! # Fields without an effect
//!
//! - `podSecurityPolicyName`: Kubernetes 1.25 removed the API `PodSecurityPolicy`.
//! - `api.playground`: Vector 0.55 removed the playground.

mod autoscaler;
mod children;
mod cluster;
mod config_check;
mod config_reloader;
mod configuration_secret;
mod container;
mod daemon_set;
mod data_migration;
mod deployment;
mod disruption_budget;
mod dns_label;
mod environment;
mod event_collector;
mod fields;
mod image;
mod labels;
mod last_change;
mod load_report;
mod observed;
mod owned_types;
mod owned_workload;
mod persistence;
mod pod;
mod pod_monitor;
mod ports;
mod probes;
mod publication;
mod quantity;
mod rbac;
mod replicas;
mod resources;
mod secret_assets;
mod service;
mod stateful_set;
mod template_changes;
mod validator;
mod volumes;

#[cfg(test)]
mod tests;

pub use crate::owned::children::{OwnedObjects, OwnedObjectsError};
pub use crate::owned::cluster::{Cluster, ClusterScopedNames};
pub(crate) use crate::owned::config_check::{
    CONTAINER as CHECK_CONTAINER, FINGERPRINT as CHECK_FINGERPRINT, image as check_image,
    is_in_pods as is_checked_in_pods,
};
pub(crate) use crate::owned::configuration_secret::{
    MAX_BYTES as MAX_SECRET_BYTES, compressed_bytes, has_room_for_reports,
};
pub(crate) use crate::owned::data_migration::{
    image as migration_image, live_secrets, live_suffix,
};
pub(crate) use crate::owned::image::has_interpolation_flag;
pub(crate) use crate::owned::labels::of_pods as labels_of_pods;
pub use crate::owned::labels::{DATA_LAYOUT, DATA_MIGRATION, GLOBAL_OPTIONS_CHECKSUM};
pub use crate::owned::last_change::{Change, ChangeAction};
pub(crate) use crate::owned::load_report::lines as load_lines;
pub use crate::owned::observed::ObservedAggregator;
pub use crate::owned::owned_types::{granted_rules, owned_types};
pub use crate::owned::publication::{
    ConfigurationCheck, ControllerPods, MovedData, PreviousPublication, Publication, Validator,
};
pub(crate) use crate::owned::resources::memory_limit;
pub(crate) use crate::owned::service::service_name;
pub(crate) use crate::owned::validator::{name as validator_name, pod_labels as validator_labels};
pub(crate) use crate::owned::volumes::live_data_directory;

use kube::ResourceExt;
use lockstep_vector_api::{Aggregator, Workload, WorkloadKind};

use crate::owned::owned_workload::OwnedWorkload;

/// Returns the objects that a workload consists of. Those of a cluster-scoped one are in its `resourceNamespace`.
///
/// # Errors
///
/// There are no valid ones.
pub fn objects<K: WorkloadKind>(
    object: &K,
    publication: &Publication,
    cluster: &Cluster,
    observed: &ObservedAggregator<'_>,
) -> Result<OwnedObjects, OwnedObjectsError> {
    let default = Workload::default();
    let namespace = object.namespace_of_owned();
    let workload = OwnedWorkload {
        role: K::ROLE,
        name: object.name_any(),
        namespace: namespace.ok_or(OwnedObjectsError::NoNamespace)?.to_owned(),
        settings: object.workload().unwrap_or(&default),
        publication,
        cluster,
        check: None,
    };
    let mut objects = OwnedObjects::default();
    objects.extend(rbac::of_workload(&workload));
    objects.extend(configuration_secret::desired(&workload)?);
    objects.extend(secret_assets::desired(&workload)?);
    objects.extend(data_migration::secret(&workload)?);
    match object.aggregator() {
        None => {
            objects.extend(service::of_agent(&workload));
            objects.extend([daemon_set::desired(&workload)]);
        }
        Some(aggregator) => add_aggregator(&mut objects, &workload, aggregator, observed)?,
    }
    objects.extend(pod_monitor::desired(&workload));
    objects.extend(config_check::desired(&workload)?);
    objects.extend(validator::desired(&workload)?);
    Ok(objects)
}

/// Adds the objects that only aggregators have.
fn add_aggregator(
    objects: &mut OwnedObjects,
    workload: &OwnedWorkload<'_>,
    aggregator: &Aggregator,
    observed: &ObservedAggregator<'_>,
) -> Result<(), OwnedObjectsError> {
    let services = service::PipelineServices::new(workload);
    objects.notices.extend(services.notices.iter().cloned());
    objects.extend(service::of_aggregator(
        workload, aggregator, &services, observed,
    ));
    if aggregator.is_persistent() {
        let (stateful_set, notice) = stateful_set::desired(workload, aggregator, observed)?;
        objects.extend([stateful_set]);
        objects.notices.extend(notice);
    } else {
        objects.extend([deployment::desired(workload, aggregator, observed)]);
    }
    objects.extend(observed.predecessor(workload, aggregator));
    objects.extend(event_collector::desired(
        workload, aggregator, &services, observed,
    ));
    objects.extend(autoscaler::desired(workload, aggregator));
    objects.extend(disruption_budget::desired(workload, aggregator));
    Ok(())
}

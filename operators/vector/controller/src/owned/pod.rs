//! Pod templates.

use lockstep_vector_api::{Aggregator, Workload};
use serde_json::{Map, Value, json};

use crate::owned::fields::Fields;
use crate::owned::labels::GLOBAL_OPTIONS_CHECKSUM;
use crate::owned::owned_workload::{self, OwnedWorkload};
use crate::owned::{config_reloader, container, data_migration, volumes};

/// Returns the template of the Pods that run Vector. `aggregator` has the settings that only aggregators have;
/// `has_claim` is true if Vector's data directory is a `PersistentVolumeClaim`.
pub(crate) fn template(
    workload: &OwnedWorkload<'_>,
    aggregator: Option<&Aggregator>,
    has_claim: bool,
) -> Value {
    let mut annotations = workload.settings.annotations.clone();
    let hash = &workload.publication.roll_hash;
    if workload.publication.adopted_hash.as_ref() == Some(hash) {
        annotations.remove(GLOBAL_OPTIONS_CHECKSUM);
    } else {
        annotations.insert(GLOBAL_OPTIONS_CHECKSUM.to_owned(), hash.clone());
    }
    let mut containers = vec![container::desired(workload)];
    let mut init_containers: Vec<_> = data_migration::init_container(workload)
        .into_iter()
        .collect();
    if workload.is_compressed() {
        init_containers.push(config_reloader::init_container(workload));
        containers.push(config_reloader::sidecar(workload));
    }
    let mut volumes = volumes::desired(workload, has_claim);
    volumes.extend(data_migration::volume(workload));
    let spec = scheduling(workload.settings, aggregator)
        .with("serviceAccountName", workload.object_name())
        .with_some(
            "hostNetwork",
            workload.settings.host_network.filter(|is_set| *is_set),
        )
        .with_some(
            "terminationGracePeriodSeconds",
            workload.settings.termination_grace_period_seconds,
        )
        .with_some(
            "automountServiceAccountToken",
            workload.asks_for_token().then_some(true),
        )
        .with("volumes", volumes)
        .with_list("initContainers", init_containers)
        .with("containers", containers);
    Fields::new()
        .with(
            "metadata",
            owned_workload::metadata(&workload.labels(), &annotations),
        )
        .with("spec", spec)
        .into()
}

/// Returns the part of a Pod that is the same for Vector and for the event collector: where it runs, and as what. Only Vector gets
/// the network of the node: the event collector finds its receivers by the DNS of the cluster.
pub(crate) fn scheduling(settings: &Workload, aggregator: Option<&Aggregator>) -> Fields {
    let spread = aggregator.map(|aggregator| aggregator.topology_spread_constraints.clone());
    Fields::new()
        .with_some("securityContext", settings.pod_security_context.clone())
        .with_list("imagePullSecrets", unique(&settings.image_pull_secrets))
        .with_some("affinity", settings.affinity.clone())
        .with_list("topologySpreadConstraints", spread.unwrap_or_default())
        .with_text("runtimeClassName", settings.runtime_class_name.as_deref())
        .with_text("schedulerName", settings.scheduler_name.as_deref())
        .with_list("tolerations", settings.tolerations.clone())
        .with_some("nodeSelector", node_selector(settings))
        .with_text("priorityClassName", settings.priority_class_name.as_deref())
        .with_list("hostAliases", host_aliases(&settings.host_aliases))
}

fn node_selector(settings: &Workload) -> Option<Value> {
    (!settings.node_selector.is_empty()).then(|| json!(settings.node_selector))
}

/// Returns the items without duplicates, which server-side apply rejects.
fn unique(items: &[Map<String, Value>]) -> Vec<Map<String, Value>> {
    let mut unique: Vec<Map<String, Value>> = Vec::new();
    for item in items {
        if !unique.contains(item) {
            unique.push(item.clone());
        }
    }
    unique
}

/// Returns the host aliases with each address once, because server-side apply rejects a list with duplicates.
fn host_aliases(aliases: &[Map<String, Value>]) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for alias in aliases.iter().cloned().map(Value::Object) {
        let names = alias["hostnames"].as_array().cloned().unwrap_or_default();
        match merged.iter_mut().find(|it| it["ip"] == alias["ip"]) {
            Some(same) => {
                let all = same["hostnames"].as_array().into_iter().flatten();
                same["hostnames"] = all.cloned().chain(names).collect();
            }
            None => merged.push(alias),
        }
    }
    merged
}

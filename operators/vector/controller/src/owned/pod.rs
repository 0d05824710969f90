//! Pod templates.

use lockstep_vector_api::{Aggregator, Workload};
use serde_json::{Map, Value};

use crate::owned::fields::Fields;
use crate::owned::labels::GLOBAL_OPTIONS_CHECKSUM;
use crate::owned::runner::{self, Runner};
use crate::owned::{config_reloader, container, data_migration, volumes};

/// Returns the template of the Pods that run Vector. `aggregator` has the settings that only aggregators have;
/// `has_claim` is true if Vector's data directory is a `PersistentVolumeClaim`.
pub(crate) fn template(
    runner: &Runner<'_>,
    aggregator: Option<&Aggregator>,
    has_claim: bool,
) -> Value {
    let mut annotations = runner.workload.annotations.clone();
    let hash = &runner.publication.roll_hash;
    if runner.publication.adopted_hash.as_ref() == Some(hash) {
        annotations.remove(GLOBAL_OPTIONS_CHECKSUM);
    } else {
        annotations.insert(GLOBAL_OPTIONS_CHECKSUM.to_owned(), hash.clone());
    }
    let mut containers = vec![container::of(runner)];
    let mut init_containers: Vec<_> = data_migration::init_container(runner).into_iter().collect();
    if runner.is_compressed() {
        init_containers.push(config_reloader::init_container(runner));
        containers.push(config_reloader::sidecar(runner));
    }
    let mut volumes = volumes::of(runner, has_claim);
    volumes.extend(data_migration::volume(runner));
    let spec = scheduling(runner.workload, aggregator)
        .with("serviceAccountName", runner.object_name())
        .with_some(
            "automountServiceAccountToken",
            runner.asks_for_token().then_some(true),
        )
        .with("volumes", volumes)
        .with_list("initContainers", init_containers)
        .with("containers", containers);
    Fields::new()
        .with("metadata", runner::metadata(&runner.labels(), &annotations))
        .with("spec", spec)
        .into()
}

/// Returns the part of a Pod that is the same for Vector and for the event collector: where it runs, and as what.
pub(crate) fn scheduling(workload: &Workload, aggregator: Option<&Aggregator>) -> Fields {
    let spread = aggregator.map(|aggregator| aggregator.topology_spread_constraints.clone());
    Fields::new()
        .with_some("securityContext", workload.pod_security_context.clone())
        .with_list("imagePullSecrets", unique(&workload.image_pull_secrets))
        .with_some("affinity", workload.affinity.clone())
        .with_list("topologySpreadConstraints", spread.unwrap_or_default())
        .with_text("runtimeClassName", workload.runtime_class_name.as_deref())
        .with_text("schedulerName", workload.scheduler_name.as_deref())
        .with_list("tolerations", workload.tolerations.clone())
        .with_text("priorityClassName", workload.priority_class_name.as_deref())
        .with_some(
            "hostNetwork",
            workload.host_network.filter(|is_set| *is_set),
        )
        .with_list("hostAliases", host_aliases(&workload.host_aliases))
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

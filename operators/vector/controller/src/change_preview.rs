//! Preview of what a change of a workload does to its Pods, without a cluster.
//!
//! ```text
//! old workload ─► object that runs Vector ─┐
//!                                          ├─► difference
//! new workload ─► object that runs Vector ─┘
//! ```
//!
//! Both are made as a reconciliation makes them, for a workload without pipelines: a pipeline changes nothing that depends
//! on the workload.

use std::collections::BTreeSet;
use std::sync::Arc;

use lockstep_shared_validation::decode;
use lockstep_vector_api::{
    Catalogue, ChangePreview, ClusterVectorAggregator, Vector, VectorAggregator, WorkloadKind,
    WorkloadRole,
};
use lockstep_vector_assembly::{Assembly, AssemblyOptions, assemble};
use serde_json::Value;

use crate::owned::{
    self, Change, ChangeAction, Cluster, ClusterScopedNames, ObservedAggregator, Publication,
};
use crate::run::{DATA_DIRECTORY_FIELD, assembly_options, files, is_persistent, wants_moves};

/// Kinds of the object that runs Vector.
const WORKLOADS: [&str; 3] = ["DaemonSet", "Deployment", "StatefulSet"];

/// Returns what a change does to the Pods, or none if it does not concern them.
#[must_use]
pub fn preview_change(kind: &str, old: &Value, new: &Value) -> Option<ChangePreview> {
    match kind {
        "Vector" => preview::<Vector>(old, new),
        "VectorAggregator" => preview::<VectorAggregator>(old, new),
        "ClusterVectorAggregator" => preview::<ClusterVectorAggregator>(old, new),
        _ => None,
    }
}

fn preview<K: WorkloadKind>(old: &Value, new: &Value) -> Option<ChangePreview> {
    // Where the data is, it stays, unless one of them says something else.
    let directory = old["status"][DATA_DIRECTORY_FIELD].as_str();
    let [before, after] =
        [old, new].map(|object| Desired::new(&decode::<K>(object).ok()?, directory));
    let (before, after) = (before?, after?);
    let mut settings = Vec::new();
    if before.assembly.hash() != after.assembly.hash() {
        settings.push("settings of the workload".to_owned());
    }
    if old["spec"]["selector"] != new["spec"]["selector"] {
        settings.push("selector".to_owned());
    }
    let has_other_names = before.options.layout() != after.options.layout();
    if has_other_names {
        settings.push("names of components".to_owned());
    }
    let change = Change::of_desired(&before.workload, &after.workload, settings);
    let mut preview = change.map(|change| ChangePreview {
        replaces_pods: change.action != ChangeAction::Reload,
        reasons: change.reasons,
    });
    if has_other_names
        && after.moves_data
        && let Some(preview) = &mut preview
    {
        if !preview.replaces_pods {
            preview.reasons.clear();
        }
        preview.replaces_pods = true;
        let names = "names of components, if there is data to move";
        preview.reasons.push(names.to_owned());
    }
    preview
}

/// Objects of a workload without pipelines.
struct Desired {
    options: AssemblyOptions,
    assembly: Assembly,
    /// Object that runs Vector.
    workload: Value,
    /// If true, data is moved when components get other names.
    moves_data: bool,
}

impl Desired {
    /// Returns the objects, or none if there are no valid ones.
    fn new<K: WorkloadKind>(object: &K, data_directory: Option<&str>) -> Option<Self> {
        let options = assembly_options(object, Arc::clone(Catalogue::shipped()));
        let assembly = assemble(&options, &[]);
        let workload = object.workload();
        let is_compressed = workload.and_then(|it| it.compress_config_file);
        let files = files(
            K::ROLE,
            &assembly,
            is_compressed.unwrap_or_default(),
            &BTreeSet::new(),
        );
        let publication = Publication {
            files: files.ok()?,
            roll_hash: assembly.global_hash(),
            services: assembly.services.clone(),
            data_directory: data_directory.map(str::to_owned),
            ..Publication::default()
        };
        let cluster = Cluster {
            vector_version: Catalogue::shipped().number(),
            has_pod_monitors: false,
            cluster_scoped_names: ClusterScopedNames::default(),
            program_image: None,
        };
        let observed = ObservedAggregator::default();
        let owned = owned::objects(object, &publication, &cluster, &observed);
        let mut children = owned.ok()?.children.into_iter();
        let runs_vector = |child: &Value| WORKLOADS.iter().any(|kind| child["kind"] == *kind);
        Some(Self {
            workload: children.find(runs_vector)?,
            moves_data: wants_moves(object)
                && (K::ROLE == WorkloadRole::Agent || is_persistent(object)),
            options,
            assembly,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns what a change of a spec does: `Roll`, `Reload` or nothing, with the reasons.
    fn preview(kind: &str, old: &Value, new: &Value) -> String {
        let object = |spec: &Value| {
            json!({
                "apiVersion": "observability.kaasops.io/v1alpha1",
                "kind": kind,
                "metadata": {"name": "logs", "namespace": "n"},
                "spec": spec,
            })
        };
        match preview_change(kind, &object(old), &object(new)) {
            None => "nothing".to_owned(),
            Some(change) => {
                let action = if change.replaces_pods {
                    "Roll"
                } else {
                    "Reload"
                };
                format!("{action}: {}", change.reasons.join(", "))
            }
        }
    }

    #[test]
    fn each_change_of_agents_has_the_effect_of_its_reconciliation() {
        let old = json!({"agent": {"image": "v:1", "env": [{"name": "A", "value": "1"}], "labels": {"a": "b"}}});
        for (pointer, value, expected) in [
            ("/agent/image", json!("v:1"), "nothing"),
            (
                "/agent/image",
                json!("v:2"),
                "Roll: containers[logs-agent].image",
            ),
            (
                "/agent/env",
                json!([]),
                "Roll: containers[logs-agent].env[A]",
            ),
            (
                "/agent/env/0/value",
                json!("2"),
                "Roll: containers[logs-agent].env[A].value",
            ),
            ("/agent/labels", json!({}), "Roll: metadata.labels.a"),
            (
                "/agent/expireMetricsSecs",
                json!(5),
                "Roll: options that Vector does not reload (api, expireMetricsSecs)",
            ),
            (
                "/agent/internalMetrics",
                json!(true),
                "Reload: settings of the workload",
            ),
            (
                "/useApiServerCache",
                json!(true),
                "Reload: settings of the workload",
            ),
            (
                "/selector",
                json!({"matchLabels": {"a": "b"}}),
                "Reload: selector",
            ),
            (
                "/agent/componentNames",
                json!("dashes"),
                "Roll: names of components, if there is data to move",
            ),
            ("/agent/configCheck", json!({"mode": "Pod"}), "nothing"),
        ] {
            let mut new = old.clone();
            let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
            new.pointer_mut(parent).expect("a field")[name] = value;
            assert_eq!(preview("Vector", &old, &new), expected, "{pointer}");
            // The way back has the same effect.
            let reason = expected.split(": ").next();
            let back = preview("Vector", &new, &old);
            assert_eq!(back.split(": ").next(), reason, "{pointer}: {back}");
        }
    }

    #[test]
    fn aggregators_scale_without_a_restart() {
        let old = json!({"replicas": 1});
        for (new, expected) in [
            (json!({"replicas": 2}), "nothing"),
            (
                json!({"replicas": 1, "podDisruptionBudget": {"enabled": true}}),
                "nothing",
            ),
            (
                json!({"replicas": 1, "componentNames": "dashes"}),
                "Reload: names of components",
            ),
            (
                json!({"replicas": 1, "persistence": {"enabled": true, "volumeClaimTemplates": [{
                    "metadata": {"name": "data"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                }]}}),
                "Roll: a StatefulSet instead of the Deployment",
            ),
        ] {
            for kind in ["VectorAggregator", "ClusterVectorAggregator"] {
                let [mut old, mut new] = [&old, &new].map(Clone::clone);
                for spec in [&mut old, &mut new] {
                    if kind == "ClusterVectorAggregator" {
                        spec["resourceNamespace"] = "n".into();
                    }
                }
                assert_eq!(preview(kind, &old, &new), expected, "{kind} {new}");
            }
        }
    }
}

//! Rollouts of owned workloads, as their controllers and the kubelet report them: the control plane of a test has neither.

use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::chaos::expectations::contains;
use crate::chaos::owned_objects::value_of;
use crate::chaos::running_process::Site;
use crate::chaos::trial_state::TrialState;
use crate::chaos::violation::{Property, Violation};

/// Rollouts of the owned workloads of one trial, until the value is dropped.
pub(crate) struct Rollouts {
    _tasks: JoinSet<()>,
}

impl Rollouts {
    /// Reports all workloads of these types as rolled out from now on.
    pub(crate) fn start(trial: &Arc<TrialState>, site: &Site, types: &[ApiResource]) -> Self {
        let mut tasks = JoinSet::new();
        for resource in types {
            let is_workload = matches!(resource.group.as_str(), "" | "apps" | "batch")
                && rolled_out(&resource.kind, &json!({})).is_some();
            if !is_workload {
                continue;
            }
            let rollout = Rollout {
                client: site.client.clone(),
                namespace: site.namespace.clone(),
                resource: resource.clone(),
                trial: Arc::clone(trial),
            };
            tasks.spawn(async move { rollout.run().await });
        }
        Self { _tasks: tasks }
    }
}

/// Rollout of the workloads of one type.
struct Rollout {
    client: Client,
    /// None: the workloads of all namespaces.
    namespace: Option<String>,
    resource: ApiResource,
    trial: Arc<TrialState>,
}

impl Rollout {
    async fn run(&self) {
        let all = self.api(self.namespace.as_deref());
        let events = watcher(all, watcher::Config::default());
        let mut workloads = pin!(events.default_backoff().applied_objects());
        while let Some(workload) = workloads.next().await {
            // A watch that has failed is started again.
            if let Ok(workload) = workload {
                self.report(&workload).await;
            }
        }
    }

    async fn report(&self, workload: &DynamicObject) {
        let kind = &self.resource.kind;
        let current = value_of(workload);
        let Some(status) = rolled_out(kind, &current) else {
            return;
        };
        if workload.metadata.deletion_timestamp.is_some() || contains(&current["status"], &status) {
            return;
        }
        let (name, namespace) = (workload.name_any(), workload.namespace());
        let text = format!("the control plane: {kind} {name} is rolled out");
        // Only this state of the workload: meanwhile, another one of its name can have been created.
        let metadata = json!({"resourceVersion": workload.resource_version()});
        let patch = Patch::Merge(json!({"metadata": metadata, "status": status}));
        let api = self.api(namespace.as_deref());
        let params = PatchParams::default();
        match api.patch_status(&name, &params, &patch).await {
            Ok(_) => self.trial.journal.add(None, &[name], text),
            // It was deleted or changed in the meantime. The next state is an event of its own.
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
            Err(error) => self.trial.violate(Violation::new(
                Property::Status,
                "",
                format!("the test kit sets the status of {kind} {name}"),
                error.to_string(),
            )),
        }
    }

    fn api(&self, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &self.resource),
            None => Api::all_with(self.client.clone(), &self.resource),
        }
    }
}

/// Returns the status of a workload in its desired state, or none for a kind that is no workload.
fn rolled_out(kind: &str, workload: &Value) -> Option<Value> {
    let (spec, metadata) = (&workload["spec"], &workload["metadata"]);
    let generation = metadata["generation"].as_i64().unwrap_or_default();
    let replicas = spec["replicas"].as_i64().unwrap_or(1);
    let is_true = |type_: &str| json!({"type": type_, "status": "True"});
    Some(match kind {
        "Deployment" => json!({
            "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas,
            "conditions": [is_true("Available")],
        }),
        "StatefulSet" => json!({
            "observedGeneration": generation, "replicas": replicas, "currentReplicas": replicas,
            "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
        }),
        "ReplicaSet" => json!({
            "observedGeneration": generation, "replicas": replicas, "fullyLabeledReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas,
        }),
        // One node.
        "DaemonSet" => json!({
            "observedGeneration": generation, "desiredNumberScheduled": 1, "currentNumberScheduled": 1,
            "updatedNumberScheduled": 1, "numberReady": 1, "numberAvailable": 1, "numberMisscheduled": 0,
        }),
        "Job" => {
            let created = &metadata["creationTimestamp"];
            json!({
                "startTime": created, "completionTime": created,
                "succeeded": spec["completions"].as_i64().unwrap_or(1),
                "conditions": [is_true("SuccessCriteriaMet"), is_true("Complete")],
            })
        }
        "Pod" => json!({"phase": "Running", "conditions": [is_true("Ready")]}),
        "PersistentVolumeClaim" => json!({"phase": "Bound"}),
        _ => return None,
    })
}

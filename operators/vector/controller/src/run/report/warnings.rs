//! Warnings about a workload that runs.

use std::cmp::Reverse;
use std::sync::Arc;

use kube::api::ApiResource;
use lockstep_controller::{OperatorCondition, ReconcileError, SyncRequest};
use lockstep_vector_api::usage::Usage;
use lockstep_vector_assembly::Assembly;
use serde_json::Value;

use crate::owned;
use crate::run::collect::data_directory::{self, DirectoryUser};
use crate::run::condition::warning;
use crate::run::publish::publisher::Desired;

/// Type of the condition of a workload whose pipelines may take more memory than its Pods have.
const MEMORY: &str = "MemoryOvercommitted";

/// Number of pipelines that a message names.
const SHOWN: usize = 3;

/// Returns the conditions about what an administrator should change. `workloads` is the kind of the workload, if it is installed.
///
/// # Errors
///
/// The workloads of this kind are not watched.
pub(crate) fn conditions<K>(
    request: &SyncRequest<'_, K>,
    workloads: Option<&ApiResource>,
    desired: &Desired,
) -> Result<Vec<OperatorCondition>, ReconcileError> {
    let raw = request.raw_parent();
    let memory = memory(raw, &desired.assembly, &desired.children);
    let directory = match data_directory::key(raw).zip(workloads) {
        None => None,
        Some((key, workloads)) => {
            let users: Vec<Arc<DirectoryUser>> = request.related().by_index(workloads, &[key])?;
            let users = users.iter().map(|user| DirectoryUser::clone(user));
            data_directory::condition(raw, users)
        }
    };
    Ok(memory.into_iter().chain(directory).collect())
}

/// Returns the condition about the memory that the pipelines of a workload may take. `children` are its desired objects.
fn memory(workload: &Value, assembly: &Assembly, children: &[Value]) -> Option<OperatorCondition> {
    let limit = children.iter().find_map(owned::memory_limit);
    warning(
        workload,
        MEMORY,
        limit.and_then(|limit| overcommitted(assembly, limit)),
    )
}

fn overcommitted(assembly: &Assembly, limit: u64) -> Option<String> {
    let parts = assembly.parts.iter();
    let mut taken: Vec<_> = parts
        .map(|part| {
            (
                Usage::total(part.all_components()).memory_bytes,
                &part.pipeline,
            )
        })
        .filter(|(bytes, _)| *bytes > 0)
        .collect();
    let total = taken
        .iter()
        .fold(0_u64, |total, (bytes, _)| total.saturating_add(*bytes));
    if total <= limit {
        return None;
    }
    taken.sort_by_key(|(bytes, pipeline)| (Reverse(*bytes), *pipeline));
    let largest = taken.iter().take(SHOWN);
    let largest: Vec<_> = largest
        .map(|(bytes, pipeline)| format!("{pipeline} {bytes}"))
        .collect();
    Some(format!(
        "buffers, batches and caches of the pipelines may take {total} bytes of memory, and `resources.limits.memory` is {limit}: the kernel ends a Vector that takes more. Raise the limit, or lower the options of those that take most: {}",
        largest.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::WorkloadRole;
    use lockstep_vector_assembly::{AssemblyOptions, RunnablePipeline, assemble};
    use serde_json::json;

    use super::*;

    #[test]
    fn pipelines_that_may_take_more_memory_than_the_limit_are_named() {
        let pipeline = |name: &str, events: u64| RunnablePipeline {
            namespace: Some("n".to_owned()),
            name: name.to_owned(),
            spec: json!({
                "sources": {"in": {"type": "kubernetes_logs"}},
                "sinks": {"out": {
                    "type": "blackhole", "inputs": ["in"],
                    "buffer": {"type": "memory", "max_events": events},
                }},
            }),
            ..RunnablePipeline::default()
        };
        let options = AssemblyOptions::new(WorkloadRole::Agent);
        let assembly = assemble(
            &options,
            &[pipeline("small", 1_000), pipeline("large", 2_000_000)],
        );
        let with_limit = |limit: &str| {
            let container =
                json!({"name": "logs-agent", "resources": {"limits": {"memory": limit}}});
            let template = json!({"spec": {"containers": [{"name": "other"}, container]}});
            let children = [
                json!({"kind": "Secret"}),
                json!({"metadata": {"name": "logs-agent"}, "spec": {"template": template}}),
            ];
            memory(&json!({}), &assembly, &children)
        };
        let warned = with_limit("1Gi").expect("a condition");
        assert!(
            warned.is_true && warned.message.contains("most: n/large "),
            "{warned:?}"
        );
        assert!(
            warned.message.contains("memory` is 1073741824:"),
            "{warned:?}"
        );
        assert_eq!(with_limit("100Gi"), None);
        let reported = json!({"status": {"conditions": [{"type": MEMORY, "status": "True"}]}});
        let resolved = memory(&reported, &assembly, &[]).expect("a condition");
        assert!(!resolved.is_true);
    }
}

//! Reports to the status of each pipeline what a workload runs of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, stream};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use lockstep_vector_api::PipelineWorkload;
use lockstep_vector_api::selection::SelectablePipeline;
use lockstep_vector_assembly::PipelineKey;
use serde_json::{Value, json};

/// Number of statuses that are written at the same time.
const CONCURRENCY: usize = 8;

/// What a workload runs.
pub(crate) struct Running<'a> {
    /// Name of the workload in the statuses.
    pub(crate) workload: &'a str,
    /// Published generations.
    pub(crate) generations: BTreeMap<PipelineKey, i64>,
    /// Pipelines that do not run as they are now, and why not.
    pub(crate) problems: BTreeMap<PipelineKey, String>,
}

/// Status fields of a pipeline that belong to a workload.
#[derive(Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) pipeline: PipelineKey,
    pub(crate) status: Value,
}

impl Running<'_> {
    /// Returns the statuses that differ from what the workload runs. `group` are the pipelines that it may run, and
    /// `selects` tells which of them it selects.
    pub(crate) fn reports(
        &self,
        group: &[Arc<SelectablePipeline>],
        selects: impl Fn(&SelectablePipeline) -> bool,
        now: &str,
    ) -> Vec<Report> {
        let reports = group.iter().filter_map(|pipeline| {
            let key = PipelineKey {
                namespace: pipeline.namespace.clone(),
                name: pipeline.name.clone(),
            };
            let (own, others): (Vec<_>, Vec<_>) = pipeline
                .workloads
                .iter()
                .partition(|it| it.workload == self.workload);
            let own = own.first();
            let generation = self.generations.get(&key).copied();
            if generation.is_none() && !selects(pipeline) {
                // It was selected before.
                let status = without_entry(&others);
                return own.map(|_| Report {
                    pipeline: key,
                    status,
                });
            }
            let is_since_then = own.is_some_and(|own| own.generation == generation);
            let since = if is_since_then {
                own.and_then(|own| own.since.clone())
            } else {
                generation.map(|_| now.to_owned())
            };
            let entry = PipelineWorkload {
                workload: self.workload.to_owned(),
                generation,
                since,
                message: self.problems.get(&key).cloned(),
            };
            let lowest = lowest(others.iter().copied().chain([&entry]));
            let is_reported =
                own.is_some_and(|own| **own == entry) && pipeline.running_generation == lowest;
            let status = json!({"runningGeneration": lowest, "workloads": [entry]});
            (!is_reported).then_some(Report {
                pipeline: key,
                status,
            })
        });
        reports.collect()
    }
}

/// Returns the generation that all workloads run, or 0 if one of them runs none. Zero and not a missing field: with several
/// field managers, none of them can remove a field.
fn lowest<'a>(workloads: impl Iterator<Item = &'a PipelineWorkload>) -> Option<i64> {
    workloads.map(|it| it.generation.unwrap_or_default()).min()
}

/// Returns what a workload reports that does not select the pipeline any more.
fn without_entry(others: &[&PipelineWorkload]) -> Value {
    match lowest(others.iter().copied()) {
        Some(lowest) => json!({"runningGeneration": lowest}),
        None => json!({}),
    }
}

/// Writes reports of the workload with this UID. Each workload owns its entries as a field manager of its own. Returns
/// false if some could not be written.
pub(crate) async fn write(
    client: &Client,
    resources: &[ApiResource],
    uid: &str,
    reports: Vec<Report>,
) -> bool {
    let params = PatchParams::apply(&format!("lockstep-{uid}")).force();
    let writes = reports.into_iter().filter_map(|Report { pipeline, status }| {
        let is_namespaced = pipeline.namespace.is_some();
        let resource = resources
            .iter()
            .find(|resource| (resource.kind == "VectorPipeline") == is_namespaced)?;
        let api: Api<DynamicObject> = match &pipeline.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
            None => Api::all_with(client.clone(), resource),
        };
        let body = json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": pipeline.name},
            "status": status,
        });
        let params = &params;
        Some(async move {
            let written = api.patch_status(&pipeline.name, params, &Patch::Apply(body)).await;
            match written {
                Ok(_) => true,
                // Deleted in the meantime.
                Err(kube::Error::Api(status)) if status.is_not_found() => true,
                Err(error) => {
                    tracing::warn!(%error, %pipeline, "the status of a pipeline cannot be written");
                    false
                }
            }
        })
    });
    let written: Vec<bool> = stream::iter(writes)
        .buffer_unordered(CONCURRENCY)
        .collect()
        .await;
    written.into_iter().all(|is_written| is_written)
}

/// Removes what a deleted workload has reported.
///
/// # Errors
///
/// The API server did not answer.
pub(crate) async fn remove(
    client: &Client,
    resources: &[ApiResource],
    workload: &str,
    uid: &str,
) -> Result<bool, kube::Error> {
    let mut reports = Vec::new();
    for resource in resources {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), resource);
        let all = match api.list(&ListParams::default()).await {
            Ok(all) => all,
            Err(kube::Error::Api(status)) if status.is_not_found() => continue,
            Err(error) => return Err(error),
        };
        for pipeline in all.items {
            let workloads = pipeline.data["status"]["workloads"].clone();
            let workloads: Vec<PipelineWorkload> =
                serde_json::from_value(workloads).unwrap_or_default();
            let (own, others): (Vec<_>, Vec<_>) =
                workloads.iter().partition(|it| it.workload == workload);
            if own.is_empty() {
                continue;
            }
            reports.push(Report {
                pipeline: PipelineKey {
                    namespace: pipeline.namespace(),
                    name: pipeline.name_any(),
                },
                status: without_entry(&others),
            });
        }
    }
    Ok(write(client, resources, uid, reports).await)
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::selection::index_selectable;

    use super::*;

    const THEN: &str = "2026-01-05T10:00:00Z";
    const NOW: &str = "2026-01-06T10:00:00Z";

    fn pipeline(name: &str, status: &Value) -> Arc<SelectablePipeline> {
        let pipeline = json!({
            "kind": "VectorPipeline",
            "metadata": {"name": name, "namespace": "n", "generation": 3},
            "spec": {"sources": {"in": {"type": "kubernetes_logs"}}},
            "status": status,
        });
        Arc::new(index_selectable(&pipeline).1)
    }

    fn reports(status: &Value, runs: Option<i64>, problem: Option<&str>) -> Vec<Value> {
        let key = PipelineKey {
            namespace: Some("n".to_owned()),
            name: "p".to_owned(),
        };
        let running = Running {
            workload: "Vector n/v",
            generations: runs.map(|it| (key.clone(), it)).into_iter().collect(),
            problems: problem.map(|it| (key, it.to_owned())).into_iter().collect(),
        };
        let reports = running.reports(&[pipeline("p", status)], |_| true, NOW);
        reports.into_iter().map(|report| report.status).collect()
    }

    fn entry(generation: i64, since: &str) -> Value {
        json!({"workload": "Vector n/v", "generation": generation, "since": since})
    }

    #[test]
    fn a_status_is_written_only_when_something_changes() {
        let reported = json!({"runningGeneration": 3, "workloads": [entry(3, THEN)]});
        assert!(reports(&reported, Some(3), None).is_empty());
        let first = json!({"runningGeneration": 3, "workloads": [entry(3, NOW)]});
        assert_eq!(
            reports(&Value::Null, Some(3), None),
            std::slice::from_ref(&first)
        );
        let older = json!({"runningGeneration": 2, "workloads": [entry(2, THEN)]});
        assert_eq!(reports(&older, Some(3), None), [first]);
        let mut with_problem = entry(3, THEN);
        with_problem["message"] = json!("waits");
        let expected = json!({"runningGeneration": 3, "workloads": [with_problem]});
        assert_eq!(reports(&reported, Some(3), Some("waits")), [expected]);
    }

    #[test]
    fn the_running_generation_is_the_lowest_of_all_workloads() {
        let other = |generation: Option<i64>| {
            json!({"runningGeneration": 3, "workloads": [
                {"workload": "Vector n/other", "generation": generation}, entry(3, THEN),
            ]})
        };
        assert!(reports(&other(Some(3)), Some(3), None).is_empty());
        for (generation, expected) in [(Some(2), 2), (None, 0)] {
            let lower = json!({"runningGeneration": expected, "workloads": [entry(3, THEN)]});
            assert_eq!(reports(&other(generation), Some(3), None), [lower]);
        }
    }

    #[test]
    fn an_entry_is_removed_when_the_pipeline_is_no_longer_selected() {
        let running = Running {
            workload: "Vector n/v",
            generations: BTreeMap::new(),
            problems: BTreeMap::new(),
        };
        let reported = json!({"runningGeneration": 3, "workloads": [entry(3, THEN)]});
        let group = [pipeline("p", &reported), pipeline("other", &Value::Null)];
        let reports = running.reports(&group, |_| false, NOW);
        assert_eq!(reports.len(), 1);
        assert_eq!(
            (reports[0].pipeline.name.as_str(), &reports[0].status),
            ("p", &json!({}))
        );
        let other = json!({"workload": "Vector n/other", "generation": 2});
        let reported = json!({"runningGeneration": 1, "workloads": [other, entry(1, THEN)]});
        let reports = running.reports(&[pipeline("p", &reported)], |_| false, NOW);
        assert_eq!(reports[0].status, json!({"runningGeneration": 2}));
    }
}

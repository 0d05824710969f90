//! Reports to the status of each pipeline what a workload runs of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, stream};
use kube::api::{Api, ApiResource, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use lockstep_controller::{CustomObject, ReconcileError};
use lockstep_shared_validation::shortened;
use lockstep_vector_api::PipelineWorkload;
use lockstep_vector_api::selection::{self, SelectablePipeline};
use lockstep_vector_assembly::{PipelineKey, PipelinePart};
use serde_json::{Value, json};

use crate::run::follow::loading::Loading;
use crate::run::report::now;
use crate::run::report::workload_status::LONGEST_PROBLEM;

/// Number of statuses that are written at the same time.
const CONCURRENCY: usize = 8;

/// Maximum number of workloads in the status of a pipeline, as in the CRD.
const MAX_WORKLOADS: usize = 64;

/// Reporter of the workloads of a kind.
pub(crate) struct PipelineReporter {
    pub(crate) client: Client,
    /// Installed kinds of pipelines.
    pub(crate) pipelines: Vec<ApiResource>,
}

impl PipelineReporter {
    /// Reports to the pipelines what is published of them: what is about to be published is reported after that, by the
    /// reconciliation that follows the write. Returns false if a report must be written again.
    pub(crate) async fn report(
        &self,
        workload: &Value,
        group: &[Arc<SelectablePipeline>],
        published: &BTreeMap<PipelineKey, PipelinePart>,
        problems: BTreeMap<PipelineKey, String>,
        loading: Loading,
    ) -> bool {
        let generations = published.iter();
        let generations = generations.map(|(key, part)| (key.clone(), part.generation));
        let name = selection::workload_name(workload);
        let problems = problems.into_iter();
        let running = Running {
            workload: &name,
            generations: generations.collect(),
            problems: problems
                .map(|(key, message)| (key, shortened(&message, LONGEST_PROBLEM).into_owned()))
                .collect(),
            loading,
        };
        let selects = |pipeline: &SelectablePipeline| selection::selects(workload, pipeline);
        let reports = running.reports(group, selects, &now());
        write(&self.client, &self.pipelines, &name, reports).await
    }

    /// Removes what a deleted workload has reported.
    ///
    /// # Errors
    ///
    /// A status could not be read or written.
    pub(crate) async fn remove(&self, workload: &Value) -> Result<(), ReconcileError> {
        let name = selection::workload_name(workload);
        let removed = remove(&self.client, &self.pipelines, &name).await;
        if matches!(removed, Ok(true)) {
            return Ok(());
        }
        Err(ReconcileError::Transient {
            reason: "PipelinesNotReported",
            message: "the statuses of the pipelines cannot be written".to_owned(),
        })
    }
}

/// Pipelines of a workload.
struct Running<'a> {
    /// Name of the workload in the statuses.
    workload: &'a str,
    /// Published generations.
    generations: BTreeMap<PipelineKey, i64>,
    /// Pipelines that do not run as they are now, and why not.
    problems: BTreeMap<PipelineKey, String>,
    loading: Loading,
}

/// Entry of a workload in the status of a pipeline that is to be written, or none if it is to be removed.
#[derive(Debug, PartialEq)]
struct Report {
    pipeline: PipelineKey,
    entry: Option<PipelineWorkload>,
}

impl Running<'_> {
    /// Returns the entries that differ from what the workload runs. `group` are the pipelines that it may run, and
    /// `selects` tells which of them it selects.
    fn reports(
        &self,
        group: &[Arc<SelectablePipeline>],
        selects: impl Fn(&SelectablePipeline) -> bool,
        now: &str,
    ) -> Vec<Report> {
        let reports = group.iter().filter_map(|pipeline| {
            let key = PipelineKey::from(&**pipeline);
            let mut workloads = pipeline.workloads.iter();
            let own = workloads.find(|it| it.workload == self.workload);
            let generation = self.generations.get(&key).copied();
            let is_selected = generation.is_some() || selects(pipeline);
            let entry = is_selected.then(|| {
                let unchanged = own.filter(|own| own.generation == generation);
                PipelineWorkload {
                    workload: self.workload.to_owned(),
                    generation,
                    loaded: match self.loading {
                        Loading::Done => generation,
                        Loading::Open => own.and_then(|own| own.loaded),
                        Loading::Unobserved => None,
                    },
                    since: match unchanged {
                        Some(own) => own.since.clone(),
                        None => generation.map(|_| now.to_owned()),
                    },
                    message: self.problems.get(&key).cloned(),
                }
            });
            let is_reported =
                own == entry.as_ref() && pipeline.running_generation == lowest(&pipeline.workloads);
            (!is_reported).then_some(Report {
                pipeline: key,
                entry,
            })
        });
        reports.collect()
    }
}

/// Returns the generation that all workloads run, or 0 if one of them runs none.
fn lowest(workloads: &[PipelineWorkload]) -> Option<i64> {
    let generations = workloads.iter().map(|it| it.generation.unwrap_or_default());
    generations.min()
}

/// Writes reports of a workload. Returns false if some could not be written.
async fn write(
    client: &Client,
    resources: &[ApiResource],
    workload: &str,
    reports: Vec<Report>,
) -> bool {
    let writes = reports
        .into_iter()
        .filter_map(|Report { pipeline, entry }| {
            let is_namespaced = pipeline.namespace.is_some();
            let resource = resources
                .iter()
                .find(|resource| (resource.kind == "VectorPipeline") == is_namespaced)?;
            let api: Api<CustomObject> = match &pipeline.namespace {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
                None => Api::all_with(client.clone(), resource),
            };
            Some(async move {
                let written = write_entry(&api, &pipeline.name, workload, entry).await;
                if let Err(error) = &written {
                    tracing::warn!(%error, %pipeline, "the status of a pipeline cannot be written");
                }
                written.is_ok()
            })
        });
    let written: Vec<bool> = stream::iter(writes)
        .buffer_unordered(CONCURRENCY)
        .collect()
        .await;
    written.into_iter().all(|is_written| is_written)
}

/// Replaces the entry of a workload in the status of a pipeline. Other workloads write their entries at the same time, so
/// the write is rejected if the pipeline has changed since it was read.
async fn write_entry(
    api: &Api<CustomObject>,
    name: &str,
    workload: &str,
    entry: Option<PipelineWorkload>,
) -> Result<(), kube::Error> {
    for is_last in [false, false, false, true] {
        let Some(pipeline) = api.get_opt(name).await? else {
            return Ok(());
        };
        let pipeline = pipeline.into_inner();
        let status = &pipeline.data["status"];
        let before = entries(status);
        let mut workloads = before.clone();
        workloads.retain(|it| it.workload != workload);
        workloads.extend(entry.clone());
        workloads.sort_by(|one, other| one.workload.cmp(&other.workload));
        let lowest = lowest(&workloads);
        workloads.truncate(MAX_WORKLOADS);
        if workloads == before && status["runningGeneration"].as_i64() == lowest {
            return Ok(());
        }
        let workloads = (!workloads.is_empty()).then_some(workloads);
        let patch = json!({
            "metadata": {"resourceVersion": pipeline.resource_version()},
            "status": {"runningGeneration": lowest, "workloads": workloads},
        });
        let params = PatchParams::default();
        match api.patch_status(name, &params, &Patch::Merge(patch)).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
            Err(kube::Error::Api(status)) if status.is_conflict() && !is_last => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn entries(status: &Value) -> Vec<PipelineWorkload> {
    serde_json::from_value(status["workloads"].clone()).unwrap_or_default()
}

/// Removes what a deleted workload has reported. Returns false if something could not be written.
///
/// # Errors
///
/// The API server did not answer.
async fn remove(
    client: &Client,
    resources: &[ApiResource],
    workload: &str,
) -> Result<bool, kube::Error> {
    let mut reports = Vec::new();
    for resource in resources {
        let api: Api<CustomObject> = Api::all_with(client.clone(), resource);
        let all = match api.list(&ListParams::default()).await {
            Ok(all) => all,
            Err(kube::Error::Api(status)) if status.is_not_found() => continue,
            Err(error) => return Err(error),
        };
        let all = all.items.into_iter().map(CustomObject::into_inner);
        let reported = all.filter(|pipeline| {
            let entries = entries(&pipeline.data["status"]);
            entries.iter().any(|it| it.workload == workload)
        });
        reports.extend(reported.map(|pipeline| Report {
            pipeline: PipelineKey {
                namespace: pipeline.namespace(),
                name: pipeline.name_any(),
            },
            entry: None,
        }));
    }
    Ok(write(client, resources, workload, reports).await)
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::selection::index_selectable;

    use super::*;

    const THEN: &str = "2026-01-05T10:00:00Z";
    const NOW: &str = "2026-01-06T10:00:00Z";

    fn pipeline(status: &Value) -> Arc<SelectablePipeline> {
        let pipeline = json!({
            "kind": "VectorPipeline",
            "metadata": {"name": "p", "namespace": "n", "generation": 3},
            "spec": {"sources": {"in": {"type": "kubernetes_logs"}}},
            "status": status,
        });
        Arc::new(index_selectable(&pipeline).1)
    }

    /// Returns the entry that is to be written, if there is one.
    fn report(
        status: &Value,
        runs: Option<i64>,
        problem: Option<&str>,
        is_selected: bool,
    ) -> Option<Value> {
        report_while(Loading::Unobserved, status, runs, problem, is_selected)
    }

    fn report_while(
        loading: Loading,
        status: &Value,
        runs: Option<i64>,
        problem: Option<&str>,
        is_selected: bool,
    ) -> Option<Value> {
        let key = PipelineKey {
            namespace: Some("n".to_owned()),
            name: "p".to_owned(),
        };
        let running = Running {
            workload: "Vector n/v",
            generations: runs.map(|it| (key.clone(), it)).into_iter().collect(),
            problems: problem.map(|it| (key, it.to_owned())).into_iter().collect(),
            loading,
        };
        let mut reports = running.reports(&[pipeline(status)], |_| is_selected, NOW);
        reports.pop().map(|report| json!(report.entry))
    }

    fn status(lowest: i64, generation: i64, since: &str) -> Value {
        json!({"runningGeneration": lowest, "workloads": [entry(generation, since)]})
    }

    fn entry(generation: i64, since: &str) -> Value {
        json!({"workload": "Vector n/v", "generation": generation, "since": since})
    }

    #[test]
    fn a_generation_is_loaded_once_all_pods_have_it() {
        let loaded = |loading, before: Option<i64>| {
            let mut status = status(3, 3, THEN);
            status["workloads"][0]["loaded"] = json!(before);
            let written = report_while(loading, &status, Some(3), None, true);
            written.map_or(before, |entry| entry["loaded"].as_i64())
        };
        assert_eq!(loaded(Loading::Open, None), None);
        assert_eq!(loaded(Loading::Open, Some(2)), Some(2));
        assert_eq!(loaded(Loading::Done, Some(2)), Some(3));
        assert_eq!(loaded(Loading::Unobserved, Some(2)), None);
    }

    #[test]
    fn an_entry_is_written_only_when_something_changes() {
        assert_eq!(report(&status(3, 3, THEN), Some(3), None, true), None);
        let first = Some(entry(3, NOW));
        assert_eq!(report(&Value::Null, Some(3), None, true), first);
        assert_eq!(report(&status(2, 2, THEN), Some(3), None, true), first);
        let mut waits = entry(3, THEN);
        waits["message"] = json!("waits");
        let found = report(&status(3, 3, THEN), Some(3), Some("waits"), true);
        assert_eq!(found, Some(waits));
        let none = Some(json!({"workload": "Vector n/v"}));
        assert_eq!(report(&Value::Null, None, None, true), none);
    }

    #[test]
    fn an_entry_is_removed_when_the_pipeline_is_no_longer_selected() {
        let reported = status(3, 3, THEN);
        assert_eq!(report(&reported, None, None, false), Some(Value::Null));
        assert_eq!(report(&Value::Null, None, None, false), None);
        // It runs until a configuration without it is published.
        assert_eq!(report(&reported, Some(3), None, false), None);
    }

    #[test]
    fn the_running_generation_is_the_lowest_of_all_workloads() {
        let all = |generations: &[Option<i64>]| {
            let entries = generations.iter().map(|generation| PipelineWorkload {
                generation: *generation,
                ..PipelineWorkload::default()
            });
            lowest(&entries.collect::<Vec<_>>())
        };
        assert_eq!(all(&[]), None);
        assert_eq!(all(&[Some(3), Some(2)]), Some(2));
        assert_eq!(all(&[Some(3), None]), Some(0));
        // Another workload has written its entry at the same time.
        let outdated = status(2, 3, THEN);
        assert_eq!(report(&outdated, Some(3), None, true), Some(entry(3, THEN)));
    }
}

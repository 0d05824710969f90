//! Configuration of which every changed part was checked in a Pod, if the workload demands that.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::{Client, ResourceExt};
use lockstep_controller::{
    ControllerRegistry, ReadObject, ReconcileError, ReconcileTrigger, SyncRequest,
};
use lockstep_vector_api::Workload;
use lockstep_vector_api::selection::SelectablePipeline;
use lockstep_vector_assembly::{AssemblyOptions, PipelineKey};

use crate::owned::{self, Cluster, ConfigurationCheck};
use crate::run::assembler::{Assembled, Assembler, Selection};
use crate::run::config_check::{
    self, CheckSlots, Checks, Decision, Finished, ObservedPod, Pipelines, PodState, Records,
    Settings, SlotRequest, redact,
};
use crate::run::names::Names;
use crate::run::observed::Lookup;
use crate::run::stored_parts;
use crate::run::workload::RunsPipelines;

/// Maximum length of the log in a message, in bytes. The message with the names of pipeline and check must fit into a
/// status.
const LONGEST_LOG: usize = 800;

/// Checks of configurations in Pods.
pub struct PodChecks {
    slots: Arc<CheckSlots>,
    timeout: Duration,
    /// Controllers in whose queues workloads are put that wait for a slot.
    controllers: ControllerRegistry,
    term: Arc<()>,
    /// Changed parts that are being checked together with all others, by UID of the workload.
    together: Mutex<HashMap<String, BTreeSet<PipelineKey>>>,
}

impl PodChecks {
    /// Returns checks that end after a time. `slots` limits their number, also that of other kinds of workloads.
    #[must_use]
    pub fn new(slots: Arc<CheckSlots>, timeout: Duration, controllers: ControllerRegistry) -> Self {
        Self {
            slots,
            timeout,
            controllers,
            term: Arc::default(),
            together: Mutex::default(),
        }
    }

    /// Ends the checks of a workload.
    pub(crate) fn release(&self, uid: &str) {
        self.together().remove(uid);
        self.wake(self.slots.release(uid, Instant::now()));
    }

    fn wake(&self, workloads: Vec<ReconcileTrigger>) {
        for it in workloads {
            let namespace = it.namespace.as_deref();
            // A controller that does not run reconciles every object when it starts.
            let _ = self
                .controllers
                .enqueue(&it.controller, namespace, &it.name);
        }
    }

    fn together(&self) -> std::sync::MutexGuard<'_, HashMap<String, BTreeSet<PipelineKey>>> {
        self.together.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Configuration that may be published, and the checks of other ones.
pub(crate) struct Checked {
    pub(crate) assembled: Assembled,
    /// Configuration that is published once all checks that have no result yet are passed. None if there are none.
    pub(crate) planned: Option<Assembled>,
    pub(crate) checks: CheckOutput,
}

/// Pipelines that are not to be published.
struct Held {
    /// All of them, and why.
    pipelines: BTreeMap<PipelineKey, String>,
    /// Pipelines among them that Vector rejects.
    failed: BTreeSet<PipelineKey>,
}

/// Results of checks, and those that run.
#[derive(Default)]
pub(crate) struct CheckOutput {
    pub(crate) records: Records,
    pub(crate) pods: Vec<ConfigurationCheck>,
    /// Reason why Vector rejects a configuration of all pipelines together.
    pub(crate) rejected: Option<String>,
    /// Time until the workload is to be reconciled again.
    pub(crate) next: Option<Duration>,
}

/// Workload whose configuration is checked.
struct CheckInput<'a> {
    names: &'a Names,
    workload: &'a Workload,
    options: &'a AssemblyOptions,
    settings: Settings,
    selection: &'a Selection,
    /// Pipelines that another operator runs.
    taken_over: BTreeSet<PipelineKey>,
    assembled: &'a Assembled,
}

impl PodChecks {
    /// Returns the configuration that may be published: a changed pipeline that was not checked, or that Vector rejects,
    /// runs as it last ran.
    pub(crate) async fn checked<K: RunsPipelines>(
        &self,
        assembler: &Assembler,
        cluster: &Cluster,
        request: &SyncRequest<'_, K>,
        names: &Names,
        options: &AssemblyOptions,
        selection: Selection,
    ) -> Result<Checked, ReconcileError> {
        let uid = request.raw_parent()["metadata"]["uid"].as_str();
        let uid = uid.unwrap_or_default();
        let none = BTreeMap::new();
        let candidate = assembler
            .assemble_with_secrets(request, names, options, selection.clone(), &none)
            .await?;
        let workload = request.parent().workload();
        let Some(workload) = workload.filter(|it| owned::is_checked_in_pods(it)) else {
            self.release(uid);
            let checks = CheckOutput::default();
            return Ok(Checked {
                assembled: candidate,
                planned: None,
                checks,
            });
        };
        let live_ids = ids_taken_over(&assembler.client, request, names).await?;
        let taken_over = config_check::running(&live_ids, &candidate.assembly, options);
        let input = CheckInput {
            names,
            workload,
            options,
            settings: Settings::of(workload, cluster),
            selection: &selection,
            taken_over,
            assembled: &candidate,
        };
        let (checks, held) = self.check(request, input)?;
        let Held { pipelines, failed } = held;
        if pipelines.is_empty() {
            return Ok(Checked {
                assembled: candidate,
                planned: None,
                checks,
            });
        }
        let passed = assembler.passed().get(uid).cloned().unwrap_or_default();
        let mut published = assembler
            .assemble_with_secrets(request, names, options, selection.clone(), &pipelines)
            .await?;
        // The parts that wait were checked in process, too, and need not be checked again.
        assembler
            .passed()
            .entry(uid.to_owned())
            .or_default()
            .extend(passed);
        published.reads.extend(candidate.reads.iter().cloned());
        published.assembly.problems.sort();
        published.assembly.problems.dedup();
        let mut rejected = pipelines;
        let count = rejected.len();
        rejected.retain(|key, _| failed.contains(key));
        let planned = if rejected.is_empty() {
            Some(candidate)
        } else if rejected.len() < count {
            let planned = assembler
                .assemble_with_secrets(request, names, options, selection, &rejected)
                .await?;
            Some(planned)
        } else {
            None
        };
        Ok(Checked {
            assembled: published,
            planned,
            checks,
        })
    }

    /// Checks the changed parts. Returns the pipelines that are not to be published.
    fn check<K: RunsPipelines>(
        &self,
        request: &SyncRequest<'_, K>,
        input: CheckInput<'_>,
    ) -> Result<(CheckOutput, Held), ReconcileError> {
        let raw = request.raw_parent();
        let of = |field: &str| raw["metadata"][field].as_str().unwrap_or_default();
        let uid = of("uid");
        let CheckInput {
            names,
            workload,
            options,
            settings,
            selection,
            taken_over,
            assembled,
        } = input;
        let records = Records::read(names.stored(request, config_check::KEY)?.as_deref());
        let pods = self.observed_pods(request, names, workload, assembled)?;
        let now = Timestamp::now();
        let mut checks = Checks::new(&names.name, now, records, pods);
        let pipelines = Pipelines {
            options,
            parts: &assembled.assembly.parts,
            before: &selection.before,
            taken_over,
            forced: forced(&selection.pipelines),
            secret_versions: secret_versions(&assembled.reads),
            together: self.together().remove(uid).unwrap_or_default(),
        };
        let decision = Decision::of(&pipelines, &settings, &mut checks);
        let (running, wanted) = checks.counts();
        let trigger = ReconcileTrigger {
            controller: K::KIND.to_lowercase(),
            namespace: raw["metadata"]["namespace"].as_str().map(str::to_owned),
            name: of("name").to_owned(),
        };
        let request = SlotRequest {
            uid,
            trigger,
            term: &self.term,
            running,
            wanted,
        };
        let granted = self.slots.take(request, Instant::now());
        self.wake(granted.wake);
        let Finished {
            mut records,
            pods,
            next,
        } = checks.finish(granted.new);
        let next = next.into_iter().chain(granted.next).min();
        let Decision {
            held,
            failed,
            rejected,
            together,
            candidates,
        } = decision;
        if !together.is_empty() {
            self.together().insert(uid.to_owned(), together);
        }
        let is_compressed = workload.compress_config_file.unwrap_or_default();
        let mut checks = Vec::new();
        for pod in pods {
            let assembly = pipelines.configuration(&candidates[&pod.fingerprint]);
            let secrets = assembly.secrets.iter().filter_map(|it| {
                let value = assembled.secrets.get(&it.file_name)?;
                Some((it.file_name.clone(), value.clone()))
            });
            let secrets = secrets.collect();
            let files = config_check::files(K::KIND_OF_RUNNER, &assembly, &secrets, is_compressed);
            match files {
                Ok(files) => checks.push(ConfigurationCheck {
                    name: pod.name,
                    fingerprint: pod.fingerprint,
                    files,
                    secrets,
                    timeout_seconds: self.timeout.as_secs().max(1),
                }),
                Err(why) => records.set_unfinished(&pod.fingerprint, &why, now),
            }
        }
        let output = CheckOutput {
            records,
            pods: checks,
            rejected,
            next,
        };
        let pipelines = held;
        Ok((output, Held { pipelines, failed }))
    }

    /// Returns the Pods that check configurations, without values of Secrets in their logs.
    fn observed_pods<K: RunsPipelines>(
        &self,
        request: &SyncRequest<'_, K>,
        names: &Names,
        workload: &Workload,
        assembled: &Assembled,
    ) -> Result<Vec<ObservedPod>, ReconcileError> {
        let now = Timestamp::now();
        let mut observed = Vec::new();
        for child in request.children().iter() {
            let Some(fingerprint) = child.annotations().get(owned::CHECK_FINGERPRINT) else {
                continue;
            };
            let name = child.name_any();
            let children = request.children();
            let Some(pod) = children.get_namespaced::<Pod>(&names.namespace, &name)? else {
                continue;
            };
            let state = match PodState::of(&pod, now, self.timeout) {
                PodState::Failed(Some(_)) if config_check::hides_log(workload) => {
                    let hidden = "its log is not shown, because it may contain environment variables from Secrets";
                    PodState::Failed(Some(hidden.to_owned()))
                }
                PodState::Failed(Some(log)) => {
                    // The Pod may have had other values than those that are current now.
                    let of_pod = names.secret_assets(request, &name)?;
                    let values = of_pod.values().chain(assembled.secrets.values());
                    let log = redact(&log, values.map(Vec::as_slice));
                    PodState::Failed(Some(end_of(&log).to_owned()))
                }
                state => state,
            };
            observed.push(ObservedPod {
                name,
                fingerprint: fingerprint.clone(),
                state,
            });
        }
        Ok(observed)
    }
}

/// Returns the ids of the components that another operator has published, until this one has stored what runs. Their
/// pipelines run on after the takeover, without a check.
async fn ids_taken_over<K: RunsPipelines>(
    client: &Client,
    request: &SyncRequest<'_, K>,
    names: &Names,
) -> Result<BTreeSet<String>, ReconcileError> {
    if names.stored(request, stored_parts::KEY)?.is_some() {
        return Ok(BTreeSet::new());
    }
    let uid = request.raw_parent()["metadata"]["uid"].as_str();
    let lookup = Lookup {
        client,
        children: request.children(),
        namespace: &names.namespace,
        name: &names.name,
        uid: uid.unwrap_or_default(),
    };
    lookup.component_ids(K::KIND_OF_RUNNER).await
}

/// Returns the resource versions of the Secrets that were read.
fn secret_versions(reads: &[ReadObject]) -> BTreeMap<(String, String), Option<String>> {
    let versions = reads.iter().map(|read| {
        let namespace = read.namespace.clone().unwrap_or_default();
        (
            (namespace, read.name.clone()),
            read.resource_version.clone(),
        )
    });
    versions.collect()
}

/// Returns the values of the annotation that demands a check.
fn forced(pipelines: &[Arc<SelectablePipeline>]) -> BTreeMap<PipelineKey, String> {
    let forced = pipelines.iter().filter_map(|pipeline| {
        let value = pipeline.annotations.get(config_check::FORCE)?;
        let key = PipelineKey {
            namespace: pipeline.namespace.clone(),
            name: pipeline.name.clone(),
        };
        Some((key, value.clone())).filter(|(_, value)| !value.is_empty())
    });
    forced.collect()
}

/// Returns the last lines of a log that fit into a message: Vector prints the errors last.
fn end_of(log: &str) -> &str {
    let log = log.trim();
    let mut start = log.len().saturating_sub(LONGEST_LOG);
    while !log.is_char_boundary(start) {
        start += 1;
    }
    let end = &log[start..];
    match end.split_once('\n').filter(|_| start > 0) {
        Some((_, lines)) => lines,
        None => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_a_log_are_shown() {
        assert_eq!(end_of(" a\nb\n"), "a\nb");
        let long = format!("{}\n{}\nlast", "ä".repeat(LONGEST_LOG), "b".repeat(700));
        assert_eq!(end_of(&long), format!("{}\nlast", "b".repeat(700)));
        assert_eq!(end_of(&"ä".repeat(LONGEST_LOG)).len(), LONGEST_LOG);
    }
}

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
use lockstep_vector_assembly::{
    AssemblyOptions, PipelineKey, PresentState, PublishedParts, SecretValues,
};
use lockstep_vector_validator::Configuration;

use crate::owned::{self, Cluster, ConfigurationCheck};
use crate::run::assemble::assembler::{Assembled, Assembler, Selection};
use crate::run::check::pods::{
    self, Candidate, CheckSlots, Checks, Decision, DesiredPod, Finished, ObservedPod, Pipelines,
    PodState, Records, Settings, SlotRequest, shown,
};
use crate::run::check::warm_checks::{SOON, WarmChecks};
use crate::run::check::warm_validator::{Reply, WarmValidator};
use crate::run::collect::running_objects::Lookup;
use crate::run::collect::stored_parts;
use crate::run::names::Names;
use lockstep_vector_api::WorkloadKind;

/// Checks of configurations in Pods.
pub struct PodChecks {
    slots: Arc<CheckSlots>,
    timeout: Duration,
    /// Controllers in whose queues workloads are put that wait for a slot.
    controllers: ControllerRegistry,
    term: Arc<()>,
    /// Changed parts that are being checked together with all others, by UID of the workload.
    together: Mutex<HashMap<String, BTreeSet<PipelineKey>>>,
    warm: WarmChecks,
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
            warm: WarmChecks::default(),
        }
    }

    /// Returns the controllers in whose queues workloads are put.
    pub(crate) fn controllers(&self) -> &ControllerRegistry {
        &self.controllers
    }

    /// Ends the checks of a workload.
    pub(crate) fn release(&self, uid: &str) {
        self.together().remove(uid);
        self.warm.release(uid);
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

/// Assembler, cluster and validator of a workload whose configuration is checked.
#[derive(Clone, Copy)]
pub(crate) struct CheckContext<'a> {
    pub(crate) assembler: &'a Assembler,
    pub(crate) cluster: &'a Cluster,
    pub(crate) validator: &'a WarmValidator,
}

/// Results and Pods that are known when a check begins.
struct Begun {
    records: Records,
    pods: Vec<ObservedPod>,
    now: Timestamp,
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
    /// Values of the parts that are to run, and of those that run now.
    values: &'a SecretValues,
    client: &'a Client,
    validator: &'a WarmValidator,
}

impl CheckInput<'_> {
    /// Returns the files of a configuration that is checked, and the values of the Secrets that it refers to.
    fn files<K: WorkloadKind>(
        &self,
        pipelines: &Pipelines<'_>,
        candidate: &Candidate,
    ) -> Result<CheckedFiles, String> {
        let assembly = pipelines.configuration(candidate);
        let secrets = assembly.secrets.iter().filter_map(|it| {
            let value = self.values.get(&it.file_name)?;
            Some((it.file_name.clone(), value.clone()))
        });
        let secrets = secrets.collect();
        let is_compressed = self.workload.compress_config_file.unwrap_or_default();
        let files = pods::files(K::ROLE, &assembly, &secrets, is_compressed)?;
        Ok(CheckedFiles { files, secrets })
    }
}

/// Configuration that is checked.
struct CheckedFiles {
    files: BTreeMap<String, Vec<u8>>,
    secrets: BTreeMap<String, Vec<u8>>,
}

impl PodChecks {
    /// Returns the configuration that may be published: a changed pipeline that was not checked, or that Vector rejects,
    /// runs as it last ran.
    pub(crate) async fn checked<K: WorkloadKind>(
        &self,
        context: CheckContext<'_>,
        request: &SyncRequest<'_, K>,
        names: &Names,
        options: &AssemblyOptions,
        selection: Selection,
    ) -> Result<Checked, ReconcileError> {
        let CheckContext {
            assembler,
            cluster,
            validator,
        } = context;
        let uid = request.raw_parent()["metadata"]["uid"].as_str();
        let uid = uid.unwrap_or_default();
        let candidate = assembler
            .assemble_with_secrets(request, options, selection.clone())
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
        let taken_over = pods::running(&live_ids, &candidate.assembly, options);
        let mut values = selection.published.values.clone();
        values.extend(candidate.secrets.clone());
        let input = CheckInput {
            values: &values,
            names,
            workload,
            options,
            settings: Settings::new(workload, cluster),
            selection: &selection,
            taken_over,
            assembled: &candidate,
            client: &assembler.client,
            validator,
        };
        let (checks, held) = self.check(request, input).await?;
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
            .assemble_with_secrets(request, options, selection.clone().holding(&pipelines))
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
                .assemble_with_secrets(request, options, selection.holding(&rejected))
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
    async fn check<K: WorkloadKind>(
        &self,
        request: &SyncRequest<'_, K>,
        mut input: CheckInput<'_>,
    ) -> Result<(CheckOutput, Held), ReconcileError> {
        let raw = request.raw_parent();
        let of = |field: &str| raw["metadata"][field].as_str().unwrap_or_default();
        let uid = of("uid");
        let CheckInput {
            names,
            workload,
            assembled,
            ..
        } = input;
        let records = Records::read(names.stored(request, pods::KEY)?.as_deref());
        let pods = self.observed_pods(request, names, workload, assembled)?;
        let now = Timestamp::now();
        let published = &input.selection.published;
        let resolved = PublishedParts::new(&published.parts, &published.values);
        let mut pipelines = Pipelines {
            options: input.options,
            parts: &assembled.assembly.parts,
            before: &published.parts,
            present: PresentState {
                values: input.values,
                published: &resolved,
            },
            taken_over: std::mem::take(&mut input.taken_over),
            forced: forced(&input.selection.pipelines),
            secret_versions: secret_versions(&assembled.reads),
            together: self.together().remove(uid).unwrap_or_default(),
        };
        let begun = Begun { records, pods, now };
        let decided = self.decide::<K>(&input, &mut pipelines, uid, begun).await;
        let (decision, checks) = decided;
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
        let mut checks = Vec::new();
        for pod in pods {
            match input.files::<K>(&pipelines, &candidates[&pod.fingerprint]) {
                Ok(CheckedFiles { files, secrets }) => checks.push(ConfigurationCheck {
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

    /// Decides which changed parts may be published. What is not known yet, the validator is asked for: its answers count like
    /// those of Pods.
    async fn decide<'n, K: WorkloadKind>(
        &self,
        input: &CheckInput<'n>,
        pipelines: &mut Pipelines<'_>,
        uid: &str,
        begun: Begun,
    ) -> (Decision, Checks<'n>) {
        let Begun {
            records,
            mut pods,
            now,
        } = begun;
        let mut asking = None;
        loop {
            let (records, known) = (records.clone(), pods.clone());
            let mut checks = Checks::new(&input.names.name, now, records, known);
            let decision = Decision::new(pipelines, &input.settings, &mut checks);
            let candidates = &decision.candidates;
            self.warm
                .retain(uid, |fingerprint| candidates.contains_key(fingerprint));
            let mut wanted = checks.first_attempts();
            wanted.retain(|it| !self.warm.is_unfinished(uid, &it.fingerprint));
            if wanted.is_empty() || input.validator.desired.is_none() {
                return (decision, checks);
            }
            if asking.is_none() {
                let (client, namespace) = (input.client, &input.names.namespace);
                let begun = self.warm.begin(client, namespace, uid, input.validator);
                asking = Some(begun.await);
            }
            let Some(asking) = asking.as_mut().filter(|it| it.is_open()) else {
                return (decision, checks);
            };
            if asking.is_over() {
                for it in wanted {
                    checks.postpone(&it.fingerprint, SOON);
                }
                return (decision, checks);
            }
            for DesiredPod { name, fingerprint } in wanted {
                // What cannot be sent has no result in a Pod either.
                let Ok(checked) = input.files::<K>(pipelines, &candidates[&fingerprint]) else {
                    self.warm.set_unfinished(uid, &fingerprint);
                    continue;
                };
                let configuration = Configuration {
                    files: checked.files,
                };
                let state = match asking.ask(&fingerprint, &configuration).await {
                    Some(Reply::Passed) => PodState::Passed,
                    Some(Reply::Failed(log)) => {
                        let values = checked.secrets.values().map(Vec::as_slice);
                        PodState::Failed(Some(shown(&log, input.workload, values)))
                    }
                    Some(Reply::Unfinished(_)) | None => continue,
                };
                pods.push(ObservedPod {
                    name,
                    fingerprint,
                    state,
                });
                if asking.is_over() {
                    break;
                }
            }
            pipelines.together = decision.together;
        }
    }

    /// Returns the Pods that check configurations, without values of Secrets in their logs.
    fn observed_pods<K: WorkloadKind>(
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
            let state = match PodState::new(&pod, now, self.timeout) {
                PodState::Failed(Some(log)) => {
                    // The Pod may have had other values than those that are current now.
                    let of_pod = names.secret_assets(request, &name)?;
                    let values = of_pod.values().chain(assembled.secrets.values());
                    let log = shown(&log, workload, values.map(Vec::as_slice));
                    PodState::Failed(Some(log))
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
async fn ids_taken_over<K: WorkloadKind>(
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
        event_collector: &names.event_collector,
        uid: uid.unwrap_or_default(),
    };
    lookup.component_ids(K::ROLE).await
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
        let value = pipeline.annotations.get(pods::FORCE)?;
        let key = PipelineKey {
            namespace: pipeline.namespace.clone(),
            name: pipeline.name.clone(),
        };
        Some((key, value.clone())).filter(|(_, value)| !value.is_empty())
    });
    forced.collect()
}

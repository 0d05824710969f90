//! One trial: users, faults, and then the check of all properties without faults.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use kube::api::{ApiResource, ListParams};
use kube::{Client, ResourceExt};
use lockstep_controller::{OwnedType, Reconciler, api_resource};
use lockstep_shared_validation::{Ruleset, ValidatedResource};

use crate::chaos::differences::differences;
use crate::chaos::expectations::Expectations;
use crate::chaos::external_system::ExternalSystem;
use crate::chaos::failure::Failure;
use crate::chaos::owned_objects::{self, OwnedObjects};
use crate::chaos::polling::{until, until_quiet};
use crate::chaos::process::Process;
use crate::chaos::rollouts::Rollouts;
use crate::chaos::running_process::{RunningProcess, Site};
use crate::chaos::secrets;
use crate::chaos::trial_state::TrialState;
use crate::chaos::violation::{Property, Violation};
use crate::chaos::workload::Workload;
use crate::kind::objects;

/// Time without any activity after which nothing is expected to happen any more.
const QUIET: Duration = Duration::from_millis(40);

/// The same before a failure is reported, on a busy machine.
const STUCK: Duration = Duration::from_millis(1200);

/// Time limit of a phase, for operators that never become quiet.
const DEADLINE: Duration = Duration::from_secs(20);

/// Number of reconciliations of one object within which it must reach its desired state.
const MAX_RECONCILIATIONS: u64 = 20;

/// Number of entries of the journal in a report.
const JOURNAL: usize = 40;

/// Constructor of the author's reconciler.
pub(crate) type Construct<R> = dyn Fn(&Process) -> R + Send + Sync;

/// One trial.
pub(crate) struct Trial<'a, R> {
    pub(crate) state: Arc<TrialState>,
    pub(crate) users: Workload,
    pub(crate) owned: OwnedObjects,
    pub(crate) process: RunningProcess,
    pub(crate) random: Rng,
    operator: &'a Construct<R>,
    site: Site,
    seed: u64,
    started: usize,
    _rollouts: Option<Rollouts>,
}

/// Parameters of a trial.
pub(crate) struct TrialOptions<'a, R> {
    pub(crate) seed: u64,
    pub(crate) client: Client,
    /// None if the kind is cluster-scoped.
    pub(crate) namespace: Option<String>,
    pub(crate) operator: &'a Construct<R>,
    pub(crate) system: Arc<dyn ExternalSystem>,
    pub(crate) expectations: Arc<Expectations>,
    /// If true, owned workloads are reported as rolled out.
    pub(crate) rolls_out: bool,
}

impl<'a, R: Reconciler> Trial<'a, R> {
    /// Starts the operator.
    pub(crate) async fn start(options: TrialOptions<'a, R>) -> Self {
        let TrialOptions {
            seed,
            client,
            namespace,
            operator,
            system,
            expectations,
            rolls_out,
        } = options;
        let ruleset = Ruleset::<R::Kind>::compile().expect("the rules compile");
        let resource = api_resource(&ruleset);
        let state = Arc::new(TrialState::new(seed, system, expectations));
        let api = objects::<R::Kind>(client.clone(), namespace.as_deref());
        let mut random = Rng::with_seed(seed);
        let users = Workload::new(Arc::clone(&state), api, &resource, random.u64(..));
        if namespace.is_none() {
            users.remove_leftovers().await;
        }
        let site = Site {
            client: client.clone(),
            namespace: namespace.clone(),
            is_restricted: namespace.is_some(),
            plural: resource.plural.clone(),
        };
        let process = RunningProcess::start(0, &state, &site, operator).await;
        let types = owned_types::<R>(&state, &resource, &process.owns);
        let rollouts = rolls_out.then(|| Rollouts::start(&state, &site, &types));
        let owned = OwnedObjects::before_trial(client, namespace.as_deref(), types).await;
        Self {
            state,
            users,
            owned,
            process,
            random,
            operator,
            site,
            seed,
            started: 1,
            _rollouts: rollouts,
        }
    }

    /// Starts another process of the operator, which is the leader from now on, and returns the previous one.
    pub(crate) async fn replace_process(&mut self) -> RunningProcess {
        let next = RunningProcess::start(self.started, &self.state, &self.site, self.operator);
        let next = next.await;
        self.started += 1;
        std::mem::replace(&mut self.process, next)
    }

    /// Triggers a reconciliation of every object, as a resync does.
    pub(crate) fn resync(&self) {
        for name in Workload::names() {
            self.enqueue(name);
        }
    }

    /// Triggers a reconciliation of an object.
    pub(crate) fn enqueue(&self, name: &str) {
        let namespace = self.site.namespace.as_deref();
        self.process.enqueue(namespace, name);
    }

    /// Waits until nothing happens any more, or a process has been interrupted, but not for long.
    pub(crate) async fn settle(&self, limit: Duration) {
        let state = &self.process.state;
        let interruption = state.interruption();
        until_quiet(limit, QUIET, || {
            let is_interrupted = interruption.borrow().is_some();
            if is_interrupted {
                0
            } else {
                self.state.journal.activity()
            }
        })
        .await;
    }

    /// Removes the owned objects of deleted owners, as the garbage collector does.
    pub(crate) async fn collect_garbage(&self) {
        let listed = self.users.api.list(&ListParams::default()).await;
        let listed = listed.expect("the API server lists the objects");
        let uids: BTreeSet<_> = listed.iter().filter_map(ResourceExt::uid).collect();
        for (resource, object) in self.owned.list_without(self.users.related.known()).await {
            self.owned.collect(&resource, &object, &uids).await;
        }
    }

    /// Waits until what exists is what was asked for. Without a change by another client since `calm_since`, the operator
    /// must get there without a resync.
    pub(crate) async fn converge(
        &self,
        phase: &'static str,
        calm_since: u64,
    ) -> Result<(), Box<Failure>> {
        let before = self.state.reconciliations();
        let started = Instant::now();
        let mut is_resynced = false;
        loop {
            self.check_violations(phase)?;
            let mut found = differences(&self.users, &self.owned).await;
            if found.is_empty() {
                return Ok(());
            }
            for (name, count) in self.state.reconciliations() {
                let count = count - before.get(&name).copied().unwrap_or_default();
                if count > MAX_RECONCILIATIONS {
                    found.sort_by_key(|it| it.object != name);
                    let all = found
                        .iter()
                        .map(|it| format!("{}: {}", it.property, it.found));
                    let found = all.collect::<Vec<_>>().join("; ");
                    let violation = Violation::new(
                        Property::CallRate,
                        &name,
                        format!("the desired state within {MAX_RECONCILIATIONS} reconciliations"),
                        format!("{count} reconciliations, and still: {found}"),
                    );
                    return Err(self.failure(phase, vec![violation]));
                }
            }
            let activity = || self.state.journal.activity();
            let is_quiet = until_quiet(Duration::from_millis(80), QUIET, activity).await;
            if is_quiet && self.process.is_idle() {
                // The differences may be older than the last activity.
                found = differences(&self.users, &self.owned).await;
                if found.is_empty() {
                    return Ok(());
                }
                let is_excused = |it: &Violation| {
                    it.object.is_empty() || self.state.is_disturbed_since(&it.object, calm_since)
                };
                if !is_resynced && found.iter().all(is_excused) {
                    is_resynced = true;
                    self.resync();
                    continue;
                }
                let last = activity();
                let has_moved = until(STUCK, || activity() != last || !self.process.is_idle());
                if !has_moved.await {
                    found = differences(&self.users, &self.owned).await;
                    if found.is_empty() {
                        return Ok(());
                    }
                    return Err(self.failure(phase, found));
                }
            }
            if started.elapsed() > DEADLINE {
                return Err(self.failure(phase, found));
            }
        }
    }

    /// Returns a failure if a property was broken in passing.
    pub(crate) fn check_violations(&self, phase: &'static str) -> Result<(), Box<Failure>> {
        match self.state.first_violation() {
            Some(violation) => Err(self.failure(phase, vec![violation])),
            None => Ok(()),
        }
    }

    /// Returns a failure if a secret value is where it must not be.
    pub(crate) async fn check_secrets(&self, phase: &'static str) -> Result<(), Box<Failure>> {
        let namespace = self.site.namespace.as_deref();
        let found = secrets::leaks(&self.users, &self.owned, &self.site.client, namespace).await;
        if found.is_empty() {
            return Ok(());
        }
        Err(self.failure(phase, found))
    }

    /// Returns the report of broken properties.
    pub(crate) fn failure(&self, phase: &'static str, mut all: Vec<Violation>) -> Box<Failure> {
        let violation = all.remove(0);
        Box::new(Failure {
            seed: self.seed,
            journal: self.state.journal.last_of(&violation.object, JOURNAL),
            violation,
            others: all,
            phase,
        })
    }
}

/// Returns the types of the owned objects: those that the operator declares and those that the author expects.
fn owned_types<R: Reconciler>(
    state: &TrialState,
    kind: &ApiResource,
    declared: &[OwnedType],
) -> Vec<ApiResource> {
    let mut example = R::Kind::example();
    example["apiVersion"] = kind.api_version.clone().into();
    example["kind"] = kind.kind.clone().into();
    example["metadata"] =
        serde_json::json!({"name": "example", "namespace": "default", "uid": "0"});
    let expected = (state.expectations.owned)(&example);
    let expected = expected.iter().map(owned_objects::resource);
    let declared = declared.iter().map(|type_| type_.api_resource().clone());
    let mut types: Vec<_> = expected.chain(declared).collect();
    types.sort_by(|a, b| (&a.api_version, &a.kind).cmp(&(&b.api_version, &b.kind)));
    types.dedup();
    types
}

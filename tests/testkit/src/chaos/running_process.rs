//! Simulated process with a running controller.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use kube::Client;
use lockstep_controller::{
    Config, Controller, ControllerRegistry, Metrics, OwnedType, Reconciler, Runnable,
    SimulatedElection,
};
use lockstep_shared_validation::{PolicyHandle, Ruleset, ValidatedResource};
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::chaos::api_client;
use crate::chaos::external_proxy::ExternalProxy;
use crate::chaos::observed_reconciler::ObservedReconciler;
use crate::chaos::polling::until;
use crate::chaos::process::Process;
use crate::chaos::process_state::{Interruption, ProcessState};
use crate::chaos::trial_state::TrialState;

/// Back-off of the controllers.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(160));

/// Duration of a lease: longer than any trial.
const LEASE: Duration = Duration::from_hours(1);

/// Time limit for what takes milliseconds on an idle machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// Place at which the controllers of a trial work.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) client: Client,
    /// Namespace of the objects; none if the kind is cluster-scoped.
    pub(crate) namespace: Option<String>,
    /// If true, the controller is restricted to the namespace.
    pub(crate) is_restricted: bool,
    pub(crate) plural: String,
}

/// Simulated process with a running controller. It is killed when the value is dropped.
pub(crate) struct RunningProcess {
    pub(crate) state: Arc<ProcessState>,
    /// Types of the objects that the operator owns.
    pub(crate) owns: Vec<OwnedType>,
    registry: ControllerRegistry,
    controller: String,
    election: SimulatedElection,
    stop: watch::Sender<bool>,
    run: JoinHandle<()>,
    _proxy: Option<ExternalProxy>,
}

impl RunningProcess {
    /// Starts a process that is the leader.
    pub(crate) async fn start<R: Reconciler>(
        id: usize,
        trial: &Arc<TrialState>,
        site: &Site,
        operator: &(dyn Fn(&Process) -> R + Send + Sync),
    ) -> Self {
        let state = Arc::new(ProcessState::new(id, Arc::clone(trial)));
        let proxy = match trial.system.http() {
            Some(backend) => Some(ExternalProxy::start(backend, &state).await),
            None => None,
        };
        let election = SimulatedElection::default();
        election.win(LEASE);
        let process = Process {
            client: api_client::client(&site.client, &state, &site.plural),
            leadership: election.leadership(),
            external_url: proxy.as_ref().map_or_else(String::new, ExternalProxy::url),
            state: Arc::clone(&state),
        };
        let reconciler = ObservedReconciler {
            inner: operator(&process),
            process: Arc::clone(&state),
        };
        let owns = reconciler.inner.owns();
        let registry = ControllerRegistry::default();
        let ruleset = Ruleset::<R::Kind>::compile().expect("the rules compile");
        let controller = Controller::new(
            "operator",
            process.client(),
            Arc::new(ruleset),
            reconciler,
            Metrics::register(&mut Registry::default()),
            PolicyHandle::default(),
        );
        let config = Config {
            min_retry_delay: RETRY.0,
            max_retry_delay: RETRY.1,
            ..Config::default()
        };
        let controller = controller.with_config(config).register_in(&registry);
        let controller = match &site.namespace {
            Some(namespace) if site.is_restricted => controller.namespaced(namespace),
            _ => controller,
        };
        trial
            .journal
            .add(Some(id), &[], "started as the leader".to_owned());
        let (stop, stopping) = watch::channel(false);
        let run = Interruptible {
            run: Box::new(controller).run(stopping),
            state: Arc::clone(&state),
        };
        Self {
            state,
            owns,
            registry,
            controller: R::Kind::KIND.to_lowercase(),
            election,
            stop,
            run: tokio::spawn(run),
            _proxy: proxy,
        }
    }

    /// Triggers a reconciliation of an object, as a resync does.
    pub(crate) fn enqueue(&self, namespace: Option<&str>, name: &str) {
        // A controller that is still starting reconciles every object.
        let _ = self.registry.enqueue(&self.controller, namespace, name);
    }

    /// Returns true if the controller works on nothing, and nothing waits for less than a second.
    pub(crate) fn is_idle(&self) -> bool {
        let queues = self.registry.queues();
        let queues = queues.as_object().into_iter().flatten();
        let is_empty = |list: &Value| list.as_array().is_some_and(Vec::is_empty);
        let mut queues = queues.map(|(_, queue)| queue);
        self.state.is_idle()
            && queues.all(|queue| {
                let due = queue["due"].as_array().into_iter().flatten();
                let mut seconds = due.map(|due| due["seconds"].as_u64().unwrap_or_default());
                is_empty(&queue["working"])
                    && is_empty(&queue["ready"])
                    && seconds.all(|seconds| seconds > 0)
            })
    }

    /// Ends the leadership of the process, as its expired lease does.
    pub(crate) fn lose_leadership(&self) {
        self.election.lose();
    }

    /// Waits until the servers have executed all calls of the process that are on their way.
    pub(crate) async fn until_executed(&self) {
        let is_executed = until(DEADLINE, || !self.state.is_executing()).await;
        assert!(is_executed, "the servers answer");
    }

    /// Stops the controller in an orderly way: reconciliations in progress finish.
    pub(crate) async fn stop(&self) {
        let id = Some(self.state.id);
        self.state.trial.journal.add(id, &[], "stopping".to_owned());
        self.stop.send_replace(true);
        // One that does not finish in time is killed, as the kubelet does.
        until(DEADLINE, || self.run.is_finished()).await;
        self.kill().await;
    }

    /// Ends the process without finishing anything. Calls that a server has received are executed nevertheless.
    pub(crate) async fn kill(&self) {
        self.state.interrupt(Interruption::Kill);
        self.run.abort();
        let has_ended = until(DEADLINE, || self.run.is_finished()).await;
        assert!(has_ended, "the controller can be interrupted");
        self.until_executed().await;
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        self.state.interrupt(Interruption::Kill);
        self.run.abort();
    }
}

/// Controller that makes no progress while its process is frozen.
struct Interruptible {
    run: Pin<Box<dyn Future<Output = ()> + Send>>,
    state: Arc<ProcessState>,
}

impl Future for Interruptible {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.state.must_not_run(context.waker()) {
            return Poll::Pending;
        }
        self.run.as_mut().poll(context)
    }
}

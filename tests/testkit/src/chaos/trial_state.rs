//! State that everything in one trial shares.

use std::collections::{BTreeMap, HashMap};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::chaos::expectations::Expectations;
use crate::chaos::external_system::ExternalSystem;
use crate::chaos::fault_plan::FaultPlan;
use crate::chaos::journal::Journal;
use crate::chaos::violation::{Property, Violation};

/// State that everything in one trial shares.
pub(crate) struct TrialState {
    pub(crate) journal: Journal,
    pub(crate) faults: FaultPlan,
    pub(crate) system: Arc<dyn ExternalSystem>,
    pub(crate) expectations: Arc<Expectations>,
    observed: Mutex<Observed>,
}

/// Shortest delay, in milliseconds, that an operator may ask for again and again.
const SHORTEST_DELAY: u128 = 100;

/// Number of shorter delays, one after the other, that count as a loop without a back-off.
const MAX_SHORT_DELAYS: u64 = 12;

/// Delay that the last reconciliation of an object has asked for.
#[derive(Clone, Copy, Default)]
struct RequestedDelay {
    milliseconds: u128,
    /// Number of delays without a back-off up to this one.
    short: u64,
}

/// Change by others in what belongs to an object. The system may execute it at any time between its beginning and its end.
#[derive(Clone, Copy)]
enum Disturbance {
    InProgress,
    /// Journal's number at the end.
    Ended(u64),
}

/// Observations of a trial.
#[derive(Default)]
struct Observed {
    violations: Vec<Violation>,
    /// Writes since they were last taken: to the API server and to the external system.
    writes: Vec<String>,
    /// Specs by UID and generation.
    specs: HashMap<(String, i64), Value>,
    /// Last changes by others in what belongs to an object.
    disturbed: HashMap<String, Disturbance>,
    /// Number of reconciliations by object.
    reconciliations: BTreeMap<String, u64>,
    /// Delay that the last reconciliation of an object has asked for.
    requested_delays: BTreeMap<String, RequestedDelay>,
}

impl TrialState {
    pub(crate) fn new(
        seed: u64,
        system: Arc<dyn ExternalSystem>,
        expectations: Arc<Expectations>,
    ) -> Self {
        Self {
            journal: Journal::default(),
            faults: FaultPlan::new(seed),
            system,
            expectations,
            observed: Mutex::default(),
        }
    }

    /// Records a broken property.
    pub(crate) fn violate(&self, violation: Violation) {
        let text = format!("BROKEN {}: {}", violation.property, violation.found);
        self.journal
            .add(None, std::slice::from_ref(&violation.object), text);
        self.observed().violations.push(violation);
    }

    /// Returns the first broken property.
    pub(crate) fn first_violation(&self) -> Option<Violation> {
        self.observed().violations.first().cloned()
    }

    /// Records a write of the operator.
    pub(crate) fn record_write(&self, text: String) {
        self.observed().writes.push(text);
    }

    /// Returns the writes since the last call.
    pub(crate) fn take_writes(&self) -> Vec<String> {
        std::mem::take(&mut self.observed().writes)
    }

    /// Records the spec of a generation.
    pub(crate) fn record_spec(&self, object: &Value) {
        let metadata = &object["metadata"];
        let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
        let generation = metadata["generation"].as_i64().unwrap_or_default();
        let mut observed = self.observed();
        let specs = &mut observed.specs;
        specs.insert((uid, generation), object["spec"].clone());
    }

    /// Returns the spec of a generation, if it is known.
    pub(crate) fn spec_of(&self, uid: &str, generation: i64) -> Option<Value> {
        let key = (uid.to_owned(), generation);
        self.observed().specs.get(&key).cloned()
    }

    /// Returns all resources of the external system, by their ids.
    pub(crate) async fn resources(&self) -> BTreeMap<String, Value> {
        self.call_system(|system| system.resources()).await
    }

    /// Creates, replaces or removes a resource, as another client of the system does.
    pub(crate) async fn set_resource(&self, id: &str, resource: Option<Value>) {
        let id = id.to_owned();
        self.call_system(move |system| system.set(&id, resource))
            .await;
    }

    /// Changes a resource that belongs to an object, as another client of the system does.
    pub(crate) async fn disturb(&self, object: &str, id: &str, resource: Option<Value>) {
        self.record_disturbance(object, Disturbance::InProgress);
        self.set_resource(id, resource).await;
        self.record_disturbance(object, Disturbance::Ended(self.journal.activity()));
    }

    fn record_disturbance(&self, object: &str, disturbance: Disturbance) {
        let mut observed = self.observed();
        observed.disturbed.insert(object.to_owned(), disturbance);
    }

    /// Calls the author's simulator. A call may block, for example until a process answers: it must not keep the operator from
    /// running.
    async fn call_system<T: Send + 'static>(
        &self,
        call: impl FnOnce(&dyn ExternalSystem) -> T + Send + 'static,
    ) -> T {
        let system = Arc::clone(&self.system);
        let called = tokio::task::spawn_blocking(move || call(&*system)).await;
        called.unwrap_or_else(|error| resume_unwind(error.into_panic()))
    }

    /// Returns true if another client has changed what belongs to an object since this time, or is changing it.
    pub(crate) fn is_disturbed_since(&self, object: &str, since: u64) -> bool {
        match self.observed().disturbed.get(object) {
            Some(Disturbance::InProgress) => true,
            Some(Disturbance::Ended(at)) => *at >= since,
            None => false,
        }
    }

    /// Records the beginning of a reconciliation.
    pub(crate) fn count_reconciliation(&self, object: &str) {
        let mut observed = self.observed();
        *observed
            .reconciliations
            .entry(object.to_owned())
            .or_default() += 1;
    }

    /// Returns the number of reconciliations by object.
    pub(crate) fn reconciliations(&self) -> BTreeMap<String, u64> {
        self.observed().reconciliations.clone()
    }

    /// Records the delay that a reconciliation has asked for.
    pub(crate) fn record_requested_delay(&self, object: &str, milliseconds: u128) {
        let mut observed = self.observed();
        let last = observed.requested_delays.entry(object.to_owned());
        let last = last.or_default();
        last.milliseconds = milliseconds;
        last.short = if milliseconds < SHORTEST_DELAY {
            last.short + 1
        } else {
            0
        };
        if last.short == MAX_SHORT_DELAYS {
            drop(observed);
            self.violate(Violation::new(
                Property::CallRate,
                object,
                "a back-off",
                format!("{MAX_SHORT_DELAYS} reconciliations, each of which asks for the next one after {milliseconds} ms"),
            ));
        }
    }

    /// Returns the delay that the last reconciliation of an object has asked for, in milliseconds.
    pub(crate) fn requested_delay(&self, object: &str) -> Option<u128> {
        let observed = self.observed();
        observed
            .requested_delays
            .get(object)
            .map(|it| it.milliseconds)
    }

    fn observed(&self) -> MutexGuard<'_, Observed> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! State of one simulated process of the operator: the calls pass through it, and it can be killed or frozen at any of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::chaos::fault_plan::{CallFault, Side};
use crate::chaos::trial_state::TrialState;
use crate::chaos::violation::{Property, Violation};

/// Number of calls of one reconciliation above which it counts as unbounded.
const MAX_CALLS: f64 = 60.0;

/// End or interruption of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// The process ends without finishing anything.
    Kill,
    /// The process is frozen, and may continue later.
    Freeze,
}

/// Calls at which a trap may spring.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counted {
    /// All calls.
    All,
    /// Calls to the external system.
    External,
    /// Calls to the external system that change nothing: many operators decide on their results what to write.
    ExternalReads,
}

impl Counted {
    fn includes(self, call: &CallRecord) -> bool {
        match self {
            Self::All => true,
            Self::External => call.side == Side::External,
            Self::ExternalReads => call.side == Side::External && !call.is_write,
        }
    }
}

/// Interruption at one of the next calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trap {
    pub(crate) interruption: Interruption,
    /// Number of calls that still pass.
    pub(crate) calls: u32,
    pub(crate) counted: Counted,
    /// If true, the call is executed, and the process is interrupted before it gets the answer.
    pub(crate) is_after: bool,
}

/// Call of the operator.
#[derive(Clone, Debug)]
pub(crate) struct CallRecord {
    pub(crate) side: Side,
    /// Description of the call, for the journal.
    pub(crate) text: String,
    /// Identification of the call, without ids that the server has chosen: the same in each run of a seed.
    pub(crate) key: String,
    /// Object that is called; none if it is that of the reconciliation in progress.
    pub(crate) object: Option<String>,
    pub(crate) is_write: bool,
}

/// Answer that chaos gives instead of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InjectedAnswer {
    ConnectionLost,
    Status(u16),
}

/// Reconciliations of a process.
#[derive(Default)]
struct Reconciliations {
    /// Number of calls of each that is in progress, by object.
    active: BTreeMap<String, f64>,
    /// Journal's number at the beginning of the last one of each object.
    began: BTreeMap<String, u64>,
}

/// State of one simulated process.
pub(crate) struct ProcessState {
    pub(crate) id: usize,
    pub(crate) trial: Arc<TrialState>,
    frozen: watch::Sender<bool>,
    /// Wakes the controller after it was frozen.
    waker: Mutex<Option<Waker>>,
    is_dead: AtomicBool,
    is_superseded: AtomicBool,
    trap: Mutex<Option<Trap>>,
    interrupted: watch::Sender<Option<Interruption>>,
    executing: AtomicUsize,
    reconciliations: Mutex<Reconciliations>,
    /// Changes when all watches are cut.
    pub(crate) cuts: watch::Sender<u64>,
    /// If true, no watch delivers anything.
    pub(crate) holds_watches: watch::Sender<bool>,
}

impl ProcessState {
    pub(crate) fn new(id: usize, trial: Arc<TrialState>) -> Self {
        Self {
            id,
            trial,
            frozen: watch::Sender::new(false),
            waker: Mutex::default(),
            is_dead: AtomicBool::new(false),
            is_superseded: AtomicBool::new(false),
            trap: Mutex::default(),
            interrupted: watch::Sender::new(None),
            executing: AtomicUsize::new(0),
            reconciliations: Mutex::default(),
            cuts: watch::Sender::new(0),
            holds_watches: watch::Sender::new(false),
        }
    }

    /// Passes a call to the server, unless a fault or an interruption prevents it. A call that was passed on is executed
    /// even if the process does not survive it.
    pub(crate) async fn call<T: Send + 'static>(
        self: &Arc<Self>,
        call: CallRecord,
        execute: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, InjectedAnswer> {
        let objects = match &call.object {
            Some(object) => vec![object.clone()],
            None => self.active_objects(),
        };
        let key = format!("{} {}", call.key, objects.join(","));
        let trap = self.step_trap(&call);
        if let Some(trap) = trap.filter(|trap| !trap.is_after) {
            self.spring(trap, &objects, &call);
            if call.side == Side::External {
                // Executed later than the lease allows, it would be a fault that no operator survives.
                return Err(InjectedAnswer::ConnectionLost);
            }
            self.until_thawed().await;
        }
        let is_superseded = self.is_superseded.load(Ordering::SeqCst);
        if is_superseded && call.side == Side::Api {
            self.interrupt(Interruption::Kill);
        }
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
        self.count_call(&objects);
        let faults = &self.trial.faults;
        let fault = faults.choose(call.side, &key, call.is_write);
        let shown = fault.map_or_else(String::new, |fault| format!(" [{fault:?}]"));
        self.note(&objects, &format!("{}{shown}", call.text));
        let answer = match fault {
            Some(CallFault::NotExecuted) => Err(InjectedAnswer::ConnectionLost),
            Some(CallFault::Refused(status)) => Err(InjectedAnswer::Status(status)),
            fault => {
                if call.is_write {
                    self.trial.record_write(call.text.clone());
                }
                let delay = match fault {
                    Some(CallFault::Delayed(time)) => time,
                    _ => Duration::ZERO,
                };
                Ok(self.execute(delay, execute).await)
            }
        };
        if let Some(trap) = trap.filter(|trap| trap.is_after) {
            self.spring(trap, &objects, &call);
            // An answer over HTTP has arrived by the time at which the process continues.
            if call.side == Side::Api {
                self.until_thawed().await;
            }
        }
        if is_superseded && call.is_write {
            self.interrupt(Interruption::Kill);
        }
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
        match fault {
            Some(CallFault::AnswerLost) => Err(InjectedAnswer::ConnectionLost),
            Some(CallFault::FailedAfterwards(status)) => Err(InjectedAnswer::Status(status)),
            Some(CallFault::TimedOut(time)) => {
                sleep(time).await;
                Err(InjectedAnswer::ConnectionLost)
            }
            _ => answer,
        }
    }

    fn spring(&self, trap: Trap, objects: &[String], call: &CallRecord) {
        let place = if trap.is_after { "after" } else { "before" };
        self.note(
            objects,
            &format!("{:?} {place} {}", trap.interruption, call.text),
        );
        self.interrupt(trap.interruption);
    }

    /// Executes a call on a task of its own: on its way and in the server, it does not depend on the process.
    async fn execute<T: Send + 'static>(
        self: &Arc<Self>,
        delay: Duration,
        execute: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let executing = Executing::begin(self);
        let executed = tokio::spawn(async move {
            let _executing = executing;
            if !delay.is_zero() {
                sleep(delay).await;
            }
            execute.await
        });
        executed.await.expect("a call does not panic")
    }

    /// Sets the interruption at one of the next calls.
    pub(crate) fn set_trap(&self, trap: Option<Trap>) {
        *self.trap.lock().unwrap_or_else(PoisonError::into_inner) = trap;
    }

    fn step_trap(&self, call: &CallRecord) -> Option<Trap> {
        let mut trap = self.trap.lock().unwrap_or_else(PoisonError::into_inner);
        let set = trap.as_mut()?;
        if !set.counted.includes(call) {
            return None;
        }
        if set.calls == 0 {
            return trap.take();
        }
        set.calls -= 1;
        None
    }

    /// Interrupts the process now.
    pub(crate) fn interrupt(&self, interruption: Interruption) {
        match interruption {
            Interruption::Kill => self.is_dead.store(true, Ordering::SeqCst),
            Interruption::Freeze => drop(self.frozen.send_replace(true)),
        }
        self.interrupted.send_replace(Some(interruption));
    }

    /// Lets a frozen process continue that is not the leader any more. It ends once it notices that: after its next write to
    /// the external system, which is executed, or before its next call to the API server.
    pub(crate) fn supersede(&self) {
        self.is_superseded.store(true, Ordering::SeqCst);
        self.thaw();
    }

    /// Lets a frozen process continue.
    pub(crate) fn thaw(&self) {
        self.interrupted.send_replace(None);
        self.frozen.send_replace(false);
        let waker = self
            .waker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        waker.inspect(Waker::wake_by_ref);
    }

    /// Returns true if the controller must not be polled; it is woken once that changes.
    pub(crate) fn must_not_run(&self, waker: &Waker) -> bool {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        *self.frozen.borrow() || self.is_dead()
    }

    /// Returns the interruption that has occurred.
    pub(crate) fn interruption(&self) -> watch::Receiver<Option<Interruption>> {
        self.interrupted.subscribe()
    }

    /// Returns true if the process was killed: none of its calls reaches a server.
    pub(crate) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::SeqCst)
    }

    /// Returns true while a server executes a call of the process.
    pub(crate) fn is_executing(&self) -> bool {
        self.executing.load(Ordering::SeqCst) > 0
    }

    async fn until_thawed(&self) {
        let mut frozen = self.frozen.subscribe();
        // An error means that the sender is gone.
        let _ = frozen.wait_for(|frozen| !frozen).await;
    }

    /// Records the beginning of a reconciliation.
    pub(crate) fn begin(&self, object: &str, text: &str) {
        let now = self.trial.journal.activity();
        let mut all = self.reconciliations();
        all.active.insert(object.to_owned(), 0.0);
        all.began.insert(object.to_owned(), now);
        drop(all);
        self.trial.count_reconciliation(object);
        self.note(&[object.to_owned()], text);
    }

    /// Records the end of the operator's own step.
    pub(crate) fn end(&self, object: &str, text: &str) {
        self.reconciliations().active.remove(object);
        self.note(&[object.to_owned()], text);
    }

    /// Returns the journal's number at the beginning of the last reconciliation of an object.
    pub(crate) fn began(&self, object: &str) -> Option<u64> {
        self.reconciliations().began.get(object).copied()
    }

    /// Returns true if no step is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.reconciliations().active.is_empty() && !self.is_executing()
    }

    /// Returns the objects whose reconciliations are in progress.
    pub(crate) fn active_objects(&self) -> Vec<String> {
        self.reconciliations().active.keys().cloned().collect()
    }

    /// Counts a call. If several reconciliations are in progress, each of them may have made it, and gets its share.
    fn count_call(&self, objects: &[String]) {
        let share = u32::try_from(objects.len()).map_or(0.0, |count| 1.0 / f64::from(count.max(1)));
        let mut all = self.reconciliations();
        let mut exceeded = None;
        for object in objects {
            let Some(calls) = all.active.get_mut(object) else {
                continue;
            };
            let before = *calls;
            *calls += share;
            if before < MAX_CALLS && *calls >= MAX_CALLS {
                exceeded = Some(object);
            }
        }
        drop(all);
        if let Some(object) = exceeded {
            self.trial.violate(Violation::new(
                Property::CallRate,
                object,
                format!("fewer than {MAX_CALLS} calls in one reconciliation, and a back-off between reconciliations"),
                format!("{MAX_CALLS} calls in one reconciliation"),
            ));
        }
    }

    fn note(&self, objects: &[String], text: &str) {
        let journal = &self.trial.journal;
        journal.add(Some(self.id), objects, text.to_owned());
    }

    fn reconciliations(&self) -> MutexGuard<'_, Reconciliations> {
        let all = self.reconciliations.lock();
        all.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard that exists while a server executes a call.
struct Executing(Arc<ProcessState>);

impl Executing {
    fn begin(process: &Arc<ProcessState>) -> Self {
        process.executing.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(process))
    }
}

impl Drop for Executing {
    fn drop(&mut self) {
        self.0.executing.fetch_sub(1, Ordering::SeqCst);
    }
}

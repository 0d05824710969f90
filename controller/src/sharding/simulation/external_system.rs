//! Simulated external system, which records who calls for which object.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

/// Longest time that a call takes.
pub(crate) const CALL: Duration = Duration::from_secs(3);

/// Work that is done by one replica for all.
pub(crate) const TASKS: &str = "tasks";

/// UIDs of the objects.
pub(crate) fn uids() -> impl Iterator<Item = String> {
    (0..24).map(|at| format!("5e0c6a6c-7d6a-4f8e-9d55-{at:012x}"))
}

#[derive(Clone)]
pub(crate) struct ExternalSystem(Arc<Mutex<Record>>);

struct Record {
    rng: Rng,
    objects: HashMap<String, Object>,
    superseded: HashSet<u64>,
    violation: Option<String>,
    /// Replicas that wait for responses without a limit, and get none.
    waiting: HashSet<String>,
    sessions: u64,
    calls: usize,
}

#[derive(Default)]
struct Object {
    /// Replicas whose calls are being processed.
    in_progress: Vec<String>,
    /// Latest session, and its replica.
    session: Option<(u64, String)>,
    last: Option<Instant>,
}

impl ExternalSystem {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Record {
            rng: Rng::with_seed(seed),
            objects: HashMap::new(),
            superseded: HashSet::new(),
            violation: None,
            waiting: HashSet::new(),
            sessions: 0,
            calls: 0,
        })))
    }

    /// Returns a random time below a limit.
    pub(crate) fn time(&self, limit: Duration) -> Duration {
        limit.mul_f64(self.0.lock().rng.f64())
    }

    /// Begins a reconciliation.
    pub(crate) fn session(&self) -> u64 {
        let mut record = self.0.lock();
        record.sessions += 1;
        record.sessions
    }

    /// Calls the system. The call is processed to its end, even if the future is dropped.
    pub(crate) async fn call(&self, object: &str, replica: &str, session: u64) {
        self.0.lock().begin(object, replica, session);
        let (system, time) = (self.clone(), self.time(CALL.mul_f64(0.9)));
        let (object, caller) = (object.to_owned(), replica.to_owned());
        let processed = tokio::spawn(async move {
            sleep(time).await;
            system.0.lock().end(&object, &caller);
        });
        processed.await.expect("the call is processed");
        let is_answered = !self.0.lock().waiting.contains(replica);
        if !is_answered {
            std::future::pending::<()>().await;
        }
    }

    /// Loses the responses to a replica, which waits for them without a limit.
    pub(crate) fn never_answer(&self, replica: &str) {
        self.0.lock().waiting.insert(replica.to_owned());
    }

    /// Checks that no two replicas have worked on an object at the same time, and that each object had a call recently.
    pub(crate) fn check(&self, recently: Duration, what: &str) {
        let record = self.0.lock();
        assert_eq!(record.violation, None, "{what}, in {} calls", record.calls);
        for object in uids().chain([TASKS.to_owned()]) {
            let last = record.objects.get(&object).and_then(|object| object.last);
            let since = last.map(|last| last.elapsed());
            let is_recent = since.is_some_and(|since| since < recently);
            assert!(
                is_recent,
                "{what}: the last call for {object} was {since:?} ago"
            );
        }
    }
}

impl Record {
    fn begin(&mut self, name: &str, replica: &str, session: u64) {
        self.calls += 1;
        let object = self.objects.entry(name.to_owned()).or_default();
        let mut violation = None;
        if let Some(other) = object.in_progress.iter().find(|it| *it != replica) {
            violation = Some(format!(
                "{replica} and {other} call for {name} at the same time"
            ));
        }
        if self.superseded.contains(&session) {
            let latest = &object.session;
            violation = Some(format!("{replica} continues with {name} after {latest:?}"));
        }
        if object
            .session
            .as_ref()
            .is_none_or(|(latest, _)| *latest != session)
        {
            let began = Some((session, replica.to_owned()));
            if let Some((before, other)) = std::mem::replace(&mut object.session, began)
                && other != replica
            {
                self.superseded.insert(before);
            }
        }
        object.in_progress.push(replica.to_owned());
        object.last = Some(Instant::now());
        if self.violation.is_none() {
            self.violation = violation;
        }
    }

    fn end(&mut self, name: &str, replica: &str) {
        let object = self.objects.entry(name.to_owned()).or_default();
        let position = object.in_progress.iter().position(|it| it == replica);
        position.map(|at| object.in_progress.remove(at));
    }
}

//! Phases of a trial without faults.

use std::time::Duration;

use lockstep_controller::Reconciler;

use crate::chaos::failure::Failure;
use crate::chaos::polling::{until, until_quiet};
use crate::chaos::trial::Trial;
use crate::chaos::violation::{Property, Violation};
use crate::chaos::workload::Workload;

/// Number of resyncs of the steady state.
const RESYNCS: usize = 2;

/// Time limit for the reconciliations of a resync.
const LIMIT: Duration = Duration::from_secs(5);

/// Shortest delay after which an object in its desired state may be reconciled again, in milliseconds.
const SHORTEST_RESYNC: u128 = 5_000;

const AFTER_FAULTS: &str = "after the faults had ended";
const CHANGES: &str = "changes without faults";
const DRIFT: &str = "repair of changes by other clients, without faults";
const STEADY: &str = "steady state";
const DELETION: &str = "deletion without faults";

impl<R: Reconciler> Trial<'_, R> {
    /// Checks all properties without faults.
    pub(crate) async fn run_calm_phases(&mut self) -> Result<(), Box<Failure>> {
        self.converge(AFTER_FAULTS, 0).await?;
        self.check_secrets(AFTER_FAULTS).await?;
        self.users.vacate_all();
        self.resync();
        for name in Workload::names() {
            if self.users.wanted[name].spec.is_none() {
                self.users.create_where_free(name).await;
            }
        }
        self.converge(AFTER_FAULTS, 0).await?;
        let since = self.state.journal.activity();
        for name in Workload::names() {
            self.users.change(name).await;
        }
        self.converge(CHANGES, since).await?;
        self.check_secrets(CHANGES).await?;
        for name in Workload::names() {
            self.users.drift(name).await;
            self.users.tamper(name).await;
            self.enqueue(name);
        }
        self.converge(DRIFT, since).await?;
        self.steady_state().await?;
        let since = self.state.journal.activity();
        for name in Workload::names() {
            self.users.delete(name).await;
        }
        self.converge(DELETION, since).await
    }

    /// Checks that reconciliations of objects in their desired state write nothing, also after a restart.
    async fn steady_state(&mut self) -> Result<(), Box<Failure>> {
        self.quiet().await;
        self.process.stop().await;
        self.state.take_writes();
        let before = self.state.reconciliations();
        self.replace_process().await;
        self.reconciled_since(&before).await;
        for _ in 0..RESYNCS {
            let before = self.state.reconciliations();
            self.resync();
            self.reconciled_since(&before).await;
        }
        let writes = self.state.take_writes();
        if !writes.is_empty() {
            let named = |name: &&str| writes.iter().any(|write| write.contains(name));
            let object = Workload::names().find(named).unwrap_or_default();
            let expected = "no writes of objects in their desired state";
            let violation = Violation::new(Property::Silence, object, expected, writes.join("; "));
            return Err(self.failure(STEADY, vec![violation]));
        }
        for name in Workload::names() {
            let delay = self.state.requested_delay(name).unwrap_or(SHORTEST_RESYNC);
            if delay < SHORTEST_RESYNC {
                let violation = Violation::new(
                    Property::CallRate,
                    name,
                    format!(
                        "a resync of an object in its desired state after {SHORTEST_RESYNC} ms or more"
                    ),
                    format!("a resync after {delay} ms"),
                );
                return Err(self.failure(STEADY, vec![violation]));
            }
        }
        self.check_violations(STEADY)?;
        self.converge(STEADY, 0).await
    }

    /// Waits until every object was reconciled once more.
    async fn reconciled_since(&self, before: &std::collections::BTreeMap<String, u64>) {
        let is_reconciled = || {
            let now = self.state.reconciliations();
            Workload::names().all(|name| now.get(name) > before.get(name))
        };
        // An operator may know that nothing is to be done, without a reconciliation.
        until(LIMIT, is_reconciled).await;
        self.quiet().await;
    }

    async fn quiet(&self) {
        let activity = || self.state.journal.activity();
        until_quiet(LIMIT, Duration::from_millis(60), activity).await;
    }
}

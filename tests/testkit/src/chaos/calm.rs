//! Phases of a trial without faults.

use std::collections::BTreeMap;
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

/// Longest time for which calls fail in a phase.
const LIMIT_WITH_FAULTS: Duration = Duration::from_millis(500);

/// Shortest delay after which an object in its desired state may be reconciled again, in milliseconds.
const SHORTEST_RESYNC: u128 = 5_000;

const AFTER_FAULTS: &str = "after the faults had ended";
const CHANGES: &str = "changes without faults";
const CHANGES_WITH_FAULTS: &str = "changes while calls failed";
const TAMPERING: &str = "repair of owned objects, without faults and without a resync";
const RELATED: &str = "changes of related objects, without faults and without a resync";
const DRIFT: &str = "repair of external resources, without faults and after a resync";
const OTHER_OWNER: &str = "an object that wants what belongs to another owner, without faults";
const STEADY: &str = "steady state";
const DELETION: &str = "deletion without faults";
const DELETION_WITH_FAULTS: &str = "deletion while calls failed";

impl<R: Reconciler> Trial<'_, R> {
    /// Checks all properties without faults.
    pub(crate) async fn run_calm_phases(&mut self) -> Result<(), Box<Failure>> {
        self.converge(AFTER_FAULTS, 0).await?;
        self.check_secrets(AFTER_FAULTS).await?;
        self.users.vacate_all().await;
        self.resync();
        for name in Workload::names() {
            if self.users.wanted[name].spec.is_none() {
                self.users.create_where_free(name).await;
            }
        }
        self.converge(AFTER_FAULTS, 0).await?;
        self.changes().await?;
        self.repairs().await?;
        self.steady_state().await?;
        self.other_owners().await?;
        self.deletions().await
    }

    /// Changes all objects: without faults, and then while calls fail.
    async fn changes(&mut self) -> Result<(), Box<Failure>> {
        let since = self.state.journal.activity();
        for name in Workload::names() {
            self.users.change(name).await;
        }
        self.converge(CHANGES, since).await?;
        self.state.faults.enlarge_share();
        self.state.faults.set_active(true);
        for name in Workload::names() {
            self.users.change(name).await;
        }
        self.settle(LIMIT_WITH_FAULTS).await;
        self.state.faults.set_active(false);
        self.converge(CHANGES_WITH_FAULTS, since).await?;
        self.check_secrets(CHANGES_WITH_FAULTS).await
    }

    /// Changes what belongs to the objects. The watches report changes in the cluster, and a resync those outside.
    async fn repairs(&mut self) -> Result<(), Box<Failure>> {
        let since = self.state.journal.activity();
        for name in Workload::names() {
            self.users.tamper(name).await;
        }
        self.converge(TAMPERING, since).await?;
        for name in Workload::names() {
            self.users.disturb_related(name).await;
        }
        self.converge(RELATED, since).await?;
        for name in Workload::names() {
            self.users.drift(name).await;
            self.enqueue(name);
        }
        self.converge(DRIFT, since).await
    }

    /// Lets an object want what belongs to another owner.
    async fn other_owners(&mut self) -> Result<(), Box<Failure>> {
        let since = self.state.journal.activity();
        let name = self.random_name();
        self.users.delete(name).await;
        self.converge(DELETION, since).await?;
        if self.users.create_where_occupied(name).await {
            self.converge(OTHER_OWNER, since).await?;
            if self.random.bool() {
                self.users.delete(name).await;
                self.converge(OTHER_OWNER, since).await?;
            }
            self.users.vacate_all().await;
            self.resync();
        }
        self.converge(OTHER_OWNER, since).await
    }

    /// Deletes all objects: some without faults, and the others while calls fail.
    async fn deletions(&mut self) -> Result<(), Box<Failure>> {
        let since = self.state.journal.activity();
        let without = self.random_name();
        self.users.delete(without).await;
        self.converge(DELETION, since).await?;
        self.state.faults.set_active(true);
        for name in Workload::names() {
            self.users.delete(name).await;
        }
        self.settle(LIMIT_WITH_FAULTS).await;
        self.state.faults.set_active(false);
        self.converge(DELETION_WITH_FAULTS, since).await
    }

    fn random_name(&mut self) -> &'static str {
        let names: Vec<_> = Workload::names().collect();
        names[self.random.usize(..names.len())]
    }

    /// Checks that reconciliations of objects in their desired state write nothing, also after a restart.
    async fn steady_state(&mut self) -> Result<(), Box<Failure>> {
        self.check_delays()?;
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
        self.check_delays()?;
        self.check_violations(STEADY)?;
        self.converge(STEADY, 0).await
    }

    /// Checks that no object in its desired state is reconciled again and again.
    fn check_delays(&self) -> Result<(), Box<Failure>> {
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
        Ok(())
    }

    /// Waits until every object was reconciled once more.
    async fn reconciled_since(&self, before: &BTreeMap<String, u64>) {
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

//! Disruptions of a trial, during which users change objects.

use std::time::Duration;

use lockstep_controller::Reconciler;

use crate::chaos::failure::Failure;
use crate::chaos::polling::until;
use crate::chaos::process_state::{Counted, Interruption, Trap};
use crate::chaos::trial::Trial;
use crate::chaos::workload::Workload;

/// Number of disruptions in one trial.
const COUNT: usize = 3;

/// Largest number of calls before an interruption.
const MAX_CALLS: u32 = 12;

/// Longest time for the effects of a disruption.
const LIMIT: Duration = Duration::from_millis(700);

/// Number of attempts of one object for which an outage lasts.
const ATTEMPTS: u64 = 14;

/// Longest outage.
const OUTAGE: Duration = Duration::from_millis(400);

/// Name of the phase in reports.
pub(crate) const PHASE: &str = "while faults occurred";

/// Disruption of the processes or of the environment.
#[derive(Clone, Copy, Debug)]
enum Disruption {
    None,
    /// The process ends at one of its calls, and another one starts.
    Killed,
    /// The process is stopped in an orderly way, and another one starts.
    Restarted,
    /// The process is frozen at one of its calls, another one becomes the leader, and the first one continues.
    Superseded,
    /// The process is frozen at one of its calls, and continues later.
    Paused,
    /// The external system refuses every call for a while.
    Outage,
    /// All watches end.
    WatchesCut,
    /// The watches deliver nothing for a while: the controller reads old states.
    Stale,
}

const DISRUPTIONS: [Disruption; 13] = [
    Disruption::None,
    Disruption::Killed,
    Disruption::Killed,
    Disruption::Killed,
    Disruption::Restarted,
    Disruption::Superseded,
    Disruption::Superseded,
    Disruption::Superseded,
    Disruption::Superseded,
    Disruption::Paused,
    Disruption::Outage,
    Disruption::WatchesCut,
    Disruption::Stale,
];

impl<R: Reconciler> Trial<'_, R> {
    /// Lets users change objects while faults occur.
    pub(crate) async fn run_disruptions(&mut self) -> Result<(), Box<Failure>> {
        self.state.faults.set_active(true);
        for name in Workload::names() {
            if self.random.u32(..4) > 0 {
                self.users.create(name).await;
            }
        }
        self.settle(LIMIT).await;
        for _ in 0..COUNT {
            let disruption = DISRUPTIONS[self.random.usize(..DISRUPTIONS.len())];
            self.note(&format!("disruption: {disruption:?}"));
            self.disrupt(disruption).await;
            self.collect_garbage().await;
            self.check_violations(PHASE)?;
        }
        self.state.faults.set_active(false);
        self.note("all faults have ended");
        Ok(())
    }

    async fn disrupt(&mut self, disruption: Disruption) {
        match disruption {
            Disruption::None => self.act().await,
            Disruption::Killed => {
                self.interrupt(Interruption::Kill).await;
                self.process.kill().await;
                self.replace_process().await;
            }
            Disruption::Restarted => {
                self.users.act().await;
                self.process.stop().await;
                self.replace_process().await;
            }
            Disruption::Superseded => self.supersede().await,
            Disruption::Paused => {
                self.interrupt(Interruption::Freeze).await;
                for name in self.process.state.active_objects() {
                    self.users.act_on(&name).await;
                }
                self.process.state.thaw();
            }
            Disruption::Outage => self.outage().await,
            Disruption::WatchesCut => {
                self.users.act().await;
                self.process.state.cuts.send_modify(|cuts| *cuts += 1);
                self.act().await;
            }
            Disruption::Stale => {
                self.process.state.holds_watches.send_replace(true);
                self.act().await;
                self.resync();
                self.act().await;
                self.process.state.holds_watches.send_replace(false);
            }
        }
        self.settle(LIMIT).await;
    }

    /// Lets users do one to three things, and waits for the effects.
    async fn act(&mut self) {
        for _ in 0..=self.random.u32(..3) {
            let name = self.users.act().await;
            if self.random.u32(..3) == 0 {
                self.enqueue(name);
            }
        }
        self.settle(LIMIT).await;
    }

    /// Interrupts the process at one of its next calls, or now if it makes none.
    async fn interrupt(&mut self, interruption: Interruption) {
        let trap = Trap {
            interruption,
            calls: self.random.u32(..MAX_CALLS),
            counted: if self.random.bool() {
                Counted::All
            } else {
                Counted::External
            },
            is_after: self.random.bool(),
        };
        self.process.state.set_trap(Some(trap));
        self.act().await;
        self.must_be_interrupted(interruption);
    }

    /// Interrupts the process now, if its trap has not sprung.
    fn must_be_interrupted(&self, interruption: Interruption) {
        let interrupted = self.process.state.interruption();
        if interrupted.borrow().is_none() {
            self.process.state.set_trap(None);
            self.note(&format!("{interruption:?} between two calls"));
            self.process.state.interrupt(interruption);
        }
    }

    /// Moves the leadership away from a process that is frozen, often after it has decided what to write, and lets it
    /// continue until its next call has an answer.
    async fn supersede(&mut self) {
        let trap = Trap {
            interruption: Interruption::Freeze,
            calls: self.random.u32(..3),
            counted: Counted::ExternalReads,
            is_after: true,
        };
        self.process.state.set_trap(Some(trap));
        self.users.create_or_change_any().await;
        self.settle(LIMIT).await;
        self.must_be_interrupted(Interruption::Freeze);
        self.process.lose_leadership();
        // A lease is valid for longer than a call takes.
        self.process.until_executed().await;
        let former = self.replace_process().await;
        // What matters most is what the former leader is about to write.
        let names = former.state.active_objects();
        for name in &names {
            self.users.change_or_delete(name).await;
        }
        let before = self.state.reconciliations();
        let is_reconciled = || {
            let now = self.state.reconciliations();
            names.iter().all(|name| now.get(name) > before.get(name))
        };
        until(LIMIT, is_reconciled).await;
        self.settle(LIMIT).await;
        self.note("the former leader continues");
        former.state.supersede();
        let has_ended = || former.state.is_dead() || former.state.is_idle();
        until(LIMIT, has_ended).await;
        former.kill().await;
        self.note("the former leader has ended");
    }

    /// Lets the external system refuse every call until an object was reconciled a few times.
    async fn outage(&mut self) {
        self.state.faults.set_outage(true);
        let name = self.users.act().await;
        self.enqueue(name);
        let before = self.state.reconciliations();
        let attempts = || {
            let counts = self.state.reconciliations();
            let attempts = |(name, count): (&String, &u64)| {
                count - before.get(name).copied().unwrap_or_default()
            };
            counts.iter().map(attempts).max().unwrap_or_default()
        };
        until(OUTAGE, || attempts() >= ATTEMPTS).await;
        self.state.faults.set_outage(false);
        self.note("the outage has ended");
    }

    fn note(&self, text: &str) {
        self.state.journal.add(None, &[], text.to_owned());
    }
}

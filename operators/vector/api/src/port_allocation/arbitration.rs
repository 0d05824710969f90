//! Arbitration: decides which of the pipelines that claim the same ports gets each address.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::port_allocation::assignment::PortAssignments;
use crate::port_allocation::claim::{Claim, MAX_WORKLOADS, PortClaims};
use crate::port_allocation::workload_facts::WorkloadFacts;
use crate::types::workload_role::WorkloadRole;

/// Pipeline and the other pipelines that claim its ports.
pub(crate) struct Arbitration<'a> {
    role: WorkloadRole,
    me: &'a PortClaims,
    /// All pipelines, in order of precedence.
    contenders: Vec<ClaimingPipeline<'a>>,
}

/// Pipeline that claims any of the ports.
struct ClaimingPipeline<'a> {
    claims: &'a PortClaims,
    /// Its claims on these ports.
    on_ports: Vec<&'a Claim>,
    runs: Vec<Assignment<'a>>,
}

/// Workload of a pipeline.
#[derive(Clone, Copy)]
struct Assignment<'a> {
    workload: &'a WorkloadFacts,
    /// If true, the workload already runs the pipeline.
    is_old: bool,
}

/// Precedence of a claim: first pipelines that already listen in the same workload, then those that already listen in
/// another workload, then all others in their order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Precedence {
    SameWorkload,
    OtherWorkload,
    None,
}

/// Assigned endpoints, by the name of the workload and the port.
type Ports<'a> = HashMap<(&'a str, &'a str), PortAssignments<'a, (&'a PortClaims, &'a Claim)>>;

/// Claims that a pipeline lost, by their index.
pub(crate) type Conflicts<'a> = BTreeMap<usize, Loss<'a>>;

/// Loss of an address.
pub(crate) struct Loss<'a> {
    /// First workload in which the address is not available.
    pub(crate) workload: &'a WorkloadFacts,
    /// Description of the holder.
    pub(crate) by: String,
    /// If true, the pipeline would serve its metrics in place of Vector's own.
    pub(crate) replaces_metrics: bool,
}

impl<'a> Arbitration<'a> {
    /// `workloads` must be sorted.
    pub(crate) fn new(
        me: &'a PortClaims,
        others: &'a [Arc<PortClaims>],
        workloads: &[&'a WorkloadFacts],
        role: WorkloadRole,
    ) -> Self {
        let ports: BTreeSet<_> = me.all.iter().map(|claim| &claim.endpoint.port).collect();
        let is_here = |claim: &&Claim| claim.role == role && ports.contains(&claim.endpoint.port);
        let others = others.iter().map(|other| &**other);
        let others = others.filter(|other| other.uid != me.uid);
        let contenders = others.chain([me]).map(|claims| ClaimingPipeline {
            claims,
            on_ports: claims.all.iter().filter(is_here).collect(),
            runs: Assignment::all(claims, workloads),
        });
        let mut contenders: Vec<_> = contenders.collect();
        contenders.sort_by(|one, another| one.claims.rank().cmp(&another.claims.rank()));
        Self {
            role,
            me,
            contenders,
        }
    }

    /// Returns the workloads of the pipeline.
    pub(crate) fn run_by(&self) -> impl Iterator<Item = &'a WorkloadFacts> {
        let me = self.contenders.iter().find(|it| self.is_me(it));
        let runs = me.into_iter().flat_map(|me| &me.runs);
        runs.map(|run| run.workload)
    }

    pub(crate) fn conflicts(&self) -> Conflicts<'a> {
        let mut ports = Ports::new();
        let mut lost = Conflicts::new();
        for precedence in [
            Precedence::SameWorkload,
            Precedence::OtherWorkload,
            Precedence::None,
        ] {
            for contender in &self.contenders {
                if self.is_me(contender) {
                    contender.lose(precedence, &ports, &mut lost);
                }
                // A waiting pipeline holds nothing, and comes after all that hold an address.
                let is_next = || precedence == Precedence::None && contender.could_run(&ports);
                if !contender.claims.waits || is_next() {
                    contender.take(precedence, self.role, &mut ports);
                }
            }
        }
        lost
    }

    fn is_me(&self, contender: &ClaimingPipeline<'_>) -> bool {
        contender.claims.uid == self.me.uid
    }
}

impl<'a> ClaimingPipeline<'a> {
    /// Assigns the free endpoints to this pipeline.
    fn take(&self, precedence: Precedence, role: WorkloadRole, ports: &mut Ports<'a>) {
        for &claim in &self.on_ports {
            for run in self.runs(claim, precedence) {
                // A pipeline that already listens keeps its address, even if the workload needs it.
                let is_free = if precedence == Precedence::None {
                    self.is_free(claim, run, ports)
                } else {
                    self.in_the_way(claim, run, ports).is_none()
                };
                if is_free {
                    let port = (run.workload.name.as_str(), claim.endpoint.port.as_str());
                    let assigned = ports
                        .entry(port)
                        .or_insert_with(|| PortAssignments::none(role));
                    assigned.assign(&self.claims.uid, claim.endpoint.slot, (self.claims, claim));
                }
            }
        }
    }

    /// Records the claims that this pipeline loses to others.
    fn lose(&self, precedence: Precedence, ports: &Ports<'a>, conflicts: &mut Conflicts<'a>) {
        for (at, &claim) in self.on_ports.iter().enumerate() {
            for run in self.runs(claim, precedence) {
                let other = || {
                    let (owner, of_his) = self.in_the_way(claim, run, ports)?;
                    Some(owner.conflict_message(self.claims, of_his))
                };
                let own = claim.needed_by(run.workload).map(str::to_owned);
                let by = own.or_else(other);
                let metrics = || self.claims.metrics_of_agent(claim, run.workload);
                let replaces_metrics = by.is_none();
                let Some(by) = by.or_else(|| metrics().map(str::to_owned)) else {
                    continue;
                };
                let before = conflicts.get(&at);
                if before.is_none_or(|loss| run.workload.name < loss.workload.name) {
                    let loss = Loss {
                        workload: run.workload,
                        by,
                        replaces_metrics,
                    };
                    conflicts.insert(at, loss);
                }
            }
        }
    }

    /// Returns true if a waiting pipeline could now get all addresses that it waits for, in all its workloads.
    /// Addresses on other ports count as still in use: the reconciliation of that pipeline checks them.
    fn could_run(&self, ports: &Ports<'a>) -> bool {
        let is_free = |claim: &&Claim| {
            let mut runs = self.runs.iter();
            runs.all(|run| {
                let metrics = self.claims.metrics_of_agent(claim, run.workload);
                metrics.is_none() && self.is_free(claim, *run, ports)
            })
        };
        self.on_ports.len() == self.claims.all.len() && self.on_ports.iter().all(is_free)
    }

    fn is_free(&self, claim: &Claim, run: Assignment<'_>, ports: &Ports<'a>) -> bool {
        claim.needed_by(run.workload).is_none() && self.in_the_way(claim, run, ports).is_none()
    }

    fn in_the_way(
        &self,
        claim: &Claim,
        run: Assignment<'_>,
        ports: &Ports<'a>,
    ) -> Option<(&'a PortClaims, &'a Claim)> {
        let port = (run.workload.name.as_str(), claim.endpoint.port.as_str());
        ports
            .get(&port)?
            .conflict_with(&self.claims.uid, claim.endpoint.slot)
    }

    /// Returns the workloads for which a claim has this precedence.
    fn runs(&self, claim: &Claim, precedence: Precedence) -> impl Iterator<Item = Assignment<'a>> {
        let is_held = claim.is_held;
        let runs = self.runs.iter().copied();
        runs.filter(move |run| {
            let of_this = match (is_held, run.is_old) {
                (true, true) => Precedence::SameWorkload,
                (true, false) => Precedence::OtherWorkload,
                (false, _) => Precedence::None,
            };
            of_this == precedence
        })
    }
}

impl<'a> Assignment<'a> {
    /// Returns the workloads of a pipeline, up to the maximum number.
    fn all(claims: &PortClaims, workloads: &[&'a WorkloadFacts]) -> Vec<Self> {
        let workloads = workloads.iter();
        let workloads = workloads.filter(|workload| workload.runs(&claims.labels));
        let runs = workloads.map(|&workload| Self {
            workload,
            is_old: claims.is_run_by(workload),
        });
        runs.take(MAX_WORKLOADS).collect()
    }
}

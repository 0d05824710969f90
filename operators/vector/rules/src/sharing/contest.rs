//! Arbitration: decides which of the pipelines that claim the same ports gets each address.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::claims::{Claim, Claims, MOST_RUNNERS};
use super::given::Given;
use super::runner::Runner;
use crate::role::Role;

/// Pipeline and the other pipelines that claim its ports.
pub(super) struct Contest<'a> {
    role: Role,
    me: &'a Claims,
    /// All pipelines, in order of precedence.
    contenders: Vec<Contender<'a>>,
}

/// Pipeline that claims any of the ports.
struct Contender<'a> {
    claims: &'a Claims,
    /// Its claims on these ports.
    here: Vec<&'a Claim>,
    runs: Vec<Run<'a>>,
}

/// Runner of a pipeline.
#[derive(Clone, Copy)]
struct Run<'a> {
    runner: &'a Runner,
    /// If true, the runner already runs the pipeline.
    is_old: bool,
}

/// Precedence of a claim: first pipelines that already listen in the same runner, then those that already listen in
/// another runner, then all others in their order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Precedence {
    Here,
    Elsewhere,
    Nowhere,
}

/// Assigned endpoints, by the name of the runner and the port.
type Ports<'a> = HashMap<(&'a str, &'a str), Given<'a, (&'a Claims, &'a Claim)>>;

/// Claims that a pipeline lost, by their index: the first runner in which the address is not available, and a
/// description of its holder.
pub(super) type Lost<'a> = BTreeMap<usize, (&'a Runner, String)>;

impl<'a> Contest<'a> {
    /// `runners` must be sorted.
    pub(super) fn new(
        me: &'a Claims,
        others: &'a [Arc<Claims>],
        runners: &[&'a Runner],
        role: Role,
    ) -> Self {
        let ports: BTreeSet<_> = me.all.iter().map(|claim| &claim.place.port).collect();
        let is_here = |claim: &&Claim| claim.role == role && ports.contains(&claim.place.port);
        let others = others.iter().map(|other| &**other);
        let others = others.filter(|other| other.uid != me.uid);
        let contenders = others.chain([me]).map(|claims| Contender {
            claims,
            here: claims.all.iter().filter(is_here).collect(),
            runs: Run::all(claims, runners),
        });
        let mut contenders: Vec<_> = contenders.collect();
        contenders.sort_by(|one, another| one.claims.rank().cmp(&another.claims.rank()));
        Self {
            role,
            me,
            contenders,
        }
    }

    /// Returns the runners of the pipeline.
    pub(super) fn run_by(&self) -> impl Iterator<Item = &'a Runner> {
        let me = self.contenders.iter().find(|it| self.is_me(it));
        let runs = me.into_iter().flat_map(|me| &me.runs);
        runs.map(|run| run.runner)
    }

    pub(super) fn lost(&self) -> Lost<'a> {
        let mut ports = Ports::new();
        let mut lost = Lost::new();
        for precedence in [Precedence::Here, Precedence::Elsewhere, Precedence::Nowhere] {
            for contender in &self.contenders {
                if self.is_me(contender) {
                    contender.lose(precedence, &ports, &mut lost);
                }
                // A waiting pipeline holds nothing, and comes after all that hold an address.
                let is_next = || precedence == Precedence::Nowhere && contender.could_run(&ports);
                if !contender.claims.waits || is_next() {
                    contender.take(precedence, self.role, &mut ports);
                }
            }
        }
        lost
    }

    fn is_me(&self, contender: &Contender<'_>) -> bool {
        contender.claims.uid == self.me.uid
    }
}

impl<'a> Contender<'a> {
    /// Assigns the free endpoints to this pipeline.
    fn take(&self, precedence: Precedence, role: Role, ports: &mut Ports<'a>) {
        for &claim in &self.here {
            for run in self.runs(claim, precedence) {
                // A pipeline that already listens keeps its address, even if the runner needs it.
                let is_free = if precedence == Precedence::Nowhere {
                    self.is_free(claim, run, ports)
                } else {
                    self.in_the_way(claim, run, ports).is_none()
                };
                if is_free {
                    let port = (run.runner.name.as_str(), claim.place.port.as_str());
                    let given = ports.entry(port).or_insert_with(|| Given::none(role));
                    given.give(&self.claims.uid, claim.place.spot, (self.claims, claim));
                }
            }
        }
    }

    /// Records the claims that this pipeline loses to others.
    fn lose(&self, precedence: Precedence, ports: &Ports<'a>, lost: &mut Lost<'a>) {
        for (at, &claim) in self.here.iter().enumerate() {
            for run in self.runs(claim, precedence) {
                let other = || {
                    let (owner, of_his) = self.in_the_way(claim, run, ports)?;
                    Some(owner.told_to(self.claims, of_his))
                };
                let own = run.runner.needs(claim).map(str::to_owned);
                let Some(by) = own.or_else(other) else {
                    continue;
                };
                let before = lost.get(&at);
                if before.is_none_or(|(runner, _)| run.runner.name < runner.name) {
                    lost.insert(at, (run.runner, by));
                }
            }
        }
    }

    /// Returns true if a waiting pipeline could now get all addresses that it waits for, in all its runners.
    /// Addresses on other ports count as still in use: the reconciliation of that pipeline checks them.
    fn could_run(&self, ports: &Ports<'a>) -> bool {
        let is_free = |claim: &&Claim| {
            let mut runs = self.runs.iter();
            runs.all(|run| self.is_free(claim, *run, ports))
        };
        self.here.len() == self.claims.all.len() && self.here.iter().all(is_free)
    }

    fn is_free(&self, claim: &Claim, run: Run<'_>, ports: &Ports<'a>) -> bool {
        run.runner.needs(claim).is_none() && self.in_the_way(claim, run, ports).is_none()
    }

    fn in_the_way(
        &self,
        claim: &Claim,
        run: Run<'_>,
        ports: &Ports<'a>,
    ) -> Option<(&'a Claims, &'a Claim)> {
        let port = (run.runner.name.as_str(), claim.place.port.as_str());
        ports
            .get(&port)?
            .in_the_way_of(&self.claims.uid, claim.place.spot)
    }

    /// Returns the runners for which a claim has this precedence.
    fn runs(&self, claim: &Claim, precedence: Precedence) -> impl Iterator<Item = Run<'a>> {
        let is_held = claim.is_held;
        let runs = self.runs.iter().copied();
        runs.filter(move |run| {
            let of_this = match (is_held, run.is_old) {
                (true, true) => Precedence::Here,
                (true, false) => Precedence::Elsewhere,
                (false, _) => Precedence::Nowhere,
            };
            of_this == precedence
        })
    }
}

impl<'a> Run<'a> {
    /// Returns the runners of a pipeline, up to the maximum number.
    fn all(claims: &Claims, runners: &[&'a Runner]) -> Vec<Self> {
        let runners = runners.iter().filter(|it| it.runs(&claims.labels));
        let runs = runners.map(|&runner| Self {
            runner,
            is_old: claims.is_run_by(runner),
        });
        runs.take(MOST_RUNNERS).collect()
    }
}

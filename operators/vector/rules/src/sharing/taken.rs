//! What others have of what a pipeline asks for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::claims::{Claim, Claims, MOST_RUNNERS, listeners};
use super::given::Given;
use super::runner::Runner;
use super::stored::role;
use crate::role::Role;

/// What a pipeline shares with others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Shared {
    /// Those who run it.
    pub(super) run_by: Vec<String>,
    /// Those of them with whom others have what it asks for.
    pub(super) held_back_by: Vec<String>,
    /// What others have.
    pub(super) taken: Vec<Taken>,
}

/// An address of a pipeline that it cannot have, as the rule is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Taken {
    /// The field that names it.
    pub(super) at: String,
    /// The address, as a configuration has it.
    pub(super) place: String,
    /// With its protocol.
    pub(super) address: String,
    /// Who has it.
    pub(super) by: String,
    /// Who runs both.
    pub(super) runner: String,
}

/// What a pipeline shares: who runs it, and which of its addresses others have there, in the form that the rule
/// reads. Null where nobody runs it.
///
/// `others` is what is told of those under its ports, itself among them or not; `runners` of those who may run it.
#[must_use]
pub fn shared(pipeline: &Value, others: &[Arc<Claims>], runners: &[Arc<Runner>]) -> Value {
    let Some(role) = role(pipeline) else {
        return Value::Null;
    };
    let listeners = listeners(pipeline);
    if listeners.is_empty() {
        return Value::Null;
    }
    let asked = Contest::new(Claims::asked_for(pipeline, &listeners), others, role);
    let runners = runners.iter().filter(|it| it.runs(&asked.me.labels));
    let runners: BTreeMap<_, _> = runners.map(|it| (it.name.as_str(), it)).collect();
    let runners: Vec<_> = runners.into_values().take(MOST_RUNNERS).collect();
    if runners.is_empty() {
        return Value::Null;
    }
    let mut held_back_by = Vec::new();
    let mut taken: BTreeMap<usize, Taken> = BTreeMap::new();
    for runner in &runners {
        let mut by = asked.lost_with(runner);
        let own = listeners.iter().map(|listener| runner.needs(listener));
        let own = own.enumerate();
        by.extend(own.filter_map(|(at, own)| Some((at, own?.to_owned()))));
        if !by.is_empty() {
            held_back_by.push(runner.name.clone());
        }
        for (at, by) in by {
            let listener = &listeners[at];
            taken.entry(at).or_insert_with(|| Taken {
                at: listener.path().as_str().to_owned(),
                address: listener.address.to_string(),
                place: listener.address.place.clone(),
                by,
                runner: runner.name.clone(),
            });
        }
    }
    let run_by = runners.into_iter().map(|runner| runner.name.clone());
    json!(Shared {
        run_by: run_by.collect(),
        held_back_by,
        taken: taken.into_values().collect(),
    })
}

/// A pipeline and the others that ask for the same ports.
struct Contest<'a> {
    role: Role,
    me: Claims,
    /// The others' claims on these, the eldest first.
    others: Vec<(&'a Claims, Vec<&'a Claim>)>,
}

/// An address that a pipeline claims, and that pipeline.
type Claimed<'a> = (&'a Claims, &'a Claim);

impl<'a> Contest<'a> {
    fn new(me: Claims, others: &'a [Arc<Claims>], role: Role) -> Self {
        let ports: BTreeSet<_> = me.all.iter().map(|claim| &claim.place.port).collect();
        let others = others.iter().filter(|other| other.uid != me.uid);
        let others = others.map(|other| {
            let here = other.all.iter();
            let here = here.filter(|claim| ports.contains(&claim.place.port));
            (&**other, here.collect())
        });
        let mut others: Vec<_> = others.collect();
        others.sort_by(|(one, _), (another, _)| one.age().cmp(&another.age()));
        Self { role, me, others }
    }

    /// What the pipeline cannot have of what it claims, by its place among that, and who has it of those whom one
    /// runs: whoever listens there already, then the eldest.
    fn lost_with(&self, runner: &Runner) -> BTreeMap<usize, String> {
        let mut lost = BTreeMap::new();
        let mut given: HashMap<&str, Given<'_, Claimed<'_>>> = HashMap::new();
        let others = self.others.iter();
        let others: Vec<_> = others
            .filter(|(other, _)| other.count_with(runner))
            .collect();
        let elder = others.partition_point(|(other, _)| other.age() < self.me.age());
        let (elder, younger) = others.split_at(elder);
        let mine: Vec<_> = self.me.all.iter().collect();
        for are_held in [true, false] {
            let me = [(&self.me, &mine)];
            let elder = elder.iter().map(|(other, claims)| (*other, claims));
            let younger = younger.iter().map(|(other, claims)| (*other, claims));
            for (claims, here) in elder.chain(me).chain(younger) {
                let here = here.iter().enumerate();
                for (at, &claim) in here.filter(|(_, it)| claims.holds(it, runner) == are_held) {
                    let place = &claim.place;
                    let given = given
                        .entry(&place.port)
                        .or_insert_with(|| Given::none(self.role));
                    match given.in_the_way_of(&claims.uid, place.spot) {
                        None => given.give(&claims.uid, place.spot, (claims, claim)),
                        Some((owner, of_his)) if claims.uid == self.me.uid => {
                            lost.insert(at, owner.told_to(&self.me, of_his));
                        }
                        Some(_) => {}
                    }
                }
            }
        }
        lost
    }
}

//! What others are told of a pipeline: no more than decides who listens where.

use std::collections::BTreeSet;

use serde_json::Value;

use super::labels::{self, Labels};
use super::listener::Listener;
use super::own::MOST_ADDRESSES;
use super::place::Place;
use super::runner::Runner;
use super::stored::{self, Standing, is_paused, name, standing, text};

/// Of how many who run a pipeline account is taken.
pub(super) const MOST_RUNNERS: usize = 64;

/// Where a pipeline is to listen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims {
    pub(super) pipeline: String,
    namespace: String,
    pub(super) uid: String,
    created: String,
    pub(super) labels: Labels,
    /// Those who run it, and so have it listen already.
    run_by: Vec<String>,
    /// Those with whom it waits for what others have.
    held_back_by: Vec<String>,
    pub(super) all: Vec<Claim>,
}

/// One address that a pipeline is to listen on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claim {
    pub(super) place: Place,
    /// Which component it is, if that is known.
    listener: Option<String>,
    /// Whether it listens there, if anybody runs it.
    is_held: bool,
}

impl Claims {
    /// What a pipeline asks for.
    pub(super) fn asked_for(pipeline: &Value, listeners: &[Listener<'_>]) -> Self {
        let held = Held::by(pipeline);
        let all = listeners.iter().map(|listener| held.claim(listener));
        Self::of(pipeline, held.run_by.clone(), all.collect())
    }

    /// What others are told that a pipeline has or waits for.
    ///
    /// What is changed goes on as it was until that is judged. What was judged and cannot run is told as far as it
    /// waits for others, so that the eldest of all that wait is next. One that is left alone, or that nobody can judge,
    /// may never run, and waits for nothing.
    pub(super) fn told_of(pipeline: &Value) -> Self {
        let standing = standing(pipeline);
        let waits = !is_paused(pipeline) && !matches!(standing, Standing::Unclear);
        let held = Held::by(pipeline);
        let listeners = listeners(pipeline);
        let asked = listeners.iter().filter(|listener| match standing {
            Standing::Valid => true,
            Standing::Invalid => waits && held.told.contains(&listener.address.to_string()),
            Standing::Changed | Standing::Unclear => waits || held.is_held(listener),
        });
        let mut all: Vec<_> = asked.map(|listener| held.claim(listener)).collect();
        let goes_on = matches!(standing, Standing::Changed | Standing::Unclear);
        if goes_on && !held.run_by.is_empty() {
            let asked: BTreeSet<_> = listeners.iter().map(|it| it.address.to_string()).collect();
            let kept = held.told.difference(&asked);
            all.extend(kept.filter_map(|address| Claim::kept(address)));
        }
        let mut claims = Self::of(pipeline, held.run_by, all);
        if matches!(standing, Standing::Invalid) {
            claims.held_back_by = stored::held_back_by(pipeline);
        }
        claims
    }

    fn of(pipeline: &Value, run_by: Vec<String>, all: Vec<Claim>) -> Self {
        let metadata = &pipeline["metadata"];
        Self {
            pipeline: name(pipeline),
            namespace: text(&metadata["namespace"]),
            uid: text(&metadata["uid"]),
            created: text(&metadata["creationTimestamp"]),
            labels: labels::of(metadata.get("labels")),
            run_by,
            held_back_by: Vec::new(),
            all,
        }
    }

    /// Who is older comes first.
    pub(super) fn age(&self) -> (&str, &str) {
        (&self.created, &self.uid)
    }

    /// Whether it counts with one of those who run it: what others hold back as well is not in the way of whoever
    /// could run meanwhile.
    pub(super) fn count_with(&self, runner: &Runner) -> bool {
        let mut held_back_by = self.held_back_by.iter();
        runner.runs(&self.labels) && held_back_by.all(|it| *it == runner.name)
    }

    /// Whether it listens there already with one of those who run it.
    pub(super) fn holds(&self, claim: &Claim, runner: &Runner) -> bool {
        let is_run = self.run_by.len() >= MOST_RUNNERS || self.run_by.contains(&runner.name);
        claim.is_held && is_run
    }

    /// What the author of another pipeline is told of this one: an administrator all, a tenant what is in his
    /// namespace.
    pub(super) fn told_to(&self, other: &Self, claim: &Claim) -> String {
        if !other.namespace.is_empty() && other.namespace != self.namespace {
            return "a pipeline that is not of this namespace".to_owned();
        }
        match &claim.listener {
            Some(listener) => format!("{listener} of {}", self.pipeline),
            None => format!("{} as it was", self.pipeline),
        }
    }
}

impl Claim {
    /// Of what is not asked for any more.
    fn kept(address: &str) -> Option<Self> {
        let (protocol, place) = address.split_once(' ')?;
        Some(Self {
            // Most of what listens are sources.
            place: Place::new(protocol, place, true),
            listener: None,
            is_held: true,
        })
    }
}

/// What a status tells of where a pipeline listens.
struct Held {
    told: BTreeSet<String>,
    run_by: Vec<String>,
}

impl Held {
    fn by(pipeline: &Value) -> Self {
        Self {
            told: stored::addresses(pipeline),
            run_by: stored::run_by(pipeline),
        }
    }

    fn is_held(&self, listener: &Listener<'_>) -> bool {
        !self.run_by.is_empty() && self.told.contains(&listener.address.to_string())
    }

    fn claim(&self, listener: &Listener<'_>) -> Claim {
        Claim {
            place: listener.place.clone(),
            listener: Some(listener.name()),
            is_held: self.is_held(listener),
        }
    }
}

/// Where a pipeline is to listen, as far as it is compared with others.
pub(super) fn listeners(pipeline: &Value) -> Vec<Listener<'_>> {
    Listener::of(pipeline).take(MOST_ADDRESSES).collect()
}

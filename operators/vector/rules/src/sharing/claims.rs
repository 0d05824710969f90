//! What others are told of a pipeline: no more than decides who listens where.

use std::collections::BTreeSet;

use serde_json::Value;

use super::labels::{self, Labels};
use super::listener::Listener;
use super::own::MOST_ADDRESSES;
use super::place::ListenEndpoint;
use super::runner::Runner;
use super::stored::{self, ValidationState, is_paused, name, role, text, validation_state};
use crate::role::RunnerKind;

/// Of how many who run a pipeline account is taken.
pub(super) const MOST_RUNNERS: usize = 64;

/// Where a pipeline is to listen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortClaims {
    pub(super) pipeline: String,
    namespace: String,
    pub(super) uid: String,
    created: String,
    pub(super) labels: Labels,
    /// Those who run it, and so have it listen already.
    run_by: Vec<String>,
    /// Whether it is left alone, and cannot give way.
    is_paused: bool,
    /// Whether it was judged, and waits for all that it claims.
    pub(super) waits: bool,
    pub(super) all: Vec<Claim>,
}

/// One address that a pipeline is to listen on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claim {
    /// As what.
    pub(super) role: RunnerKind,
    pub(super) place: ListenEndpoint,
    pub(super) is_exporter: bool,
    /// Which component it is, if that is known.
    listener: Option<String>,
    /// Whether it listens there, with those who run it already.
    pub(super) is_held: bool,
}

impl PortClaims {
    /// What a pipeline asks for.
    pub(super) fn requested(
        pipeline: &Value,
        role: RunnerKind,
        listeners: &[Listener<'_>],
    ) -> Self {
        let held = Held::by(pipeline);
        let all = listeners.iter().map(|listener| held.claim(role, listener));
        Self::of(pipeline, held.run_by.clone(), all.collect())
    }

    /// What others are told that a pipeline has or waits for.
    ///
    /// What is changed goes on as it was until that is judged. What was judged and cannot run is told as far as it
    /// waits for others, so that the eldest of all that wait is next. One that is left alone, or that nobody can judge,
    /// may never run, and waits for nothing.
    pub(super) fn from_status(pipeline: &Value) -> Self {
        let standing = validation_state(pipeline);
        let is_alone = is_paused(pipeline) || matches!(standing, ValidationState::Unclear);
        let held = Held::by(pipeline);
        let role = role(pipeline);
        let asked = role.into_iter().flat_map(|role| {
            let listeners = listeners(pipeline).into_iter();
            listeners.map(move |listener| (role, listener))
        });
        let asked: Vec<_> = asked.collect();
        let told = asked.iter().filter(|(role, listener)| match standing {
            ValidationState::Valid => true,
            ValidationState::Invalid => {
                !is_alone && held.told.contains(&listener.address.to_string())
            }
            ValidationState::Changed | ValidationState::Unclear => {
                !is_alone || held.has(*role, listener)
            }
        });
        let told = told.map(|(role, listener)| held.claim(*role, listener));
        let mut all: Vec<_> = told.collect();
        if matches!(
            standing,
            ValidationState::Changed | ValidationState::Unclear
        ) {
            let asked = asked.iter().filter(|(role, it)| held.has(*role, it));
            let asked: BTreeSet<_> = asked.map(|(_, it)| it.address.to_string()).collect();
            all.extend(held.kept_beside(&asked));
        }
        let mut claims = Self::of(pipeline, held.run_by, all);
        claims.waits = matches!(standing, ValidationState::Invalid);
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
            is_paused: is_paused(pipeline),
            waits: false,
            all,
        }
    }

    /// Who comes first: whoever cannot give way, and then the eldest.
    pub(super) fn rank(&self) -> impl Ord {
        (!self.is_paused, &self.created, &self.uid)
    }

    /// Whether one of those who run it did before.
    pub(super) fn is_run_by(&self, runner: &Runner) -> bool {
        self.run_by.len() >= MOST_RUNNERS || self.run_by.contains(&runner.name)
    }

    /// What the author of another pipeline is told of this one: an administrator all, a tenant what is in his
    /// namespace.
    pub(super) fn conflict_message(&self, other: &Self, claim: &Claim) -> String {
        if !other.namespace.is_empty() && other.namespace != self.namespace {
            return "a pipeline that is not of this namespace".to_owned();
        }
        match &claim.listener {
            Some(listener) => format!("{listener} of {}", self.pipeline),
            None => format!("{} as it was", self.pipeline),
        }
    }
}

/// What a status tells of where a pipeline listens.
struct Held {
    role: Option<RunnerKind>,
    told: BTreeSet<String>,
    run_by: Vec<String>,
}

impl Held {
    fn by(pipeline: &Value) -> Self {
        Self {
            role: stored::former_role(pipeline),
            told: stored::addresses(pipeline),
            run_by: stored::run_by(pipeline),
        }
    }

    /// Whether a pipeline listens where it is to.
    fn has(&self, role: RunnerKind, listener: &Listener<'_>) -> bool {
        let is_run = !self.run_by.is_empty() && self.role == Some(role);
        is_run && self.told.contains(&listener.address.to_string())
    }

    fn claim(&self, role: RunnerKind, listener: &Listener<'_>) -> Claim {
        Claim {
            role,
            place: listener.place.clone(),
            is_exporter: listener.is_exporter(),
            listener: Some(listener.name()),
            is_held: self.has(role, listener),
        }
    }

    /// Where it listens beside what it has of what is asked for.
    fn kept_beside<'a>(&'a self, asked: &'a BTreeSet<String>) -> impl Iterator<Item = Claim> {
        let role = self.role.filter(|_| !self.run_by.is_empty());
        let kept = self.told.difference(asked);
        kept.filter_map(move |address| {
            let (protocol, place) = address.split_once(' ')?;
            Some(Claim {
                role: role?,
                // Most of what listens are sources.
                place: ListenEndpoint::new(protocol, place, true),
                is_exporter: false,
                listener: None,
                is_held: true,
            })
        })
    }
}

/// Where a pipeline is to listen, as far as it is compared with others.
pub(super) fn listeners(pipeline: &Value) -> Vec<Listener<'_>> {
    Listener::of(pipeline).take(MOST_ADDRESSES).collect()
}

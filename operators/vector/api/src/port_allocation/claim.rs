//! Address claims of a pipeline: only the facts that decide which pipeline gets an address.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::port_allocation::endpoint::ListenEndpoint;
use crate::port_allocation::intra_pipeline::MAX_ADDRESSES;
use crate::port_allocation::labels;
use crate::port_allocation::labels::Labels;
use crate::port_allocation::listener::Listener;
use crate::port_allocation::status_view;
use crate::port_allocation::status_view::{
    ValidationState, is_paused, name, role, text, validation_state,
};
use crate::port_allocation::workload_facts::WorkloadFacts;
use crate::types::workload_role::WorkloadRole;

/// Maximum number of workloads of a pipeline that are considered.
pub(crate) const MAX_WORKLOADS: usize = 64;

/// Addresses that a pipeline claims.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortClaims {
    pub(crate) pipeline: String,
    namespace: String,
    pub(crate) uid: String,
    created: String,
    pub(crate) labels: Labels,
    /// Workloads that run the pipeline, so that it already listens there.
    run_by: Vec<String>,
    /// If true, the pipeline is paused and cannot release its addresses.
    is_paused: bool,
    /// If true, the pipeline was validated and waits for all addresses that it claims.
    pub(crate) waits: bool,
    pub(crate) all: Vec<Claim>,
}

/// Address that a pipeline claims.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Claim {
    /// Role in which the pipeline listens.
    pub(crate) role: WorkloadRole,
    pub(crate) endpoint: ListenEndpoint,
    pub(crate) is_exporter: bool,
    /// Component that listens, if it is known.
    listener: Option<String>,
    /// If true, the pipeline already listens on the address in its present workloads.
    pub(crate) is_held: bool,
}

impl Claim {
    /// Returns the endpoint of a workload itself that conflicts with this claim, if there is one.
    pub(crate) fn needed_by(&self, workload: &WorkloadFacts) -> Option<&'static str> {
        workload.needs(&self.endpoint.port, self.is_exporter)
    }
}

impl PortClaims {
    /// Returns the claims of a pipeline according to its spec.
    pub(crate) fn requested(
        pipeline: &Value,
        role: WorkloadRole,
        listeners: &[Listener<'_>],
    ) -> Self {
        let held = ListenAddressStatus::by(pipeline);
        let all = listeners.iter().map(|listener| held.claim(role, listener));
        Self::of(pipeline, held.run_by.clone(), all.collect())
    }

    /// Returns the claims of a pipeline that others must respect: the addresses that it holds or waits for.
    ///
    /// A changed pipeline keeps its previous addresses until the change is validated. A pipeline that was validated and
    /// cannot run claims only the addresses that it waits for, so that the oldest waiting pipeline is next. A paused
    /// pipeline, and one that cannot be validated, may never run and waits for nothing.
    pub(crate) fn from_status(pipeline: &Value) -> Self {
        let state = validation_state(pipeline);
        let is_alone = is_paused(pipeline) || matches!(state, ValidationState::Unclear);
        let held = ListenAddressStatus::by(pipeline);
        let role = role(pipeline);
        let requested = role.into_iter().flat_map(|role| {
            let listeners = listeners(pipeline).into_iter();
            listeners.map(move |listener| (role, listener))
        });
        let requested: Vec<_> = requested.collect();
        let claimed = requested.iter().filter(|(role, listener)| match state {
            ValidationState::Valid => true,
            ValidationState::Invalid => {
                !is_alone && held.reported.contains(&listener.address.to_string())
            }
            ValidationState::Changed | ValidationState::Unclear => {
                !is_alone || held.has(*role, listener)
            }
        });
        let claimed = claimed.map(|(role, listener)| held.claim(*role, listener));
        let mut all: Vec<_> = claimed.collect();
        if matches!(state, ValidationState::Changed | ValidationState::Unclear) {
            let running = requested.iter().filter(|(role, it)| held.has(*role, it));
            let running: BTreeSet<_> = running.map(|(_, it)| it.address.to_string()).collect();
            all.extend(held.previous_claims(&running));
        }
        let mut claims = Self::of(pipeline, held.run_by, all);
        claims.waits = matches!(state, ValidationState::Invalid);
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

    /// Returns the order of precedence: paused pipelines, which cannot release addresses, and then the oldest ones.
    pub(crate) fn rank(&self) -> impl Ord {
        (!self.is_paused, &self.created, &self.uid)
    }

    /// Returns the endpoint of a workload itself that an exporter of a tenant would take: all agents would lose their metrics. An
    /// administrator may replace them, and a pipeline that has done so keeps them.
    pub(crate) fn metrics_of_agent(
        &self,
        claim: &Claim,
        workload: &WorkloadFacts,
    ) -> Option<&'static str> {
        let is_new = claim.is_exporter && !claim.is_held && !self.namespace.is_empty();
        is_new
            .then(|| workload.needs(&claim.endpoint.port, false))
            .flatten()
    }

    /// Returns true if a workload already runs the pipeline.
    pub(crate) fn is_run_by(&self, workload: &WorkloadFacts) -> bool {
        self.run_by.len() >= MAX_WORKLOADS || self.run_by.contains(&workload.name)
    }

    /// Describes this pipeline for the author of another one. Administrators see all pipelines, tenants only those of
    /// their own namespace.
    pub(crate) fn conflict_message(&self, other: &Self, claim: &Claim) -> String {
        if !other.namespace.is_empty() && other.namespace != self.namespace {
            return "a pipeline outside this namespace".to_owned();
        }
        match &claim.listener {
            Some(listener) => format!("{listener} of {}", self.pipeline),
            None => format!("{} (previous version)", self.pipeline),
        }
    }
}

/// Listen addresses in the status of a pipeline.
struct ListenAddressStatus {
    role: Option<WorkloadRole>,
    reported: BTreeSet<String>,
    run_by: Vec<String>,
}

impl ListenAddressStatus {
    fn by(pipeline: &Value) -> Self {
        Self {
            role: status_view::former_role(pipeline),
            reported: status_view::addresses(pipeline),
            run_by: status_view::run_by(pipeline),
        }
    }

    /// Returns true if the pipeline already listens on the address of a listener.
    fn has(&self, role: WorkloadRole, listener: &Listener<'_>) -> bool {
        let is_run = !self.run_by.is_empty() && self.role == Some(role);
        is_run && self.reported.contains(&listener.address.to_string())
    }

    fn claim(&self, role: WorkloadRole, listener: &Listener<'_>) -> Claim {
        Claim {
            role,
            endpoint: listener.endpoint.clone(),
            is_exporter: listener.is_exporter(),
            listener: Some(listener.name()),
            is_held: self.has(role, listener),
        }
    }

    /// Returns claims for the addresses that the pipeline listens on and no longer asks for.
    fn previous_claims<'a>(
        &'a self,
        requested: &'a BTreeSet<String>,
    ) -> impl Iterator<Item = Claim> {
        let role = self.role.filter(|_| !self.run_by.is_empty());
        let previous = self.reported.difference(requested);
        previous.filter_map(move |reported| {
            let (protocol, address) = reported.split_once(' ')?;
            Some(Claim {
                role: role?,
                // Most listeners are sources.
                endpoint: ListenEndpoint::new(protocol, address, true),
                is_exporter: false,
                listener: None,
                is_held: true,
            })
        })
    }
}

/// Returns the listeners of a pipeline that are compared with those of others.
pub(crate) fn listeners(pipeline: &Value) -> Vec<Listener<'_>> {
    Listener::of(pipeline).take(MAX_ADDRESSES).collect()
}

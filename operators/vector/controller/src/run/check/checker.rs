//! Checker: the configuration that may be published.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use lockstep_controller::{ReadObject, ReconcileError, SyncRequest};
use lockstep_vector_api::selection::{self, SelectablePipeline};
use lockstep_vector_api::{WorkloadKind, WorkloadRole};
use lockstep_vector_assembly::Assembly;
use serde_json::Value;

use crate::owned::{Cluster, ConfigurationCheck, Validator};
use crate::run::assemble::assembler::{Assembled, Assembler, Selection};
use crate::run::check::catalogue_learning::{CatalogueLearning, Learning};
use crate::run::check::foreign_services::ForeignServices;
use crate::run::check::pod_checks::{CheckContext, Checked, PodChecks};
use crate::run::check::pods::Records;
use crate::run::check::warm_validator::WarmValidator;
use crate::run::cluster_features::Installation;
use crate::run::collect::collector::Collected;
use crate::run::names::Names;

/// Checker of the workloads of a kind.
pub(crate) struct Checker {
    pub(crate) client: Client,
    pub(crate) cluster: Cluster,
    pub(crate) checks: PodChecks,
    pub(crate) learning: CatalogueLearning,
}

/// Configuration that may be published.
pub(crate) struct Approved {
    pub(crate) assembly: Assembly,
    /// Values of the Secrets that it refers to.
    pub(crate) secrets: BTreeMap<String, Vec<u8>>,
    /// Configuration that is published once all checks that have no result yet are passed. None if there are none.
    pub(crate) planned: Option<Assembled>,
    /// Services that are not those of the workload.
    pub(crate) foreign_services: ForeignServices,
    pub(crate) check_pods: Vec<ConfigurationCheck>,
    pub(crate) validator: Option<Validator>,
}

/// Results of the checks.
pub(crate) struct CheckReport {
    pub(crate) records: Records,
    /// Secrets as they were read.
    pub(crate) reads: Vec<ReadObject>,
    /// If true, a Secret or a part is to be read or checked again soon.
    pub(crate) is_incomplete: bool,
    /// Reason why Vector rejects a configuration of all pipelines together.
    pub(crate) rejected: Option<String>,
    /// State of the Pod that keeps running for checks, if the workload demands one.
    pub(crate) validator: Option<String>,
    /// State of the catalogue that is learned.
    pub(crate) catalogue: Option<String>,
    /// Time until something is to be done.
    pub(crate) next: Option<Duration>,
}

impl Checker {
    /// Returns the configuration that may be published: what was not checked, or what Vector rejects, runs as it last ran.
    pub(crate) async fn check<K: WorkloadKind>(
        &self,
        request: &SyncRequest<'_, K>,
        collected: &Collected,
        assembler: &Assembler,
        installation: &Installation,
    ) -> Result<(Approved, CheckReport), ReconcileError> {
        let names = &collected.names;
        let (validator, learning) = self.validator(request, names, installation).await?;
        let context = CheckContext {
            assembler,
            cluster: &self.cluster,
            validator: &validator,
        };
        let (checked, foreign_services) = self.with_services(context, request, collected).await?;
        let Checked {
            assembled,
            planned,
            checks,
        } = checked;
        let next = [checks.next, validator.renewal_in, learning.next];
        let report = CheckReport {
            records: checks.records,
            reads: assembled.reads,
            is_incomplete: assembled.is_incomplete,
            rejected: checks.rejected,
            validator: validator.state,
            catalogue: learning.state,
            next: next.into_iter().flatten().min(),
        };
        let approved = Approved {
            assembly: assembled.assembly,
            secrets: assembled.secrets,
            planned,
            foreign_services,
            check_pods: checks.pods,
            validator: validator.desired,
        };
        Ok((approved, report))
    }

    /// Returns the validator that the workload needs now, and the state of the catalogue that is learned by it.
    async fn validator<K: WorkloadKind>(
        &self,
        request: &SyncRequest<'_, K>,
        names: &Names,
        installation: &Installation,
    ) -> Result<(WarmValidator, Learning), ReconcileError> {
        let mut learning = self.learning.begin(request).await;
        let is_for_schema = learning.needs_validator;
        let validator =
            WarmValidator::new(request, names, &self.cluster, installation, is_for_schema)?;
        let ask = self
            .learning
            .ask(&mut learning, &self.client, &names.namespace, &validator);
        ask.await;
        Ok((validator, learning))
    }

    /// Checks the configuration. Pipelines whose Services have another owner run as they last ran; those Services are
    /// returned, too.
    async fn with_services<K: WorkloadKind>(
        &self,
        context: CheckContext<'_>,
        request: &SyncRequest<'_, K>,
        collected: &Collected,
    ) -> Result<(Checked, ForeignServices), ReconcileError> {
        let names = &collected.names;
        let mut selection = Selection {
            pipelines: selected(request.raw_parent(), &collected.group),
            published: Arc::clone(&collected.published),
            held: BTreeMap::new(),
        };
        let mut foreign = ForeignServices::default();
        loop {
            let (options, selected) = (&collected.options, selection.clone());
            let checking = self
                .checks
                .checked(context, request, names, options, selected);
            let checked = checking.await?;
            let services = &checked.assembled.assembly.services;
            if K::ROLE == WorkloadRole::Agent {
                return Ok((checked, foreign));
            }
            let uid = request.raw_parent()["metadata"]["uid"].as_str();
            let (client, uid) = (&self.client, uid.unwrap_or_default());
            let finding = ForeignServices::find(client, request.children(), names, uid, services);
            foreign.extend(finding.await?);
            // Those that are left out make room for others, whose Services are read as well.
            let held = selection.held.len();
            selection.held.extend(foreign.waiting(names, services));
            if selection.held.len() == held {
                return Ok((checked, foreign));
            }
        }
    }

    /// Ends the checks of a workload.
    pub(crate) fn release(&self, uid: &str) {
        self.checks.release(uid);
    }
}

/// Returns the pipelines of a group that a workload selects.
fn selected(workload: &Value, group: &[Arc<SelectablePipeline>]) -> Vec<Arc<SelectablePipeline>> {
    let selects = |pipeline: &&Arc<SelectablePipeline>| selection::selects(workload, pipeline);
    group.iter().filter(selects).cloned().collect()
}

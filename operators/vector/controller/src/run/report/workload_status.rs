//! Status of a workload.

use lockstep_controller::{ReconcileError, replace_status};
use lockstep_shared_validation::shortened;
use lockstep_vector_api::RunStatus;
use serde_json::{Map, Value};

use crate::run::check::checker::CheckReport;
use crate::run::follow::follower::Refreshed;
use crate::run::follow::reload::ReloadReport;
use crate::run::kaasops;
use crate::run::publish::publisher::Desired;

/// Maximum number of pipelines that do not run in the status of a workload.
const MAX_PROBLEMS: usize = 20;

/// Maximum length of the description of one of them, in bytes.
pub(crate) const LONGEST_PROBLEM: usize = 1024;

/// Result of a reconciliation, as far as the status tells it.
pub(crate) struct Outcome<'a> {
    pub(crate) desired: &'a Desired,
    pub(crate) checks: &'a CheckReport,
    pub(crate) reload: &'a ReloadReport,
    pub(crate) refreshed: Refreshed,
    /// Directory of the nodes for the data of the Pods, if it is not a claim.
    pub(crate) data_directory: Option<String>,
}

impl Outcome<'_> {
    /// Returns the changes of the status. `now` is the time.
    ///
    /// # Errors
    ///
    /// The status cannot be serialized.
    pub(crate) fn status(
        self,
        before: &RunStatus,
        now: &str,
    ) -> Result<Map<String, Value>, ReconcileError> {
        let Self {
            desired,
            checks,
            reload,
            refreshed,
            data_directory,
        } = self;
        let assembly = &desired.assembly;
        let hash = Some(assembly.hash());
        // What is not known in this reconciliation stays as it is.
        let mut after = before.clone();
        if before.published_config_hash != hash {
            after.last_config_published_at = Some(now.to_owned());
        }
        if let Some(change) = &desired.change {
            after.last_change = Some(change.at(Some(now)));
        }
        if let Some(loaded) = &reload.loaded {
            after.loaded.clone_from(&loaded.pods);
            after.not_loaded.clone_from(&loaded.not_loaded);
        }
        if refreshed.versions.is_some() {
            after.refreshed_secret_versions = refreshed.versions;
        }
        let planned = desired.planned.as_ref();
        let planned = planned.map(|plan| plan.planned_at(before.planned_change.as_ref(), now));
        after.planned_change = planned;
        after.published_config_hash = hash;
        let global = kaasops::global_options_checksum(&assembly.config);
        after.last_applied_global_config_hash = Some(global);
        after.running_pipelines = Some(count(assembly.parts.len()));
        after.not_running = not_running(desired, checks);
        let catalogue = checks.catalogue.clone();
        after.catalogue = catalogue.map(|state| shortened(&state, LONGEST_PROBLEM).into_owned());
        let check_pods = count(desired.publication.checks.len());
        after.check_pods = Some(check_pods).filter(|pods| *pods > 0);
        after.validator.clone_from(&checks.validator);
        after.data_directory = data_directory;
        replace_status(before, &after)
    }
}

/// Describes the pipelines that do not run as they are now.
fn not_running(desired: &Desired, checks: &CheckReport) -> Vec<String> {
    let together = checks.rejected.as_ref();
    let together = together.map(|message| format!("all pipelines together: {message}"));
    let each = desired.assembly.problems.iter();
    let each = each.map(|problem| format!("{}: {}", problem.pipeline, problem.message));
    let problems = together.into_iter().chain(each).take(MAX_PROBLEMS);
    problems
        .map(|problem| shortened(&problem, LONGEST_PROBLEM).into_owned())
        .collect()
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

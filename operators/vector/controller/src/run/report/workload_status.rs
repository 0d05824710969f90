//! Status of a workload.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lockstep_vector_assembly::Assembly;
use serde_json::{Map, Value, json};

use crate::owned::Change;
use crate::run::collect::data_directory;
use crate::run::kaasops;
use crate::validate_only::shortened;

/// Maximum number of pipelines that do not run in the status of a workload.
const MAX_PROBLEMS: usize = 20;

/// Maximum length of the description of one of them, in bytes.
pub(crate) const LONGEST_PROBLEM: usize = 1024;

/// Result of a reconciliation, as far as the status tells it.
pub(crate) struct Outcome<'a> {
    pub(crate) assembly: &'a Assembly,
    /// Reason why Vector rejects a configuration of all pipelines together.
    pub(crate) rejected: Option<&'a str>,
    /// Number of Pods that check configurations.
    pub(crate) check_pods: usize,
    /// State of the Pod that keeps running for checks, if the workload demands one.
    pub(crate) validator: Option<&'a str>,
    /// State of the catalogue that is learned.
    pub(crate) catalogue: Option<&'a str>,
    /// Change of the Pods or of their configuration.
    pub(crate) change: Option<&'a Change>,
    /// Change that is not made yet.
    pub(crate) planned: Option<&'a Change>,
    /// Directory of the nodes for the data of the Pods, if it is not a claim.
    pub(crate) data_directory: Option<&'a str>,
    /// Pods that have loaded the configuration, and those that have not.
    pub(crate) loaded: (Option<String>, Option<Value>),
    /// Versions of the Secrets with which the Pods have just been refreshed.
    pub(crate) refreshed: Option<String>,
}

impl Outcome<'_> {
    /// Returns the status fields. `raw` is the workload.
    pub(crate) fn status(self, raw: &Value) -> Map<String, Value> {
        let assembly = self.assembly;
        let hash = assembly.hash();
        let before = &raw["status"];
        let global = kaasops::global_options_checksum(&assembly.config);
        let mut status = Map::new();
        let now = json!(Time(k8s_openapi::jiff::Timestamp::now()));
        if before["publishedConfigHash"] != hash.as_str() {
            status.insert("lastConfigPublishedAt".to_owned(), now.clone());
        }
        // Without a change, the last one remains.
        if let Some(change) = self.change {
            status.insert("lastChange".to_owned(), change.to_status(&now));
        }
        let planned = self
            .planned
            .map(|change| change.to_planned_status(&before["plannedChange"], &now));
        status.insert("plannedChange".to_owned(), json!(planned));
        let together = self
            .rejected
            .map(|message| format!("all pipelines together: {message}"));
        let each = assembly.problems.iter();
        let each = each.map(|it| format!("{}: {}", it.pipeline, it.message));
        let problems = together.into_iter().chain(each).take(MAX_PROBLEMS);
        let problems: Vec<_> = problems.map(|it| shortened(it, LONGEST_PROBLEM)).collect();
        let fields = [
            ("publishedConfigHash", json!(hash)),
            ("LastAppliedGlobalConfigHash", json!(global)),
            ("runningPipelines", json!(assembly.parts.len())),
            (
                "notRunning",
                json!((!problems.is_empty()).then_some(problems)),
            ),
            (
                "catalogue",
                json!(
                    self.catalogue
                        .map(|it| shortened(it.to_owned(), LONGEST_PROBLEM))
                ),
            ),
            (
                "checkPods",
                json!((self.check_pods > 0).then_some(self.check_pods)),
            ),
            ("validator", json!(self.validator)),
            ("loaded", json!(self.loaded.0)),
            ("notLoaded", json!(self.loaded.1)),
            (data_directory::FIELD, json!(self.data_directory)),
        ];
        status.extend(fields.map(|(name, value)| (name.to_owned(), value)));
        let refreshed = self
            .refreshed
            .map(|it| ("refreshedSecretVersions".to_owned(), json!(it)));
        status.extend(refreshed);
        status
    }
}

//! Status of a workload.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lockstep_vector_assembly::Assembly;
use serde_json::{Map, Value, json};

use crate::run::kaasops;
use crate::validate_only::shortened;

/// Maximum number of pipelines that do not run in the status of a workload.
const MAX_PROBLEMS: usize = 20;

/// Maximum length of the description of one of them, in bytes.
pub(crate) const LONGEST_PROBLEM: usize = 1024;

/// Returns the status fields. `refreshed` are the versions of the Secrets with which the Pods have just been refreshed.
pub(crate) fn fields(
    raw: &Value,
    assembly: &Assembly,
    refreshed: Option<String>,
) -> Map<String, Value> {
    let hash = assembly.hash();
    let before = &raw["status"];
    let global = kaasops::global_options_checksum(&assembly.config);
    let mut status = Map::new();
    if before["publishedConfigHash"] != hash.as_str() {
        let now = k8s_openapi::jiff::Timestamp::now();
        status.insert("lastConfigPublishedAt".to_owned(), json!(Time(now)));
    }
    let problems = assembly
        .problems
        .iter()
        .take(MAX_PROBLEMS)
        .map(|it| shortened(format!("{}: {}", it.pipeline, it.message), LONGEST_PROBLEM));
    let problems: Vec<_> = problems.collect();
    let fields = [
        ("publishedConfigHash", json!(hash)),
        ("LastAppliedGlobalConfigHash", json!(global)),
        ("runningPipelines", json!(assembly.parts.len())),
        (
            "notRunning",
            json!((!problems.is_empty()).then_some(problems)),
        ),
    ];
    status.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    let refreshed = refreshed.map(|it| ("refreshedSecretVersions".to_owned(), json!(it)));
    status.extend(refreshed);
    status
}

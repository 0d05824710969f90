//! Status of a workload.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lockstep_vector_assembly::Assembly;
use serde_json::{Map, Value, json};

use crate::owned::Change;
use crate::run::kaasops;
use crate::validate_only::shortened;

/// Maximum number of pipelines that do not run in the status of a workload.
const MAX_PROBLEMS: usize = 20;

/// Maximum length of the description of one of them, in bytes.
pub(crate) const LONGEST_PROBLEM: usize = 1024;

/// Returns the status fields.
pub(crate) fn fields(
    raw: &Value,
    assembly: &Assembly,
    change: Option<&Change>,
) -> Map<String, Value> {
    let hash = assembly.hash();
    let before = &raw["status"];
    let global = kaasops::global_options_checksum(&assembly.config);
    let mut status = Map::new();
    let now = json!(Time(k8s_openapi::jiff::Timestamp::now()));
    if before["publishedConfigHash"] != hash.as_str() {
        status.insert("lastConfigPublishedAt".to_owned(), now.clone());
    }
    // Without a change, the last one remains.
    if let Some(change) = change {
        status.insert("lastChange".to_owned(), change.to_status(&now));
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
    status
}

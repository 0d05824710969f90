//! The transform `tag_cardinality_limit`.

use lockstep_shared_validation::FieldPath;
use serde_json::Value;

use crate::component::ComponentKind;
use crate::diagnostic::DiagnosticList;
use crate::option_path::below;
use crate::start_up::component_options::{ComponentOptions, SetOption, forbid};

const CACHE_SIZE: &str = "cache_size_per_key";

/// Validates the cache sizes: only probabilistic limits have them for single tags, and none may be 0.
pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if !options.is(ComponentKind::Transform, "tag_cardinality_limit") {
        return;
    }
    let is_probabilistic = options.equals("mode", "probabilistic");
    if is_probabilistic && let Some(found) = options.get(CACHE_SIZE) {
        size(found, problems);
    }
    if let Some(limits) = options.get("per_tag_limits") {
        tags(&limits, is_probabilistic, problems);
    }
    let Some(metrics) = options.get("per_metric_limits") else {
        return;
    };
    for (name, metric) in metrics.value.as_object().into_iter().flatten() {
        let is_probabilistic = metric["mode"] == "probabilistic";
        let path = below(&metrics.path, name);
        let option = |option| within(&path, metric, option);
        if is_probabilistic && let Some(found) = option(CACHE_SIZE) {
            size(found, problems);
        }
        if let Some(limits) = option("per_tag_limits") {
            tags(&limits, is_probabilistic, problems);
        }
    }
}

/// Validates the limits of single tags.
fn tags(limits: &SetOption<'_>, is_probabilistic: bool, problems: &mut DiagnosticList) {
    for (name, tag) in limits.value.as_object().into_iter().flatten() {
        let path = below(&limits.path, name);
        let found = within(&path, tag, CACHE_SIZE).filter(|found| found.value.is_number());
        match found {
            Some(found) if is_probabilistic => size(found, problems),
            Some(found) => {
                let detail = "can be set only with `mode: probabilistic`";
                forbid(found.path, detail, problems);
            }
            None => {}
        }
    }
}

/// Validates the size of a cache.
fn size(found: SetOption<'_>, problems: &mut DiagnosticList) {
    if found.value.as_u64() == Some(0) {
        let detail = "must be greater than 0: Vector panics at the first metric";
        found.refuse(detail, problems);
    }
}

/// Returns an option of a value.
fn within<'a>(path: &FieldPath, value: &'a Value, option: &str) -> Option<SetOption<'a>> {
    let value = value.get(option)?;
    let path = path.child(option);
    Some(SetOption { path, value })
}

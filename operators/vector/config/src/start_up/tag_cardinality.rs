//! The transform `tag_cardinality_limit`.

use serde_json::Value;

use crate::component::ComponentKind;
use crate::diagnostic::DiagnosticList;
use crate::option_path::below;
use crate::start_up::component_options::{ComponentOptions, SetOption, forbid};

const CACHE_SIZE: &str = "cache_size_per_key";

/// Validates that only probabilistic limits have a cache size for single tags.
pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if !options.is(ComponentKind::Transform, "tag_cardinality_limit") {
        return;
    }
    if options.equals("mode", "probabilistic") {
        let size = options.get(CACHE_SIZE);
        if let Some(found) = size.filter(|found| found.value.as_u64() == Some(0)) {
            found.refuse(
                "must be greater than 0: Vector panics at the first metric",
                problems,
            );
        }
    } else {
        tags(options.get("per_tag_limits"), problems);
    }
    let Some(metrics) = options.get("per_metric_limits") else {
        return;
    };
    for (name, metric) in metrics.value.as_object().into_iter().flatten() {
        if metric["mode"] == "probabilistic" {
            continue;
        }
        let limits = metric.get("per_tag_limits");
        let path = below(&metrics.path, name).child("per_tag_limits");
        tags(limits.map(|value| SetOption { path, value }), problems);
    }
}

fn tags(limits: Option<SetOption<'_>>, problems: &mut DiagnosticList) {
    let Some(limits) = limits else {
        return;
    };
    for (name, tag) in limits.value.as_object().into_iter().flatten() {
        if tag.get(CACHE_SIZE).is_some_and(Value::is_number) {
            let detail = "can be set only with `mode: probabilistic`";
            forbid(
                below(&limits.path, name).child(CACHE_SIZE),
                detail,
                problems,
            );
        }
    }
}

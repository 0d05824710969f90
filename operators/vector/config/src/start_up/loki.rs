//! The sink `loki`.

use std::sync::LazyLock;

use regex::Regex;

use crate::diagnostic::DiagnosticList;
use crate::option_format::fields_of_template;
use crate::option_path::below;
use crate::start_up::component_options::{ComponentOptions, refuse, require};

/// Name of a label that Loki accepts.
static LABEL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\A[A-Za-z_][A-Za-z0-9_]*\z").expect("the pattern is valid"));

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if !options.is_sink(&["loki"]) {
        return;
    }
    let Some(labels) = options.get("labels") else {
        return;
    };
    let Some(fields) = labels.value.as_object() else {
        return;
    };
    if fields.is_empty() {
        let detail = "must have at least one label, such as `app: \"vector\"`";
        return require(labels.path, detail, problems);
    }
    for name in fields.keys() {
        // The name of a template is known only when an event is sent.
        let has_field = fields_of_template(name).is_none_or(|fields| !fields.is_empty());
        if options.is_replaced(name) || has_field || name.contains('%') {
            continue;
        }
        let trimmed = name.trim();
        let name_of_label = trimmed.strip_suffix('*').unwrap_or(trimmed);
        let is_wildcard = name_of_label.is_empty() && trimmed == "*";
        if !is_wildcard && !LABEL.is_match(name_of_label) {
            let detail =
                "is no name of a label: use letters, digits and `_`, with no digit at the start";
            refuse(below(&labels.path, name), name, detail, problems);
        }
    }
}

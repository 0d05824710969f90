//! Encodings of sinks.

use std::collections::HashSet;

use lockstep_shared_validation::{FieldError, FieldPath};
use serde_json::Value;
use vrl::path::parse_value_path;

use crate::component::Component;
use crate::diagnostic::{Check, DiagnosticList};

/// Returns the encoding of a sink and its path. For `opentelemetry`, it is an option of the protocol.
pub(crate) fn of<'a>(sink: &Component<'a>) -> Option<(FieldPath, &'a Value)> {
    let path = FieldPath::new(sink.path());
    if let Some(encoding) = sink.option("encoding") {
        return Some((path.child("encoding"), encoding));
    }
    let encoding = sink.option("protocol")?.get("encoding")?;
    Some((path.child("protocol").child("encoding"), encoding))
}

/// Validates that no field is listed in both `only_fields` and `except_fields`.
pub(crate) fn validate(sink: &Component<'_>, problems: &mut DiagnosticList) {
    let Some((path, encoding)) = of(sink) else {
        return;
    };
    let fields = |name: &str| {
        let fields = encoding[name].as_array().into_iter().flatten();
        let fields = fields.enumerate().filter_map(|(index, field)| {
            let text = field.as_str()?;
            Some((index, text, parse_value_path(text).ok()?))
        });
        fields.collect::<Vec<_>>()
    };
    let only = fields("only_fields").into_iter();
    let only: HashSet<_> = only.map(|(_, _, field)| field).collect();
    for (index, text, field) in fields("except_fields") {
        if only.contains(&field) {
            let path = path.child("except_fields").index(index);
            let detail = "is also listed in `only_fields`; remove one of them";
            problems.add(Check::Options, FieldError::invalid(path, text, detail));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lockstep_vector_vrl::InProcessCompiler;
    use serde_json::json;

    use crate::catalogue::Catalogue;
    use crate::validate::{ProgramScope, validate_config};
    use crate::vrl_environment::VrlEnvironment;

    #[test]
    fn a_field_cannot_be_listed_in_only_fields_and_except_fields() {
        let wrong = |encoding: serde_json::Value| {
            let config = json!({
                "sources": {"in": {"type": "demo_logs", "format": "json"}},
                "sinks": {"out": {"type": "console", "inputs": ["in"], "encoding": encoding}},
            });
            let found = validate_config(
                Catalogue::shipped(),
                &config,
                &BTreeSet::new(),
                &VrlEnvironment::shared(InProcessCompiler::boxed),
                ProgramScope::Load,
            );
            let found = found
                .into_iter()
                .map(|problem| problem.error.path.to_string());
            found.collect::<Vec<_>>()
        };
        let nothing: [&str; 0] = [];
        let apart = json!({"codec": "json", "only_fields": ["a"], "except_fields": ["a.b", "b"]});
        assert_eq!(wrong(apart), nothing);
        let both =
            json!({"codec": "json", "only_fields": ["b", "a"], "except_fields": ["c", ".a"]});
        assert_eq!(wrong(both), ["sinks[out].encoding.except_fields[1]"]);
    }
}

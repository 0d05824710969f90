//! Variables that stay as they are written, because Vector does not replace them.

use lockstep_shared_validation::{FieldError, FieldPath, LazyPath};
use serde_json::Value;

use crate::component::ComponentKind;
use crate::diagnostic::{Check, Diagnostic, DiagnosticList};
use crate::interpolation::variable_in_braces;
use crate::option_path::lazily_below;

/// Blocks whose options are programs, in which `${NAME}` has other meanings.
const WITH_PROGRAMS: [&str; 2] = [ComponentKind::Transform.block(), "tests"];

/// Default of the option `self_node_name` of `kubernetes_logs`.
const NODE_NAME: &str = "${VECTOR_SELF_NODE_NAME}";

/// Reports each text with a variable in braces in a configuration that Vector reads without
/// `--dangerously-allow-env-var-interpolation`.
#[must_use]
pub fn find_literal_variables(config: &Value) -> Vec<Diagnostic> {
    let mut problems = DiagnosticList::default();
    for (block, value) in config.as_object().into_iter().flatten() {
        if WITH_PROGRAMS.contains(&block.as_str()) {
            continue;
        }
        let path = FieldPath::new(block.clone());
        let has_components = ComponentKind::ALL.iter().any(|it| it.block() == block);
        match value.as_object().filter(|_| has_components) {
            Some(components) => {
                for (id, component) in components {
                    find(component, &path.lazy().key(id), &mut problems);
                }
            }
            None => find(value, &path.lazy(), &mut problems),
        }
    }
    problems.into_diagnostics()
}

fn find(value: &Value, path: &LazyPath<'_>, problems: &mut DiagnosticList) {
    match value {
        Value::String(text) => check(text, path, problems),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find(item, &path.index(index), problems);
            }
        }
        Value::Object(fields) => {
            let is = |name: &str, text: &str| fields.get(name).is_some_and(|it| it == text);
            for (name, value) in fields {
                // Vector compares the option with this text, and reads the variable itself.
                let is_own =
                    name == "self_node_name" && value == NODE_NAME && is("type", "kubernetes_logs");
                let is_program = match name.as_str() {
                    "source" => is("strategy", "custom"),
                    "value" => is("type", "vrl"),
                    "vrl" => is("codec", "vrl"),
                    _ => false,
                };
                if !is_program && !is_own {
                    let path = lazily_below(path, name);
                    check(name, &path, problems);
                    find(value, &path, problems);
                }
            }
        }
        _ => {}
    }
}

fn check(text: &str, path: &LazyPath<'_>, problems: &mut DiagnosticList) {
    if let Some(variable) = variable_in_braces(text) {
        // With the path and the rule, it is short enough for a warning of the API server.
        let detail = format!(
            "`{variable}` stays as it is: Vector replaces environment variables only on request; write the value, or use a secret"
        );
        let error = FieldError::invalid_hidden(path.to_path(), detail);
        problems.add(Check::LiteralVariables, error);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn variables_in_options_are_reported_and_those_in_programs_are_not() {
        let config = json!({
            "data_dir": "/${DIR}",
            "sources": {"a b": {"type": "x", "list": ["a", "${A}"], "plain": "$A $1 $$"}},
            "transforms": {"t": {"source": ".a = replace(.b, r'(?P<x>.)', \"${x}\")"}},
            "sinks": {
                "out": {
                    "labels": {"${B:-b}": "x"},
                    "auth": {"strategy": "custom", "source": "${C}"},
                    "encoding": {"codec": "vrl", "vrl": {"source": "${C}"}},
                    "query": {"type": "vrl", "value": "${C}"},
                    "source": "${D}",
                },
            },
            "tests": [{"name": "${E}"}],
        });
        let found = find_literal_variables(&config);
        let paths: Vec<_> = found.iter().map(|it| it.error.path.to_string()).collect();
        let expected = [
            "data_dir",
            "sinks[out].labels[${B:-b}]",
            "sinks[out].source",
            "sources[a b].list[1]",
        ];
        assert_eq!(paths, expected);
        assert!(
            found[0]
                .error
                .to_string()
                .contains("`${DIR}` stays as it is:")
        );
        assert!(found.iter().all(|it| it.check.is_warning()));
    }

    #[test]
    fn the_node_name_is_read_by_the_source_itself() {
        let found = |kind: &str, name: &str| {
            let source = json!({"type": kind, "self_node_name": name});
            find_literal_variables(&json!({"sources": {"in": source}})).len()
        };
        assert_eq!(found("kubernetes_logs", NODE_NAME), 0);
        assert_eq!(found("kubernetes_logs", "${NODE_NAME}"), 1);
        assert_eq!(found("file", NODE_NAME), 1);
    }
}

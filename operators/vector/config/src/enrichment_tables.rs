//! Enrichment tables that are part of the event flow: a `memory` table receives events like a sink, and can output them
//! like a source, under a separate name.

use serde_json::{Map, Value};

use crate::component::{Component, ComponentKind};
use crate::event_type::DataType;

/// Block of a configuration that contains the tables.
pub(crate) const BLOCK: &str = "enrichment_tables";

/// Event types that tables accept and output.
pub(crate) const TYPES: DataType = DataType::LOG;

/// Returns the tables that are part of the event flow, as sinks and sources.
pub(crate) fn components(config: &Map<String, Value>) -> impl Iterator<Item = Component<'_>> {
    let tables = config.get(BLOCK).and_then(Value::as_object);
    let tables = tables
        .into_iter()
        .flatten()
        .filter(|(_, table)| table["type"] == "memory");
    tables.flat_map(|(id, table)| {
        let takes = Component {
            block: BLOCK,
            family: ComponentKind::Sink,
            id,
            value: table,
        };
        let has_inputs = takes.inputs().next().is_some();
        let dump = &table["source_config"];
        let source = dump["source_key"].as_str().map(|key| Component {
            family: ComponentKind::Source,
            id: key,
            value: dump,
            ..takes
        });
        has_inputs.then_some(takes).into_iter().chain(source)
    })
}

/// Returns the outputs of a table that outputs events.
pub(crate) fn outputs(component: &Component<'_>) -> Vec<(String, DataType)> {
    let mut outputs = vec![(component.id.to_owned(), TYPES)];
    if component.option("export_expired_items") == Some(&Value::Bool(true)) {
        outputs.push((format!("{}.expired", component.id), TYPES));
    }
    outputs
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lockstep_vector_vrl::InProcessCompiler;
    use serde_json::json;

    use super::*;
    use crate::catalogue::Catalogue;
    use crate::validate::{ProgramScope, validate_config};
    use crate::vrl_environment::VrlEnvironment;

    /// Returns the paths of the errors of a configuration with a table, a source of this type and a sink with these
    /// inputs.
    fn wrong(table: &Value, source: &str, sink_takes: &[&str]) -> Vec<String> {
        let config = json!({
            "enrichment_tables": {"table": table},
            "sources": {"in": {"type": source}},
            "sinks": {"out": {"type": "blackhole", "inputs": sink_takes}},
        });
        let found = validate_config(
            Catalogue::shipped(),
            &config,
            &BTreeSet::new(),
            &VrlEnvironment::shared(InProcessCompiler::boxed),
            ProgramScope::Load,
        );
        let wrong = found.iter().filter(|problem| !problem.check.is_warning());
        wrong
            .map(|problem| problem.error.path.to_string())
            .collect()
    }

    #[test]
    fn a_memory_table_accepts_and_outputs_events() {
        let gives = json!({
            "type": "memory",
            "inputs": ["in"],
            "source_config": {"source_key": "dump", "export_expired_items": true},
        });
        let nothing: [&str; 0] = [];
        assert_eq!(
            wrong(&gives, "internal_logs", &["dump", "dump.expired"]),
            nothing
        );
        assert_eq!(wrong(&gives, "internal_logs", &["d*"]), nothing);
        let at_inputs = ["enrichment_tables[table].inputs[0]"];
        assert_eq!(wrong(&gives, "host_metrics", &["dump"]), at_inputs);
        let takes = json!({"type": "memory", "inputs": ["nowhere"]});
        assert_eq!(wrong(&takes, "internal_logs", &["in"]), at_inputs);
        assert_eq!(
            wrong(&takes, "internal_logs", &["in", "dump"]),
            ["sinks[out].inputs[1]", at_inputs[0]]
        );
        let other = json!({"type": "geoip", "path": "/", "inputs": ["nowhere"], "source_config": {"source_key": "dump"}});
        assert_eq!(
            wrong(&other, "internal_logs", &["dump"]),
            ["sinks[out].inputs[0]"]
        );
    }
}

//! The check of a whole configuration.

use serde_json::{Map, Value};
use shared_validation::{FieldError, FieldPath};

use crate::catalogue::Catalogue;
use crate::component::{Family, components};
use crate::functions::Tables;
use crate::problem::{Check, Problem, Problems};
use crate::{addresses, option_errors, readable, topology, transforms};

/// Judges a configuration as Vector would, without its environment: what is wrong with it, and what its author
/// should know.
#[must_use]
pub fn judge(catalogue: &Catalogue, config: &Value) -> Vec<Problem> {
    let mut problems = Problems::default();
    let Value::Object(fields) = config else {
        let detail = "a configuration is a mapping with `sources`, `transforms` and `sinks`";
        let error = FieldError::type_invalid(FieldPath::root(), config.clone(), detail);
        problems.add(Check::Readable, error);
        return problems.0;
    };
    for family in Family::ALL {
        if let Some(block) = fields.get(family.block())
            && !block.is_object()
        {
            let detail = format!("must be a mapping of names to {}", family.block());
            let path = FieldPath::new(family.block());
            let error = FieldError::type_invalid(path, block.clone(), detail);
            problems.add(Check::Options, error);
        }
    }
    globals(catalogue, fields, &mut problems);
    let tables = tables(fields);
    for component in components(fields) {
        let path = FieldPath::new(component.path());
        readable::judge(component.value, &path, &mut problems);
        option_errors::judge(catalogue, &component, &mut problems);
        if component.family == Family::Transform {
            transforms::judge(&component, &tables, &mut problems);
        }
    }
    topology::judge(catalogue, fields, &mut problems);
    addresses::judge(fields, &mut problems);
    problems.0
}

fn globals(catalogue: &Catalogue, fields: &Map<String, Value>, problems: &mut Problems) {
    let blocks = Family::ALL.map(Family::block);
    let beside = fields.iter().filter(|(name, _)| !blocks.contains(&name.as_str()));
    let beside: Map<String, Value> =
        beside.map(|(name, value)| (name.clone(), value.clone())).collect();
    if beside.is_empty() {
        return;
    }
    let beside = Value::Object(beside);
    readable::judge(&beside, &FieldPath::root(), problems);
    option_errors::judge_globals(catalogue, &beside, problems);
}

fn tables(fields: &Map<String, Value>) -> Tables {
    let tables = fields.get("enrichment_tables").and_then(Value::as_object);
    Tables(tables.into_iter().flat_map(Map::keys).cloned().collect())
}

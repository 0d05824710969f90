//! Event types that a component accepts and outputs, depending on its options.

use std::collections::BTreeSet;

use lockstep_shared_validation::{FieldError, FieldPath};
use serde_json::{Map, Value};

use crate::catalogue::Catalogue;
use crate::component::{Component, ComponentKind};
use crate::diagnostic::{Check, DiagnosticList};
use crate::encodings;
use crate::enrichment_tables;
use crate::event_type::DataType;

/// Output names that Vector reserves.
const RESERVED: [&str; 2] = ["_default", "_unmatched"];

/// Returns the outputs of a component with their event types, and reports invalid names of outputs.
pub(crate) fn of(
    catalogue: &Catalogue,
    component: &Component<'_>,
    problems: &mut DiagnosticList,
) -> Vec<(String, DataType)> {
    let id = component.id;
    let kind = component.kind().unwrap_or_default();
    let entry = catalogue.entry(component.family, kind);
    let itself = |types: DataType| vec![(id.to_owned(), types)];
    let named = |name: &str| format!("{id}.{name}");
    match (component.family, kind) {
        (ComponentKind::Sink, _) => Vec::new(),
        _ if component.block == enrichment_tables::BLOCK => enrichment_tables::outputs(component),
        (ComponentKind::Transform, "route") => {
            let routes = component.option("route").and_then(Value::as_object);
            let mut outputs = Vec::new();
            for name in routes.into_iter().flat_map(Map::keys) {
                let path = FieldPath::new(component.path()).child("route").key(name);
                reserved(name, path, problems);
                outputs.push((named(name), DataType::ALL));
            }
            if component.option("reroute_unmatched") != Some(&Value::Bool(false)) {
                outputs.push((named("_unmatched"), DataType::ALL));
            }
            outputs
        }
        (ComponentKind::Transform, "exclusive_route") => {
            let routes = component.option("routes").and_then(Value::as_array);
            let mut outputs = Vec::new();
            let mut seen = BTreeSet::new();
            for (index, route) in routes.into_iter().flatten().enumerate() {
                let Some(name) = route["name"].as_str() else {
                    continue;
                };
                let path = FieldPath::new(component.path())
                    .child("routes")
                    .index(index);
                reserved(name, path.child("name"), problems);
                if !seen.insert(name) {
                    let error = FieldError::duplicate(path.child("name"), name);
                    problems.add(Check::Topology, error);
                }
                outputs.push((named(name), DataType::ALL));
            }
            outputs.push((named("_unmatched"), DataType::ALL));
            outputs
        }
        (ComponentKind::Transform, "remap") => {
            let mut outputs = itself(DataType::ALL);
            if component.option("reroute_dropped") == Some(&Value::Bool(true)) {
                outputs.push((named("dropped"), DataType::ALL));
            }
            outputs
        }
        (ComponentKind::Transform, "lua") => itself(lua(component)),
        (ComponentKind::Source, _) => match entry {
            // The unknown type is reported elsewhere and must not cause more errors.
            None => itself(DataType::ALL),
            Some(entry) if !entry.outputs.is_empty() && has_several(component) => {
                let outputs = entry.outputs.iter();
                let outputs = outputs.filter(|(name, _)| !is_disabled(component, name));
                let outputs = outputs.map(|(name, types)| {
                    let is_raw = name == "metrics" && has_raw_metrics(component);
                    (named(name), if is_raw { DataType::LOG } else { *types })
                });
                outputs.collect()
            }
            // Its output does not depend on its decoder.
            Some(entry) if kind == "datadog_agent" => itself(entry.gives),
            Some(entry) => itself(decoded(catalogue, component, entry.gives)),
        },
        (ComponentKind::Transform, _) => itself(entry.map_or(DataType::ALL, |entry| entry.gives)),
    }
}

/// Returns the names of the outputs of a component, which can be inputs of others.
#[must_use]
pub fn output_names(catalogue: &Catalogue, component: &Component<'_>) -> Vec<String> {
    let outputs = of(catalogue, component, &mut DiagnosticList::default());
    outputs.into_iter().map(|(name, _)| name).collect()
}

/// Returns the event types that a component accepts, if its type is known.
pub(crate) fn accepted_types(catalogue: &Catalogue, component: &Component<'_>) -> Option<DataType> {
    if component.block == enrichment_tables::BLOCK {
        return Some(enrichment_tables::TYPES);
    }
    let kind = component.kind()?;
    let entry = catalogue.entry(component.family, kind)?;
    match component.family {
        ComponentKind::Transform if kind == "lua" => Some(lua(component)),
        ComponentKind::Sink => Some(encoded(catalogue, component, entry.accepts)),
        _ => Some(entry.accepts),
    }
}

fn reserved(name: &str, path: FieldPath, problems: &mut DiagnosticList) {
    if RESERVED.contains(&name) {
        let detail = "is reserved; choose another name";
        problems.add(Check::Topology, FieldError::invalid(path, name, detail));
    }
}

fn lua(component: &Component<'_>) -> DataType {
    match component.option("version").and_then(Value::as_str) {
        Some("2") => DataType::LOG.or(DataType::METRIC),
        _ => DataType::LOG,
    }
}

/// Returns true if a source with one output for each event type uses them.
fn has_several(component: &Component<'_>) -> bool {
    component.kind() != Some("datadog_agent")
        || component.option("multiple_outputs") == Some(&Value::Bool(true))
}

/// Returns true if an output of `datadog_agent` is disabled.
fn is_disabled(component: &Component<'_>, output: &str) -> bool {
    component.option(&format!("disable_{output}")) == Some(&Value::Bool(true))
}

/// Returns true if `opentelemetry` outputs metrics in the OTLP format, which Vector handles as logs.
fn has_raw_metrics(component: &Component<'_>) -> bool {
    match component.option("use_otlp_decoding") {
        Some(Value::Bool(all)) => *all,
        Some(one) => one["metrics"] == true,
        None => false,
    }
}

/// Returns the event types that a source outputs; some codecs decode more than logs.
fn decoded(catalogue: &Catalogue, component: &Component<'_>, gives: DataType) -> DataType {
    let codec = component
        .option("decoding")
        .and_then(|decoding| decoding["codec"].as_str());
    codec
        .and_then(|codec| catalogue.decoders.get(codec))
        .copied()
        .unwrap_or(gives)
}

/// Returns the event types that a sink accepts; some codecs encode fewer types than the sink accepts.
fn encoded(catalogue: &Catalogue, component: &Component<'_>, accepts: DataType) -> DataType {
    let encoding = encodings::of(component);
    let codec = encoding.and_then(|(_, encoding)| encoding["codec"].as_str());
    let Some(codec) = codec else { return accepts };
    let writes = catalogue
        .encoders
        .get(codec)
        .copied()
        .unwrap_or(DataType::LOG);
    accepts.and(writes)
}

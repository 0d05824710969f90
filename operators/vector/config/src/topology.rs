//! Validation of the topology: events can flow from sources to sinks.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_shared_validation::{FieldError, FieldPath, did_you_mean};
use serde_json::{Map, Value};

use crate::catalogue::Catalogue;
use crate::component::{Component, ComponentKind, components, is_pattern};
use crate::diagnostic::{Check, DiagnosticList};
use crate::enrichment_tables;
use crate::event_type::DataType;
use crate::outputs;

/// Maximum number of problems for which a similar name is suggested: each needs a comparison with every output.
const MAX_GUESSED: usize = 20;

/// Maximum number of outputs that are listed in a suggestion.
const MAX_NAMED: usize = 10;

/// Maximum number of outputs that all inputs may match in total.
const MAX_EDGES: usize = 100_000;

/// Outputs of all components, by name.
struct Outputs<'a> {
    /// Event types of an output and its component.
    by_name: BTreeMap<String, (DataType, Component<'a>)>,
}

/// Connection from an output to a component.
#[derive(Clone, Copy)]
struct Edge<'a> {
    to: Component<'a>,
    /// Index of the input in the configuration.
    index: usize,
    /// Name of the output.
    from: &'a str,
}

/// Validates the connections between the components of a configuration.
pub(crate) fn validate(
    catalogue: &Catalogue,
    config: &Map<String, Value>,
    problems: &mut DiagnosticList,
) {
    let own: Vec<_> = components(config).collect();
    presence(config, problems);
    names(&own, problems);
    let all: Vec<_> = own
        .iter()
        .copied()
        .chain(enrichment_tables::components(config))
        .collect();
    let mut outputs = Outputs {
        by_name: BTreeMap::new(),
    };
    for component in &all {
        for (name, types) in outputs::of(catalogue, component, problems) {
            outputs.by_name.insert(name, (types, *component));
        }
    }
    let is_relaxed = config
        .get("wildcard_matching")
        .is_some_and(|value| value == "relaxed");
    let mut edges = Vec::new();
    for component in all
        .iter()
        .filter(|component| component.family != ComponentKind::Source)
    {
        edges.append(&mut inputs(component, &all, &outputs, is_relaxed, problems));
        if edges.len() > MAX_EDGES {
            let path = FieldPath::new(component.path()).child("inputs");
            let detail = format!(
                "the inputs match more outputs than the limit of {MAX_EDGES}; list the components by name, or split the pipeline"
            );
            return problems.add(Check::Limits, FieldError::invalid_hidden(path, detail));
        }
    }
    types(catalogue, &outputs, &edges, problems);
    tests(config, &outputs, problems);
    cycles(&outputs, &edges, problems);
    unused(&outputs, &edges, problems);
}

fn presence(config: &Map<String, Value>, problems: &mut DiagnosticList) {
    for (family, detail) in [
        (
            ComponentKind::Source,
            "a pipeline needs at least one source; without a source, it receives no events",
        ),
        (
            ComponentKind::Sink,
            "a pipeline needs at least one sink; without a sink, it sends no events",
        ),
    ] {
        let block = config.get(family.block());
        let is_empty = block.is_none_or(|block| block.as_object().is_some_and(Map::is_empty));
        if is_empty {
            let path = FieldPath::new(family.block());
            problems.add(Check::Topology, FieldError::required(path, detail));
        }
    }
}

fn names(all: &[Component<'_>], problems: &mut DiagnosticList) {
    let mut seen: BTreeMap<&str, ComponentKind> = BTreeMap::new();
    for component in all {
        let path = FieldPath::new(component.path());
        if component.id.contains('.') {
            let detail = "a component name must not contain `.`, which separates a component from its output";
            problems.add(
                Check::Topology,
                FieldError::invalid(path.clone(), component.id, detail),
            );
        }
        match seen.get(component.id) {
            Some(other) => {
                let detail = format!(
                    "a {} already has this name; component names must be unique",
                    other.noun()
                );
                problems.add(
                    Check::Topology,
                    FieldError::invalid(path, component.id, detail),
                );
            }
            None => drop(seen.insert(component.id, component.family)),
        }
    }
}

/// Resolves the inputs of a component to outputs.
fn inputs<'o>(
    to: &Component<'o>,
    all: &[Component<'_>],
    outputs: &'o Outputs<'_>,
    is_relaxed: bool,
    problems: &mut DiagnosticList,
) -> Vec<Edge<'o>> {
    let path = FieldPath::new(to.path()).child("inputs");
    let Some(written) = to.option("inputs").and_then(Value::as_array) else {
        return Vec::new();
    };
    if written.is_empty() {
        let detail = format!("a {} needs at least one input", to.family.noun());
        problems.add(Check::Topology, FieldError::required(path, detail));
        return Vec::new();
    }
    let mut edges: Vec<Edge<'o>> = Vec::new();
    let mut taken = BTreeSet::new();
    for (index, input) in written.iter().enumerate() {
        let Some(input) = input.as_str() else {
            continue;
        };
        let path = path.index(index);
        let found = matching(input, to, outputs);
        if found.is_empty() && !(is_relaxed && is_pattern(input)) {
            let detail = unknown(input, to, all, outputs, problems.len() < MAX_GUESSED);
            let error = FieldError::invalid(path.clone(), input, detail);
            problems.add(Check::Topology, error);
        }
        for from in found {
            if taken.insert(from) {
                edges.push(Edge {
                    to: *to,
                    index,
                    from,
                });
            } else {
                let detail = format!("`{from}` is already an input; remove one of them");
                let error = FieldError::invalid(path.clone(), input, detail);
                problems.add(Check::Topology, error);
            }
        }
    }
    edges
}

/// Returns the outputs that an input matches. A pattern never matches the component itself.
fn matching<'o>(input: &str, to: &Component<'_>, outputs: &'o Outputs<'_>) -> Vec<&'o str> {
    let exact = || {
        let found = outputs.by_name.get_key_value(input);
        found.map(|(name, _)| name.as_str())
    };
    if !is_pattern(input) {
        return exact().into_iter().collect();
    }
    let Ok(pattern) = glob::Pattern::new(input) else {
        return exact().into_iter().collect();
    };
    let names = outputs.by_name.keys().map(String::as_str);
    let found = names.filter(|name| pattern.matches(name) && *name != to.id);
    found.collect()
}

/// Describes why an input matches no output, and suggests a similar one.
fn unknown(
    input: &str,
    to: &Component<'_>,
    all: &[Component<'_>],
    outputs: &Outputs<'_>,
    is_guessed: bool,
) -> String {
    let named = all.iter().find(|component| component.id == input);
    if let Some(named) = named {
        if named.family == ComponentKind::Sink {
            return "is a sink, and sinks have no outputs".to_owned();
        }
        let mut own = outputs
            .by_name
            .iter()
            .filter(|(_, (_, owner))| is_guessed && owner.id == named.id);
        let named = own.by_ref().take(MAX_NAMED);
        let named: Vec<_> = named.map(|(name, _)| format!("`{name}`")).collect();
        if !named.is_empty() {
            let more = own.next().map_or("", |_| ", …");
            let named = named.join(", ");
            return format!("has no output of its own name; use one of {named}{more}");
        }
    }
    if input.contains('*') {
        return "matches no component; `wildcard_matching: relaxed` would allow that".to_owned();
    }
    let others = outputs.by_name.keys().map(String::as_str);
    let others = others.filter(|name| is_guessed && *name != to.id);
    let question = did_you_mean(input, others);
    format!("no component has this output{question}")
}

fn types(
    catalogue: &Catalogue,
    outputs: &Outputs<'_>,
    edges: &[Edge<'_>],
    problems: &mut DiagnosticList,
) {
    for edge in edges {
        let Some((gives, _)) = outputs.by_name.get(edge.from) else {
            continue;
        };
        let Some(accepts) = outputs::accepted_types(catalogue, &edge.to) else {
            continue;
        };
        if gives.and(accepts).is_empty() {
            let path = FieldPath::new(edge.to.path())
                .child("inputs")
                .index(edge.index);
            let detail = format!(
                "outputs {}, but this {} accepts {}",
                gives.words(),
                edge.to.family.noun(),
                accepts.words()
            );
            problems.add(
                Check::Topology,
                FieldError::invalid(path, edge.from, detail),
            );
        }
    }
}

/// Validates that the outputs exist to which Vector's unit tests (`tests`) refer. The tests are not run.
fn tests(config: &Map<String, Value>, outputs: &Outputs<'_>, problems: &mut DiagnosticList) {
    let tests = config.get("tests").and_then(Value::as_array);
    for (index, test) in tests.into_iter().flatten().enumerate() {
        let path = FieldPath::new("tests").index(index);
        let extracted = test["outputs"].as_array().into_iter().flatten();
        let extracted = extracted.enumerate().map(|(index, output)| {
            let path = path.child("outputs").index(index).child("extract_from");
            (path, &output["extract_from"])
        });
        let idle = (path.child("no_outputs_from"), &test["no_outputs_from"]);
        for (path, named) in extracted.chain([idle]) {
            let one = named.as_str().map(|name| (path.clone(), name));
            let many = named.as_array().into_iter().flatten().enumerate();
            let many = many.filter_map(|(index, name)| Some((path.index(index), name.as_str()?)));
            for (path, name) in one.into_iter().chain(many) {
                if !outputs.by_name.contains_key(name) {
                    let detail = "no component has this output";
                    problems.add(Check::Topology, FieldError::invalid(path, name, detail));
                }
            }
        }
    }
}

/// Reports each cycle at the input that closes it.
fn cycles(outputs: &Outputs<'_>, edges: &[Edge<'_>], problems: &mut DiagnosticList) {
    let mut before: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for edge in edges
        .iter()
        .filter(|edge| edge.to.family == ComponentKind::Transform)
    {
        if let Some((_, owner)) = outputs.by_name.get(edge.from) {
            before
                .entry(edge.to.id)
                .or_default()
                .push((owner.id, edge.index));
        }
    }
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for start in before.keys() {
        // A path may have any length: no recursion.
        let mut way: Vec<(&str, usize)> = vec![(start, 0)];
        while let Some((here, next)) = way.last_mut() {
            let here: &str = here;
            let inputs = before.get(here).map_or(&[][..], Vec::as_slice);
            let Some((from, index)) = inputs.get(*next) else {
                done.insert(here);
                way.pop();
                continue;
            };
            *next += 1;
            if let Some(begin) = way.iter().position(|(id, _)| id == from) {
                let mut cycle: Vec<_> = way[begin..].iter().map(|(id, _)| *id).collect();
                cycle.reverse();
                cycle.push(cycle[0]);
                let path = FieldPath::new(format!("transforms[{here}].inputs[{index}]"));
                let detail = format!("closes a cycle: {}", shown(&cycle));
                problems.add(Check::Topology, FieldError::invalid(path, *from, detail));
            } else if !done.contains(from) && before.contains_key(from) {
                way.push((from, 0));
            }
        }
    }
}

/// Formats a path of components, shortened if it is long.
fn shown(way: &[&str]) -> String {
    const SHOWN: usize = 12;
    if way.len() <= SHOWN {
        return way.join(" → ");
    }
    format!(
        "{} → … → {}",
        way[..SHOWN - 1].join(" → "),
        way[way.len() - 1]
    )
}

/// Reports each output that no component uses, as Vector does.
fn unused(outputs: &Outputs<'_>, edges: &[Edge<'_>], problems: &mut DiagnosticList) {
    let used: BTreeSet<&str> = edges.iter().map(|edge| edge.from).collect();
    for (name, (_, owner)) in &outputs.by_name {
        if used.contains(name.as_str()) {
            continue;
        }
        let detail =
            format!("the output `{name}` has no consumers: it is no input of any component");
        let path = FieldPath::new(owner.path());
        problems.add(Check::Unused, FieldError::invalid_hidden(path, detail));
    }
}

//! Names and inputs of components (`config/graph.rs`, `config/compiler.rs`).

use std::collections::{BTreeMap, BTreeSet};

use crate::start::component::Component;

/// Longest name of a directory of Linux, in bytes.
const LONGEST_NAME: usize = 255;

/// Refuses a name that occurs twice, one that cannot be that of a directory, an input without a component, and a cycle.
pub(crate) fn check(components: &[Component<'_>]) -> Result<(), String> {
    let mut ids = BTreeSet::new();
    for component in components {
        let id = component.id;
        if !ids.insert(id) {
            return Err(format!("More than one component with name \"{id}\""));
        }
        if id.contains('.') {
            return Err(format!(
                "Component name \"{id}\" should not contain a \".\""
            ));
        }
        if keeps_data(component) && (id.len() > LONGEST_NAME || id.contains('/')) {
            return Err(format!("{id}: no directory can have this name"));
        }
    }
    for block in ["sources", "sinks"] {
        if !components.iter().any(|component| component.block == block) {
            return Err(format!("No {block} defined in the config."));
        }
    }
    let edges = edges(components)?;
    is_acyclic(&edges)
}

/// Returns true if Vector makes a directory with the name of a component.
fn keeps_data(component: &Component<'_>) -> bool {
    let is_disk = component.options["buffer"].to_string().contains("\"disk\"");
    let positions = ["file", "journald", "kubernetes_logs"];
    is_disk || (component.block == "sources" && positions.contains(&component.type_()))
}

/// Returns the components that each one reads.
fn edges<'a>(components: &'a [Component<'a>]) -> Result<BTreeMap<&'a str, Vec<&'a str>>, String> {
    let outputs: Vec<_> = components
        .iter()
        .filter(|component| component.block != "sinks")
        .collect();
    let mut edges = BTreeMap::new();
    for component in components
        .iter()
        .filter(|component| component.block != "sources")
    {
        let id = component.id;
        let inputs = component.options["inputs"].as_array();
        let inputs = inputs.ok_or_else(|| format!("{id} has no inputs"))?;
        let mut read = Vec::new();
        for input in inputs {
            let input = input
                .as_str()
                .ok_or_else(|| format!("{id}: an input is no text"))?;
            let matched = outputs
                .iter()
                .filter(|output| output.id != id && is_output(input, output));
            let matched: Vec<_> = matched.map(|output| output.id).collect();
            if matched.is_empty() {
                return Err(format!(
                    "Input \"{input}\" for {} \"{id}\" doesn't match any components",
                    component.block
                ));
            }
            read.extend(matched);
        }
        if read.is_empty() {
            return Err(format!("{id} has no inputs"));
        }
        edges.insert(id, read);
    }
    Ok(edges)
}

/// Returns true if an input is a component, one of its outputs, or a pattern with an asterisk at its end that matches it.
fn is_output(input: &str, component: &Component<'_>) -> bool {
    let id = component.id;
    match input.strip_suffix('*') {
        Some(start) => id.starts_with(start),
        None => {
            input == id
                || input
                    .strip_prefix(id)
                    .is_some_and(|rest| rest.starts_with('.'))
        }
    }
}

/// Refuses a component that reads its own events.
fn is_acyclic(edges: &BTreeMap<&str, Vec<&str>>) -> Result<(), String> {
    let mut done = BTreeSet::new();
    // Each round removes the components that read only removed ones.
    loop {
        let is_ready = |read: &[&str]| {
            read.iter()
                .all(|id| done.contains(id) || !edges.contains_key(id))
        };
        let ready = edges
            .iter()
            .filter(|(id, read)| !done.contains(*id) && is_ready(read));
        let ready: Vec<_> = ready.map(|(id, _)| *id).collect();
        if ready.is_empty() {
            break;
        }
        done.extend(ready);
    }
    match edges.keys().find(|id| !done.contains(*id)) {
        Some(id) => Err(format!("Cyclic dependency detected in the chain of {id}")),
        None => Ok(()),
    }
}

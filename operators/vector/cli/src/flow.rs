//! Flow of events through the transforms of a configuration, without Vector: `remap`, `filter`, `route` and
//! `exclusive_route` run here, and other transforms are named.
//!
//! ```text
//! configuration ─► transforms that can run, and who reads which output ─► an event ─► visits of components
//! ```

mod input;
mod transform;

use std::collections::{BTreeMap, BTreeSet};

use glob::Pattern;
use lockstep_vector_api::{Catalogue, Component, ComponentKind, Event, components, output_names};
use serde_json::Value;

pub(crate) use crate::flow::input::{InputProblem, conditions, event_of_line, event_of_test};
use crate::flow::transform::{Environment, Passed, Transform};

/// Maximum number of visits of one event: a program can make many events of one.
const MAX_VISITS: usize = 10_000;

/// Components of a configuration, and who reads their outputs.
pub(crate) struct Flow {
    steps: BTreeMap<String, Step>,
    /// Components that read an output.
    readers: BTreeMap<String, Vec<String>>,
}

/// Component of a configuration.
struct Step {
    family: ComponentKind,
    kind: String,
    outputs: Vec<String>,
    /// Transform, or the reason why it does not run here.
    transform: Result<Transform, String>,
}

/// Visit of an event to a component.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) component: String,
    pub(crate) family: ComponentKind,
    pub(crate) kind: String,
    pub(crate) result: VisitResult,
}

/// Result of a visit.
#[derive(Debug)]
pub(crate) enum VisitResult {
    /// Events leave the component, each by an output.
    Passed {
        events: Vec<(String, Event)>,
        /// Error of a program that does not keep the event back.
        note: Option<String>,
    },
    /// The event ends here.
    Dropped(String),
    /// It arrives at a sink.
    Arrived(Event),
    /// Only Vector runs this component.
    NotRun(String),
}

impl Flow {
    /// Reads a valid configuration.
    pub(crate) fn new(catalogue: &Catalogue, config: &Value) -> Self {
        let fields = config.as_object().cloned().unwrap_or_default();
        let environment = Environment::new(catalogue, config);
        let mut steps = BTreeMap::new();
        for component in components(&fields) {
            let outputs = match component.family {
                ComponentKind::Sink => Vec::new(),
                _ => output_names(catalogue, &component),
            };
            let step = Step {
                family: component.family,
                kind: component.kind().unwrap_or_default().to_owned(),
                outputs,
                transform: Transform::new(&component, &environment),
            };
            steps.insert(component.id.to_owned(), step);
        }
        let outputs = steps.values().flat_map(|step| step.outputs.iter().cloned());
        let mut readers: BTreeMap<String, Vec<String>> =
            outputs.map(|output| (output, Vec::new())).collect();
        for component in components(&fields) {
            let patterns: Vec<_> = inputs(&component).collect();
            for (output, readers) in &mut readers {
                if patterns.iter().any(|pattern| pattern.matches(output)) {
                    readers.push(component.id.to_owned());
                }
            }
        }
        Self { steps, readers }
    }

    /// Returns the components, with their types.
    pub(crate) fn components(&self) -> impl Iterator<Item = (&str, ComponentKind, &str)> {
        let steps = self.steps.iter();
        steps.map(|(id, step)| (id.as_str(), step.family, step.kind.as_str()))
    }

    /// Returns the outputs that are read, each with its component and a reader.
    pub(crate) fn edges(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.steps.iter().flat_map(move |(id, step)| {
            step.outputs.iter().flat_map(move |output| {
                let readers = self.readers.get(output).into_iter().flatten();
                readers.map(move |reader| (id.as_str(), output.as_str(), reader.as_str()))
            })
        })
    }

    /// Returns the sources.
    pub(crate) fn sources(&self) -> Vec<&str> {
        let steps = self.steps.iter();
        let sources = steps.filter(|(_, step)| step.family == ComponentKind::Source);
        sources.map(|(id, _)| id.as_str()).collect()
    }

    /// Returns true if a transform has this name.
    pub(crate) fn has_transform(&self, id: &str) -> bool {
        let step = self.steps.get(id);
        step.is_some_and(|step| step.family == ComponentKind::Transform)
    }

    /// Returns the transform that has an output.
    pub(crate) fn owner(&self, output: &str) -> Option<&str> {
        let mut steps = self.steps.iter();
        let (id, _) = steps.find(|(_, step)| {
            step.family == ComponentKind::Transform && step.outputs.iter().any(|own| own == output)
        })?;
        Some(id)
    }

    /// Returns true if events of a component can reach another one, or if both are the same.
    pub(crate) fn reaches(&self, from: &str, to: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(id) = open.pop() {
            if id == to {
                return true;
            }
            let outputs = self.steps.get(id).map(|step| &step.outputs);
            let readers = outputs.into_iter().flatten();
            let readers = readers
                .filter_map(|output| self.readers.get(output))
                .flatten();
            open.extend(readers.map(String::as_str).filter(|id| seen.insert(*id)));
        }
        false
    }

    /// Lets a source output an event. Returns the visits that follow.
    pub(crate) fn leave_source(&self, id: &str, event: &Event) -> Vec<Visit> {
        let mut visits = Vec::new();
        let outputs = self.steps.get(id).map(|step| &step.outputs);
        if let Some(output) = outputs.and_then(|outputs| outputs.first()) {
            self.deliver(output, event, &mut visits);
        }
        visits
    }

    /// Lets an event enter a component. Returns its visit and those that follow.
    pub(crate) fn enter(&self, id: &str, event: Event) -> Vec<Visit> {
        let mut visits = Vec::new();
        self.visit(id, event, &mut visits);
        visits
    }

    fn deliver(&self, output: &str, event: &Event, visits: &mut Vec<Visit>) {
        for reader in self.readers.get(output).into_iter().flatten() {
            self.visit(reader, event.clone(), visits);
        }
    }

    fn visit(&self, id: &str, event: Event, visits: &mut Vec<Visit>) {
        let Some(step) = self.steps.get(id).filter(|_| visits.len() < MAX_VISITS) else {
            return;
        };
        let result = match (&step.family, &step.transform) {
            (ComponentKind::Sink, _) => VisitResult::Arrived(event),
            (_, Err(why)) => VisitResult::NotRun(why.clone()),
            (_, Ok(transform)) => match transform.run(id, event) {
                Passed::Events { events, note } => VisitResult::Passed { events, note },
                Passed::Nothing(why) => VisitResult::Dropped(why),
            },
        };
        let next = match &result {
            VisitResult::Passed { events, .. } => events.clone(),
            _ => Vec::new(),
        };
        visits.push(Visit {
            component: id.to_owned(),
            family: step.family,
            kind: step.kind.clone(),
            result,
        });
        for (output, event) in next {
            self.deliver(&output, &event, visits);
        }
    }
}

/// Returns the inputs of a component, which can be patterns.
fn inputs(component: &Component<'_>) -> impl Iterator<Item = Pattern> {
    let inputs = component.option("inputs").and_then(Value::as_array);
    let inputs = inputs.into_iter().flatten().filter_map(Value::as_str);
    inputs.filter_map(|input| {
        let pattern = if input.contains(['*', '?', '[']) {
            input.to_owned()
        } else {
            Pattern::escape(input)
        };
        Pattern::new(&pattern).ok()
    })
}

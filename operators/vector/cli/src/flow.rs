//! Flow of events through the transforms of a configuration, without Vector: `remap`, `filter`, `route` and
//! `exclusive_route` run here, and other transforms are named.
//!
//! ```text
//! configuration ─► transforms that can run, and who reads which output ─► an event ─► visits of components
//! ```

mod config;
mod input;
mod transform;

use std::collections::{BTreeMap, BTreeSet};

use glob::Pattern;
use lockstep_vector_api::{Component, ComponentKind, Event, components};
use serde_json::Value;

pub(crate) use crate::flow::config::FlowConfig;
pub(crate) use crate::flow::input::{InputProblem, event_of_line, event_of_test};
use crate::flow::transform::{Condition, Environment, Passed, Transform, condition};

/// Maximum number of visits of one event: a program can make many events of one.
const MAX_VISITS: usize = 10_000;

/// Components of a configuration, and who reads their outputs.
pub(crate) struct Flow {
    environment: Environment,
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
    pub(crate) fn new(flow_config: &FlowConfig) -> Self {
        let environment = Environment::new(flow_config);
        let mut steps = BTreeMap::new();
        for component in components(&flow_config.config) {
            let outputs = flow_config.outputs.get(component.id);
            let step = Step {
                family: component.family,
                kind: component.kind().unwrap_or_default().to_owned(),
                outputs: outputs.cloned().unwrap_or_default(),
                transform: Transform::new(&component, &environment),
            };
            steps.insert(component.id.to_owned(), step);
        }
        let outputs = steps.values().flat_map(|step| step.outputs.iter().cloned());
        let mut readers: BTreeMap<String, Vec<String>> =
            outputs.map(|output| (output, Vec::new())).collect();
        for component in components(&flow_config.config) {
            let patterns: Vec<_> = inputs(&component).collect();
            for (output, readers) in &mut readers {
                if patterns.iter().any(|pattern| pattern.matches(output)) {
                    readers.push(component.id.to_owned());
                }
            }
        }
        Self {
            environment,
            steps,
            readers,
        }
    }

    /// Reads the conditions of an output of a test.
    ///
    /// # Errors
    ///
    /// Only Vector evaluates one of them, for this reason.
    pub(crate) fn conditions(&self, conditions: &[Value]) -> Result<Vec<Condition>, String> {
        let conditions = conditions.iter();
        conditions
            .map(|value| condition(value, &self.environment))
            .collect()
    }

    /// Returns a transform that reads its own events.
    pub(crate) fn cycle(&self) -> Option<&str> {
        let mut inputs: BTreeMap<&str, usize> = BTreeMap::new();
        for id in self.steps.keys() {
            inputs.entry(id).or_default();
            for reader in self.readers_of(id) {
                *inputs.entry(reader).or_default() += 1;
            }
        }
        let without_inputs = inputs.iter().filter(|(_, count)| **count == 0);
        let mut open: Vec<_> = without_inputs.map(|(id, _)| *id).collect();
        while let Some(id) = open.pop() {
            inputs.remove(id);
            for reader in self.readers_of(id) {
                let count = inputs.entry(reader).or_default();
                *count -= 1;
                if *count == 0 {
                    open.push(reader);
                }
            }
        }
        // What is left is in a cycle or follows one.
        let mut left = inputs.into_keys();
        left.find(|id| {
            let mut readers = self.readers_of(id);
            readers.any(|reader| self.reaches(reader, id))
        })
    }

    /// Returns the components that read an output of a component.
    fn readers_of(&self, id: &str) -> impl Iterator<Item = &str> {
        let outputs = self.steps.get(id).map(|step| &step.outputs);
        let readers = outputs.into_iter().flatten();
        let readers = readers.filter_map(|output| self.readers.get(output));
        readers.flatten().map(String::as_str)
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
            open.extend(self.readers_of(id).filter(|id| seen.insert(*id)));
        }
        false
    }

    /// Lets a source output an event. Returns the visits that follow.
    pub(crate) fn leave_source(&self, id: &str, event: &Event) -> Vec<Visit> {
        let outputs = self.steps.get(id).map(|step| &step.outputs);
        let output = outputs.and_then(|outputs| outputs.first());
        let left = output.map(|output| (output.clone(), event.clone()));
        self.follow(self.deliveries(left.as_slice()).collect())
    }

    /// Lets an event enter a component. Returns its visit and those that follow.
    pub(crate) fn enter<'a>(&'a self, id: &'a str, event: Event) -> Vec<Visit> {
        self.follow(vec![(id, event)])
    }

    /// Returns the components that read events which left outputs, with the event that each reads.
    fn deliveries(
        &self,
        left: &[(String, Event)],
    ) -> impl DoubleEndedIterator<Item = (&str, Event)> {
        left.iter().flat_map(|(output, event)| {
            let readers = self.readers.get(output).map(Vec::as_slice);
            let readers = readers.unwrap_or_default().iter();
            readers.map(move |reader| (reader.as_str(), event.clone()))
        })
    }

    /// Lets events enter components. What follows the first of them comes before the second. A chain of transforms may have any
    /// length: no recursion.
    fn follow<'a>(&'a self, mut open: Vec<(&'a str, Event)>) -> Vec<Visit> {
        open.reverse();
        let mut visits = Vec::new();
        while let Some((id, event)) = open.pop() {
            let Some(step) = self.steps.get(id) else {
                continue;
            };
            if visits.len() == MAX_VISITS {
                let why = format!(
                    "the event and what is made of it visit more than {MAX_VISITS} components"
                );
                let left: BTreeSet<_> = open.iter().map(|(id, _)| *id).chain([id]).collect();
                let left = left
                    .into_iter()
                    .filter_map(|id| Some((id, self.steps.get(id)?)));
                visits.extend(
                    left.map(|(id, step)| step.visit(id, VisitResult::NotRun(why.clone()))),
                );
                break;
            }
            let result = step.result(id, event);
            if let VisitResult::Passed { events, .. } = &result {
                open.extend(self.deliveries(events).rev());
            }
            visits.push(step.visit(id, result));
        }
        visits
    }
}

impl Step {
    /// Returns what this component with this name makes of an event.
    fn result(&self, id: &str, event: Event) -> VisitResult {
        match (&self.family, &self.transform) {
            (ComponentKind::Sink, _) => VisitResult::Arrived(event),
            (_, Err(why)) => VisitResult::NotRun(why.clone()),
            (_, Ok(transform)) => match transform.run(id, event) {
                Passed::Events { events, note } => VisitResult::Passed { events, note },
                Passed::Nothing(why) => VisitResult::Dropped(why),
            },
        }
    }

    fn visit(&self, id: &str, result: VisitResult) -> Visit {
        Visit {
            component: id.to_owned(),
            family: self.family,
            kind: self.kind.clone(),
            result,
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

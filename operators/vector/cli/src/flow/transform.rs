//! Transforms that run here.

use std::borrow::Cow;

use lockstep_vector_api::{
    Component, ComponentKind, Event, NotRunnable, Program, Purpose, RunnableProgram, Stop,
    VectorVersion,
};
use serde_json::Value;

use crate::flow::FlowConfig;

/// Facts that all programs of a configuration depend on.
pub(crate) struct Environment {
    /// Names of the enrichment tables.
    tables: Vec<String>,
    timezone: Option<String>,
    version: VectorVersion,
}

impl Environment {
    pub(crate) fn new(flow_config: &FlowConfig) -> Self {
        let FlowConfig {
            config, version, ..
        } = flow_config;
        let tables = config.get("enrichment_tables").and_then(Value::as_object);
        let tables = tables.into_iter().flat_map(serde_json::Map::keys).cloned();
        let timezone = config.get("timezone").and_then(Value::as_str);
        Self {
            tables: tables.collect(),
            timezone: timezone.map(str::to_owned),
            version: *version,
        }
    }

    fn compile(
        &self,
        source: &str,
        purpose: Purpose,
        timezone: Option<&str>,
    ) -> Result<RunnableProgram, NotRunnable> {
        let program = Program {
            tables: Cow::Borrowed(&self.tables),
            language: self.version.language(),
            ..Program::plain(source, purpose)
        };
        RunnableProgram::compile(&program, timezone.or(self.timezone.as_deref()))
    }
}

/// Transform that runs here.
pub(crate) enum Transform {
    Remap {
        program: Box<RunnableProgram>,
        drop_on_error: bool,
        drop_on_abort: bool,
        reroute_dropped: bool,
    },
    Filter(Condition),
    Route {
        /// Outputs with their conditions.
        routes: Vec<(String, Condition)>,
        /// If true, the first condition that is met decides.
        is_exclusive: bool,
        reroute_unmatched: bool,
    },
}

/// Condition of a transform or of a test.
pub(crate) enum Condition {
    Program(Box<RunnableProgram>),
    /// Condition on the type of the event, which is a log.
    Always(bool),
}

/// Result of a transform.
pub(crate) enum Passed {
    Events {
        events: Vec<(String, Event)>,
        note: Option<String>,
    },
    Nothing(String),
}

impl Transform {
    /// Returns the transform of a component.
    ///
    /// # Errors
    ///
    /// Only Vector runs it, for this reason.
    pub(crate) fn new(
        component: &Component<'_>,
        environment: &Environment,
    ) -> Result<Self, String> {
        let is = |option: &str, default: bool| {
            let value = component.option(option).and_then(Value::as_bool);
            value.unwrap_or(default)
        };
        let kind = component.kind().unwrap_or_default();
        match (component.family, kind) {
            (ComponentKind::Transform, "remap") => {
                let Some(source) = component.option("source").and_then(Value::as_str) else {
                    return Err("its program is in a file".to_owned());
                };
                let timezone = component.option("timezone").and_then(Value::as_str);
                let program = environment.compile(source, Purpose::Remap, timezone);
                Ok(Self::Remap {
                    program: Box::new(program.map_err(|why| why.to_string())?),
                    drop_on_error: is("drop_on_error", false),
                    drop_on_abort: is("drop_on_abort", true),
                    reroute_dropped: is("reroute_dropped", false),
                })
            }
            (ComponentKind::Transform, "filter") => {
                let value = component.option("condition").unwrap_or(&Value::Null);
                condition(value, environment).map(Self::Filter)
            }
            (ComponentKind::Transform, "route") => {
                let routes = component.option("route").and_then(Value::as_object);
                let routes = routes.into_iter().flatten();
                let routes = routes.map(|(name, value)| (name.as_str(), value));
                Ok(Self::Route {
                    routes: routes_of(routes, environment)?,
                    is_exclusive: false,
                    reroute_unmatched: is("reroute_unmatched", true),
                })
            }
            (ComponentKind::Transform, "exclusive_route") => {
                let routes = component.option("routes").and_then(Value::as_array);
                let routes = routes.into_iter().flatten();
                let routes = routes.map(|route| {
                    let name = route["name"].as_str().unwrap_or_default();
                    (name, &route["condition"])
                });
                Ok(Self::Route {
                    routes: routes_of(routes, environment)?,
                    is_exclusive: true,
                    reroute_unmatched: true,
                })
            }
            _ => Err(format!(
                "only Vector runs {}s of the type `{kind}`",
                component.family.noun()
            )),
        }
    }

    /// Runs the transform with this name on an event.
    pub(crate) fn run(&self, id: &str, event: Event) -> Passed {
        match self {
            Self::Remap {
                program,
                drop_on_error,
                drop_on_abort,
                reroute_dropped,
            } => {
                let stop = match program.transform(event.clone()) {
                    Ok(events) => {
                        let events = events.into_iter().map(|event| (id.to_owned(), event));
                        return Passed::events(events.collect(), None);
                    }
                    Err(stop) => stop,
                };
                let note = Some(stop.to_string());
                let is_dropped = match stop {
                    Stop::Abort(_) => *drop_on_abort,
                    Stop::Error(_) => *drop_on_error,
                };
                match (is_dropped, reroute_dropped) {
                    (false, _) => Passed::events(vec![(id.to_owned(), event)], note),
                    (true, true) => {
                        let mut event = event;
                        event.set_dropped(id, &stop);
                        Passed::events(vec![(format!("{id}.dropped"), event)], note)
                    }
                    (true, false) => Passed::Nothing(stop.to_string()),
                }
            }
            Self::Filter(condition) => match condition.is_met(&event) {
                Ok(true) => Passed::events(vec![(id.to_owned(), event)], None),
                Ok(false) => Passed::Nothing("the condition is false".to_owned()),
                Err(stop) => Passed::Nothing(format!("{stop}, which counts as false")),
            },
            Self::Route {
                routes,
                is_exclusive,
                reroute_unmatched,
            } => {
                let is_met = |condition: &Condition| condition.is_met(&event).unwrap_or(false);
                let met = routes.iter().filter(|(_, condition)| is_met(condition));
                let limit = if *is_exclusive { 1 } else { usize::MAX };
                let met = met.take(limit);
                let mut events: Vec<_> = met
                    .map(|(name, _)| (format!("{id}.{name}"), event.clone()))
                    .collect();
                if events.is_empty() && *reroute_unmatched {
                    events.push((format!("{id}._unmatched"), event));
                }
                if events.is_empty() {
                    return Passed::Nothing("no condition is true".to_owned());
                }
                Passed::events(events, None)
            }
        }
    }
}

impl Passed {
    fn events(events: Vec<(String, Event)>, note: Option<String>) -> Self {
        Self::Events { events, note }
    }
}

fn routes_of<'a>(
    routes: impl Iterator<Item = (&'a str, &'a Value)>,
    environment: &Environment,
) -> Result<Vec<(String, Condition)>, String> {
    let routes = routes.map(|(name, value)| {
        let condition = condition(value, environment);
        let condition = condition.map_err(|why| format!("the route `{name}`: {why}"))?;
        Ok((name.to_owned(), condition))
    });
    routes.collect()
}

/// Reads a condition.
///
/// # Errors
///
/// Only Vector evaluates it, for this reason.
pub(crate) fn condition(value: &Value, environment: &Environment) -> Result<Condition, String> {
    let program = |source: &str| {
        let program = environment.compile(source, Purpose::Condition, None);
        let program = program.map_err(|why| why.to_string())?;
        Ok(Condition::Program(Box::new(program)))
    };
    if let Some(source) = value.as_str() {
        return program(source);
    }
    match (value["type"].as_str(), value["source"].as_str()) {
        (Some("vrl"), Some(source)) => program(source),
        (Some("is_log"), _) => Ok(Condition::Always(true)),
        (Some("is_metric" | "is_trace"), _) => Ok(Condition::Always(false)),
        (kind, _) => Err(format!(
            "only Vector evaluates conditions of the type `{}`",
            kind.unwrap_or_default()
        )),
    }
}

impl Condition {
    /// Returns true if an event meets the condition.
    ///
    /// # Errors
    ///
    /// The program stops.
    pub(crate) fn is_met(&self, event: &Event) -> Result<bool, Stop> {
        match self {
            Self::Program(program) => program.is_met(event.clone()),
            Self::Always(is_met) => Ok(*is_met),
        }
    }
}

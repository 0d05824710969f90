//! Pipeline → part of a configuration.

use std::collections::BTreeSet;

use lockstep_vector_api::{PipelineSpec, RunnerKind};
use lockstep_vector_config::{ComponentKind, components, output_names};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::events;
use crate::inputs;
use crate::isolation;
use crate::isolation::KUBERNETES_LOGS;
use crate::names::FinalNames;
use crate::options::AssemblyOptions;
use crate::part::{Components, PipelinePart};
use crate::pipeline::{PipelineProblem, RunnablePipeline};
use crate::secrets::SecretRewriter;
use crate::services;

/// Annotation of a pipeline whose sources are not merged with those of others.
const OPTIMIZATION: &str = "vector-operator.kaasops.io/config-optimization";

/// Returns the part of a pipeline. It depends on nothing but the arguments. `event_port` is the port on which the pipeline
/// receives Kubernetes Events, if it does.
///
/// # Errors
///
/// If the pipeline cannot be a part of any configuration.
pub fn render(
    options: &AssemblyOptions,
    pipeline: &RunnablePipeline,
    event_port: Option<u16>,
) -> Result<PipelinePart, PipelineProblem> {
    part(options, pipeline, event_port).map_err(|message| PipelineProblem {
        pipeline: pipeline.key(),
        message,
    })
}

/// Returns the spec of a pipeline. It may be missing.
pub(crate) fn spec(pipeline: &RunnablePipeline) -> Result<PipelineSpec, String> {
    if pipeline.spec.is_null() {
        return Ok(PipelineSpec::default());
    }
    // The cause may contain a part of the spec, which may be a password.
    PipelineSpec::deserialize(&pipeline.spec).map_err(|_| "`spec` cannot be read".to_owned())
}

fn part(
    options: &AssemblyOptions,
    pipeline: &RunnablePipeline,
    event_port: Option<u16>,
) -> Result<PipelinePart, String> {
    let (key, spec) = (pipeline.key(), spec(pipeline)?);
    let names = FinalNames::of(options.component_names, &key, spec.skip_prefix)?;
    let config = spec.configuration();
    let config = config.as_object().cloned().unwrap_or_default();
    let written: Vec<_> = components(&config).collect();
    let flowing = written
        .iter()
        .filter(|component| component.family != ComponentKind::Sink);
    let outputs: Vec<_> = flowing
        .flat_map(|component| output_names(options.catalogue, component))
        .collect();
    let is_own = |name: &str| {
        written.iter().any(|component| component.id == name)
            || outputs.iter().any(|output| output == name)
    };
    let mut secrets = SecretRewriter::new(&key, &spec.secret);
    let mut rendered: [Components; 3] = Default::default();
    let mut seen = BTreeSet::new();
    let mut sources = Map::new();
    for component in &written {
        let id = component.id;
        let name = names.of_component(id)?;
        if !seen.insert(id) {
            return Err(format!("two components have the name `{id}`"));
        }
        let Some(mut options_of) = component.value.as_object().cloned() else {
            return Err(format!("`{id}` must be a mapping of options to values"));
        };
        if component.family == ComponentKind::Source {
            if let Some(namespace) = &key.namespace {
                isolation::restrict(id, &mut options_of, namespace, options.kind)?;
            }
            use_cache(options, &mut options_of);
        } else {
            inputs::rewrite(id, &mut options_of, &outputs, &names)?;
        }
        inputs::rewrite_graph(&mut options_of, is_own, &names);
        let mut value = Value::Object(options_of);
        secrets.rewrite(&mut value)?;
        rendered[component.family as usize].insert(name, value);
        if component.family == ComponentKind::Source {
            sources.insert(id.to_owned(), component.value.clone());
        }
    }
    let received = receive_events(options, &config, event_port)?;
    if let Some((id, source)) = received {
        rendered[ComponentKind::Source as usize].insert(names.of_output(id), source.clone());
        sources.insert(id.to_owned(), source);
    }
    let event_source = events::sources(block(&config, ComponentKind::Source));
    let service = (options.kind == RunnerKind::Aggregator)
        .then(|| {
            let first = event_source.first().copied();
            services::service(&key, &pipeline.annotations, &sources, first)
        })
        .flatten();
    let [sources, transforms, sinks] = rendered;
    Ok(PipelinePart {
        generation: pipeline.generation,
        prefix: names.prefix().to_owned(),
        sources,
        transforms,
        sinks,
        secrets: secrets.into_references(),
        service,
        keeps_own_sources: pipeline
            .annotations
            .get(OPTIMIZATION)
            .is_some_and(|it| it == "disabled"),
        pipeline: key,
    })
}

fn block(config: &Map<String, Value>, kind: ComponentKind) -> Option<&Map<String, Value>> {
    config.get(kind.block()).and_then(Value::as_object)
}

/// Lets the API server answer requests from its cache.
fn use_cache(options: &AssemblyOptions, source: &mut Map<String, Value>) {
    let is_logs = source
        .get("type")
        .is_some_and(|kind| kind == KUBERNETES_LOGS);
    if options.use_api_server_cache && is_logs {
        source.insert("use_apiserver_cache".to_owned(), true.into());
    }
}

/// Returns the source that receives Kubernetes Events, with its name.
fn receive_events<'c>(
    options: &AssemblyOptions,
    config: &'c Map<String, Value>,
    port: Option<u16>,
) -> Result<Option<(&'c str, Value)>, String> {
    match events::sources(block(config, ComponentKind::Source))[..] {
        [] => Ok(None),
        [_] if options.kind == RunnerKind::Agent => {
            Err("only aggregators receive Kubernetes Events".to_owned())
        }
        [id] => match port {
            Some(port) => Ok(Some((id, events::source(port)))),
            None => Err("no port is free for Kubernetes Events".to_owned()),
        },
        _ => Err("a pipeline may have only one source of type `kubernetes_events`".to_owned()),
    }
}

//! Parts → configuration.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_vector_config::{Component, ComponentKind, listen_address};
use serde_json::{Map, Value};

use crate::canonical::{bytes, hash};
use crate::events;
use crate::events::EventReceiver;
use crate::globals;
use crate::merged_sources;
use crate::options::AssemblyOptions;
use crate::part::PipelinePart;
use crate::pipeline::{PipelineProblem, RunnablePipeline};
use crate::render::{render, spec};
use crate::secrets;
use crate::secrets::SecretReference;
use crate::selection::select;
use crate::services::PipelineService;

/// Configuration of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembly {
    /// Configuration.
    pub config: Value,
    /// What each pipeline contributes, sorted by namespace and name.
    pub parts: Vec<PipelinePart>,
    /// Ports by pipeline.
    pub services: Vec<PipelineService>,
    /// Secrets to which the configuration refers, sorted by file.
    pub secrets: Vec<SecretReference>,
    /// If true, a pipeline receives Kubernetes Events from the event collector.
    pub has_event_collector: bool,
    /// Pipelines that are left out, with the reasons.
    pub problems: Vec<PipelineProblem>,
}

impl Assembly {
    /// Returns the configuration as JSON. The same pipelines give the same bytes, whatever their order is.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        bytes(&self.config)
    }

    /// Returns a fingerprint of the configuration.
    #[must_use]
    pub fn hash(&self) -> String {
        hash(&self.config)
    }

    /// Returns a fingerprint of the global options. Vector cannot reload them, so that a change of them needs new Pods.
    #[must_use]
    pub fn global_hash(&self) -> String {
        let blocks = ComponentKind::ALL.map(ComponentKind::block);
        let fields = self.config.as_object().into_iter().flatten();
        let global =
            fields.filter(|(name, _)| *name != "secret" && !blocks.contains(&name.as_str()));
        let global = global.map(|(name, value)| (name.clone(), value.clone()));
        hash(&Value::Object(global.collect()))
    }
}

/// Assembles the configuration of a workload. A pipeline that cannot be a part of it is left out, and named in
/// [`Assembly::problems`].
#[must_use]
pub fn assemble(options: &AssemblyOptions, pipelines: &[RunnablePipeline]) -> Assembly {
    assemble_with(options, pipelines, &[])
}

/// Assembles the configuration of a workload from pipelines and from parts that were rendered before: those of pipelines
/// that are to run as they last ran. If there is a part for one of the pipelines, too, the part is used.
#[must_use]
pub fn assemble_with(
    options: &AssemblyOptions,
    pipelines: &[RunnablePipeline],
    kept: &[PipelinePart],
) -> Assembly {
    let (parts, problems) = render_all(options, pipelines, kept);
    join(options, &parts, problems)
}

/// Returns the parts of all pipelines, sorted, and the problems of those that have none.
pub(crate) fn render_all(
    options: &AssemblyOptions,
    pipelines: &[RunnablePipeline],
    kept: &[PipelinePart],
) -> (Vec<PipelinePart>, Vec<PipelineProblem>) {
    let mut parts: BTreeMap<_, _> = kept
        .iter()
        .map(|part| (part.pipeline.clone(), part.clone()))
        .collect();
    let others = pipelines.iter().filter(|it| !parts.contains_key(&it.key()));
    let others: BTreeMap<_, _> = others.map(|pipeline| (pipeline.key(), pipeline)).collect();
    let mut taken = BTreeSet::new();
    let mut receivers: Vec<_> = kept
        .iter()
        .filter(|part| part.event_port().is_some())
        .map(|part| EventReceiver {
            pipeline: part.pipeline.clone(),
            held: part.event_port(),
        })
        .collect();
    for (key, pipeline) in &others {
        let Ok(spec) = spec(pipeline) else { continue };
        let sources = spec.sources.as_ref();
        taken.extend(ports(sources));
        if !events::sources(sources).is_empty() {
            receivers.push(EventReceiver {
                pipeline: key.clone(),
                held: pipeline.event_port,
            });
        }
    }
    let event_ports = events::assign(&receivers, taken);
    let mut problems = Vec::new();
    for (key, pipeline) in others {
        match render(options, pipeline, event_ports.get(&key).copied()) {
            Ok(part) => drop(parts.insert(key, part)),
            Err(problem) => problems.push(problem),
        }
    }
    (parts.into_values().collect(), problems)
}

/// Returns the ports of sources.
fn ports(sources: Option<&Map<String, Value>>) -> impl Iterator<Item = u16> {
    let sources = sources.into_iter().flatten();
    sources.flat_map(|(id, value)| {
        let source = Component {
            block: ComponentKind::Source.block(),
            family: ComponentKind::Source,
            id,
            value,
        };
        let addresses = listen_address::of(&source).into_iter();
        addresses.filter_map(|address| {
            let (_, port) = address.endpoint.rsplit_once(':')?;
            port.parse().ok()
        })
    })
}

/// Joins parts, which are sorted.
pub(crate) fn join(
    options: &AssemblyOptions,
    parts: &[PipelinePart],
    mut problems: Vec<PipelineProblem>,
) -> Assembly {
    let selection = select(options, parts);
    let parts = selection.parts;
    problems.extend(selection.problems);
    problems.sort();
    let services = parts.iter().filter_map(|part| part.service.clone());
    let mut services: Vec<_> = services.collect();
    let mut config = globals::options(options);
    let mut blocks: [Map<String, Value>; 3] = ComponentKind::ALL.map(|kind| {
        let components = parts.iter().flat_map(|part| part.components(kind));
        components
            .map(|(id, value)| (id.clone(), value.clone()))
            .collect()
    });
    if options.merge_sources {
        merged_sources::merge(&parts, &mut blocks);
    }
    let is_empty = blocks.iter().all(Map::is_empty);
    let own = if selection.has_own_metrics {
        globals::metrics()
    } else if is_empty {
        globals::default_pipeline(options)
    } else {
        globals::OwnComponents::default()
    };
    blocks[ComponentKind::Source as usize].extend(own.sources);
    blocks[ComponentKind::Sink as usize].extend(own.sinks);
    services.extend(own.service);
    for (kind, block) in ComponentKind::ALL.into_iter().zip(blocks) {
        config.insert(kind.block().to_owned(), block.into());
    }
    let secrets = parts.iter().flat_map(|part| part.secrets.iter().cloned());
    let secrets: BTreeSet<_> = secrets.collect();
    if !secrets.is_empty() {
        config.insert("secret".to_owned(), secrets::backends());
    }
    Assembly {
        config: config.into(),
        has_event_collector: parts.iter().any(|part| part.event_port().is_some()),
        secrets: secrets.into_iter().collect(),
        parts,
        services,
        problems,
    }
}

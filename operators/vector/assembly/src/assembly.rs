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
use crate::precedence::PresentState;
use crate::reload::global_options_hash;
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
    /// Parts of the pipelines, sorted by namespace and name.
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

    /// Returns the configuration of the same pipelines with the names of `options`.
    #[must_use]
    pub fn in_layout(&self, options: &AssemblyOptions) -> Self {
        let parts = self.parts.iter();
        let parts: Vec<_> = parts
            .map(|part| part.with_names(options.component_names))
            .collect();
        // All of them run, so that none comes before another one.
        join(options, &parts, PresentState::none(), Vec::new())
    }

    /// Returns a fingerprint of the global options. Vector cannot reload them, so that a change of them needs new Pods.
    #[must_use]
    pub fn global_hash(&self) -> String {
        global_options_hash(&self.config)
    }
}

/// Assembles the configuration of a workload. A pipeline that cannot be a part of it is left out, and named in
/// [`Assembly::problems`].
#[must_use]
pub fn assemble(options: &AssemblyOptions, pipelines: &[RunnablePipeline]) -> Assembly {
    let Rendered { parts, problems } = render_all(options, pipelines, &[]);
    join(options, &parts, PresentState::none(), problems)
}

/// Parts of pipelines, and the problems of those that have none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// Parts, sorted by namespace and name.
    pub parts: Vec<PipelinePart>,
    /// Pipelines without a part, with the reasons.
    pub problems: Vec<PipelineProblem>,
}

/// Renders the parts of pipelines, beside parts that were rendered before: those of pipelines that are to run as they last ran.
/// If there is such a part for one of the pipelines, the part is used.
#[must_use]
pub fn render_all(
    options: &AssemblyOptions,
    pipelines: &[RunnablePipeline],
    kept: &[PipelinePart],
) -> Rendered {
    // They may have been rendered with other names.
    let with_names = |part: &PipelinePart| part.with_names(options.component_names);
    let mut parts: BTreeMap<_, _> = kept
        .iter()
        .map(|part| (part.pipeline.clone(), with_names(part)))
        .collect();
    let others = pipelines.iter().filter(|it| !parts.contains_key(&it.key()));
    let others: BTreeMap<_, _> = others.map(|pipeline| (pipeline.key(), pipeline)).collect();
    let kept_components = kept.iter().flat_map(PipelinePart::all_components);
    let mut taken: BTreeSet<u16> = kept_components
        .flat_map(|component| ports_of(&component))
        .collect();
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
    Rendered {
        parts: parts.into_values().collect(),
        problems,
    }
}

/// Returns the ports of sources.
fn ports(sources: Option<&Map<String, Value>>) -> impl Iterator<Item = u16> {
    let sources = sources.into_iter().flatten();
    sources.flat_map(|(id, value)| {
        ports_of(&Component {
            block: ComponentKind::Source.block(),
            family: ComponentKind::Source,
            id,
            value,
        })
    })
}

/// Returns the ports that a component listens on.
fn ports_of(component: &Component<'_>) -> Vec<u16> {
    let addresses = listen_address::of(component).into_iter();
    let ports = addresses.filter_map(|address| {
        let (_, port) = address.endpoint.rsplit_once(':')?;
        port.parse().ok()
    });
    ports.collect()
}

/// Joins parts, which are sorted. Of two that exclude each other, the one that is published runs; the other one is left out, and
/// added to the problems.
#[must_use]
pub fn join(
    options: &AssemblyOptions,
    parts: &[PipelinePart],
    present: PresentState<'_>,
    mut problems: Vec<PipelineProblem>,
) -> Assembly {
    let selection = select(options, parts, present);
    let mut parts = selection.parts;
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
        merged_sources::merge(options, &mut parts, &mut blocks);
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

#[cfg(test)]
mod tests {
    use lockstep_vector_api::WorkloadRole;
    use serde_json::json;

    use super::*;
    use crate::options::{ApiOptions, InternalMetrics};

    fn agent() -> AssemblyOptions {
        AssemblyOptions::new(WorkloadRole::Agent)
    }

    fn aggregator() -> AssemblyOptions {
        AssemblyOptions::new(WorkloadRole::Aggregator)
    }

    fn pipeline(namespace: &str, source: &Value) -> RunnablePipeline {
        RunnablePipeline {
            namespace: Some(namespace.to_owned()),
            name: "p".to_owned(),
            spec: json!({
                "sources": {"in": source},
                "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
            }),
            ..RunnablePipeline::default()
        }
    }

    fn logs(namespace: &str) -> RunnablePipeline {
        pipeline(namespace, &json!({"type": "kubernetes_logs"}))
    }

    #[test]
    fn without_pipelines_agents_read_logs_and_aggregators_listen() {
        let sink = json!({
            "type": "blackhole", "inputs": ["defaultSource"], "rate": 100, "print_interval_secs": 60,
        });
        let config = |source: &Value| {
            json!({
                "data_dir": "/vector-data-dir",
                "sources": {"defaultSource": source}, "transforms": {}, "sinks": {"defaultSink": sink},
            })
        };
        let found = assemble(&agent(), &[]);
        assert_eq!(found.config, config(&json!({"type": "kubernetes_logs"})));
        assert_eq!(found.services, []);
        let found = assemble(&aggregator(), &[]);
        let source = json!({"type": "vector", "address": "[::]:8989"});
        assert_eq!(found.config, config(&source));
        assert_eq!(found.services.len(), 1);
        assert_eq!(found.services[0].ports[0].port, 8989);
    }

    #[test]
    fn options_of_the_workload_are_global_options() {
        let options = AssemblyOptions {
            api: Some(ApiOptions::default()),
            expire_metrics_secs: Some(300),
            internal_metrics: Some(InternalMetrics::ReplacedByAll),
            ..agent()
        };
        let expected = json!({
            "data_dir": "/vector-data-dir",
            "api": {"enabled": true, "address": "[::]:8686"},
            "expire_metrics_secs": 300,
            "sources": {"internalMetricsSource": {"type": "internal_metrics"}},
            "transforms": {},
            "sinks": {"internalMetricsSink": {
                "type": "prometheus_exporter", "inputs": ["internalMetricsSource"],
                "address": "[::]:9598",
            }},
        });
        assert_eq!(assemble(&options, &[]).config, expected);
    }

    #[test]
    fn a_pipeline_with_a_problem_does_not_keep_others_from_running() {
        let wrong = pipeline("a", &json!({"type": "file", "include": ["/etc/passwd"]}));
        let found = assemble(&agent(), &[logs("b"), wrong]);
        let names: Vec<_> = found
            .parts
            .iter()
            .flat_map(|part| part.component_ids())
            .collect();
        assert_eq!(names, ["b__p__in", "b__p__out"]);
        assert_eq!(found.problems.len(), 1);
        assert_eq!(found.problems[0].pipeline.to_string(), "a/p");
    }

    #[test]
    fn problems_are_sorted_whatever_their_reasons_are() {
        let listening = json!({"type": "vector", "address": "0.0.0.0:9000"});
        let pipelines = [
            pipeline("c", &json!({"type": "file"})),
            pipeline("b", &listening),
            pipeline("a", &listening),
        ];
        let problems = assemble(&aggregator(), &pipelines).problems.into_iter();
        let names: Vec<_> = problems.map(|it| it.pipeline.to_string()).collect();
        assert_eq!(names, ["b/p", "c/p"]);
    }

    #[test]
    fn a_new_port_for_events_is_none_on_which_another_pipeline_listens() {
        let events = pipeline("a", &json!({"type": "kubernetes_events"}));
        let alone = assemble(&aggregator(), std::slice::from_ref(&events));
        let port = alone.parts[0].event_port().expect("a port");
        let address = format!("0.0.0.0:{port}");
        let other = pipeline("b", &json!({"type": "vector", "address": address}));
        let found = assemble(&aggregator(), &[events, other]);
        assert_eq!(found.problems, []);
        assert_ne!(found.parts[0].event_port(), Some(port));
    }

    #[test]
    fn a_new_port_for_events_is_none_on_which_a_kept_pipeline_listens() {
        let events = pipeline("a", &json!({"type": "kubernetes_events"}));
        let alone = assemble(&aggregator(), std::slice::from_ref(&events));
        let port = alone.parts[0].event_port().expect("a port");
        let address = format!("0.0.0.0:{port}");
        let other = pipeline("b", &json!({"type": "vector", "address": address}));
        let kept = assemble(&aggregator(), &[other]).parts;
        let found = assembled_with(&[events], &kept);
        assert_eq!(found.problems, []);
        assert_eq!(found.parts.len(), 2);
    }

    #[test]
    fn only_global_options_change_the_global_hash() {
        let empty = assemble(&agent(), &[]);
        let with_pipeline = assemble(&agent(), &[logs("a")]);
        assert_ne!(empty.hash(), with_pipeline.hash());
        assert_eq!(empty.global_hash(), with_pipeline.global_hash());
        let expiring = AssemblyOptions {
            expire_metrics_secs: Some(1),
            ..agent()
        };
        let expiring = assemble(&expiring, &[logs("a")]);
        assert_ne!(expiring.global_hash(), with_pipeline.global_hash());
        let mut secret = logs("a");
        secret.spec["secret"] = json!({"s": {"type": "kubernetes_secret", "name": "n"}});
        secret.spec["sinks"]["out"]["x"] = "SECRET[s.k]".into();
        let secret = assemble(&agent(), &[secret]);
        let backend = json!({"k8s": {"type": "directory", "path": "/etc/vector/secrets"}});
        assert_eq!(secret.config["secret"], backend);
        assert_eq!(secret.secrets[0].file_name, "a__p__s.k");
        assert_eq!(secret.global_hash(), with_pipeline.global_hash());
    }

    #[test]
    fn global_options_that_mean_the_same_have_one_hash() {
        let plain = global_options_hash(&json!({"data_dir": "/vector-data-dir"}));
        assert_eq!(plain, assemble(&agent(), &[]).global_hash());
        for (api, is_same) in [
            (json!(null), true),
            (json!({"address": "[::]:8686"}), true),
            (json!({"address": "[::]:8686", "enabled": true}), false),
        ] {
            let config = json!({"data_dir": "/vector-data-dir", "api": api, "sinks": {}});
            assert_eq!(global_options_hash(&config) == plain, is_same, "{api}");
        }
        let options = AssemblyOptions {
            api: Some(ApiOptions::default()),
            ..agent()
        };
        let api = json!({"address": "[::]:8686", "enabled": true, "playground": true});
        let config = json!({"data_dir": "/vector-data-dir", "api": api});
        assert_eq!(
            global_options_hash(&config),
            assemble(&options, &[]).global_hash()
        );
    }

    fn assembled_with(pipelines: &[RunnablePipeline], kept: &[PipelinePart]) -> Assembly {
        let Rendered { parts, problems } = render_all(&aggregator(), pipelines, kept);
        join(&aggregator(), &parts, PresentState::none(), problems)
    }

    #[test]
    fn a_part_that_is_kept_runs_as_it_last_ran() {
        let events = |namespace| pipeline(namespace, &json!({"type": "kubernetes_events"}));
        let before = assemble(&aggregator(), &[events("a"), events("b")]);
        assert!(before.has_event_collector);
        let part = &before.parts[0];
        let changed = pipeline("a", &json!({"type": "vector", "address": "0.0.0.0:1"}));
        let kept = std::slice::from_ref(part);
        let after = assembled_with(&[changed, events("b")], kept);
        assert_eq!(after, before);
        // A new pipeline does not get the port of the kept one, even if the port follows from its name.
        let mut other = part.clone();
        other.pipeline.name = "other".to_owned();
        other.sources = BTreeMap::new();
        other.sinks = BTreeMap::new();
        let after = assembled_with(&[events("a")], &[other]);
        assert_eq!(after.problems, []);
        assert_ne!(after.parts[1].event_port(), part.event_port());
    }
}

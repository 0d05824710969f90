//! Pipeline → part of a configuration.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_vector_api::{PipelineSpec, WorkloadRole};
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
        .flat_map(|component| output_names(&options.catalogue, component))
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
    let service = (options.kind == WorkloadRole::Aggregator)
        .then(|| {
            let first = event_source.first().copied();
            services::service(&key, &pipeline.annotations, &sources, first)
        })
        .flatten();
    let [sources, transforms, sinks] = rendered;
    Ok(PipelinePart {
        uid: pipeline.uid.clone(),
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
        merged_sources: BTreeMap::new(),
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
        [_] if options.kind == WorkloadRole::Agent => {
            Err("only aggregators receive Kubernetes Events".to_owned())
        }
        [id] => match port {
            Some(port) => Ok(Some((id, events::source(port)))),
            None => Err("no port is free for Kubernetes Events".to_owned()),
        },
        _ => Err("a pipeline may have only one source of type `kubernetes_events`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use lockstep_vector_api::ComponentNames;

    fn pipeline(namespace: Option<&str>, spec: Value) -> RunnablePipeline {
        RunnablePipeline {
            namespace: namespace.map(str::to_owned),
            name: "p".to_owned(),
            generation: 3,
            spec,
            ..RunnablePipeline::default()
        }
    }

    fn agent() -> AssemblyOptions {
        AssemblyOptions::new(WorkloadRole::Agent)
    }

    fn aggregator() -> AssemblyOptions {
        AssemblyOptions::new(WorkloadRole::Aggregator)
    }

    /// Returns the components of a part.
    fn rendered(options: &AssemblyOptions, namespace: Option<&str>, spec: Value) -> Value {
        let part = render(options, &pipeline(namespace, spec), Some(42_007)).expect("a part");
        part.configuration().into()
    }

    fn error(options: &AssemblyOptions, namespace: Option<&str>, spec: Value) -> String {
        let problem = render(options, &pipeline(namespace, spec), None).expect_err("a problem");
        assert_eq!(problem.pipeline.name, "p");
        problem.message
    }

    #[test]
    fn names_inputs_and_selectors_of_a_tenant_are_its_own() {
        let spec = json!({
            "sources": {"in": {"type": "kubernetes_logs"}},
            "transforms": {
                "r": {"type": "route", "inputs": ["in"], "route": {"a": ".a == 1"}},
                "m": {
                    "type": "remap", "inputs": ["r.a"], "source": ".b = 1", "reroute_dropped": true,
                    "graph": {"edge_attributes": {"r.a": {"color": "red"}, "other": {}}},
                },
            },
            "sinks": {
                "out": {"type": "console", "inputs": ["m"], "encoding": {"codec": "json"}},
                "rest": {"type": "blackhole", "inputs": ["*._unmatched", "m.*"]},
            },
        });
        let options = AssemblyOptions {
            use_api_server_cache: true,
            ..agent()
        };
        let expected = json!({
            "sources": {"a__p__in": {
                "type": "kubernetes_logs", "use_apiserver_cache": true,
                "extra_namespace_label_selector": "kubernetes.io/metadata.name=a",
            }},
            "transforms": {
                "a__p__r": {"type": "route", "inputs": ["a__p__in"], "route": {"a": ".a == 1"}},
                "a__p__m": {
                    "type": "remap", "inputs": ["a__p__r.a"], "source": ".b = 1",
                    "reroute_dropped": true,
                    "graph": {"edge_attributes": {"a__p__r.a": {"color": "red"}, "other": {}}},
                },
            },
            "sinks": {
                "a__p__out": {
                    "type": "console", "inputs": ["a__p__m"], "encoding": {"codec": "json"},
                },
                "a__p__rest": {
                    "type": "blackhole", "inputs": ["a__p__r._unmatched", "a__p__m.dropped"],
                },
            },
        });
        assert_eq!(rendered(&options, Some("a"), spec), expected);
    }

    #[test]
    fn the_pipeline_of_an_administrator_has_no_namespace() {
        let spec = |skip_prefix: bool| {
            json!({
                "sources": {"in": {"type": "journald"}},
                "sinks": {"out": {"type": "blackhole", "inputs": ["*"]}},
                "skipPrefix": skip_prefix,
            })
        };
        let config = |prefix: &str| {
            let id = |name: &str| format!("{prefix}{name}");
            json!({
                "sources": {id("in"): {"type": "journald"}},
                "transforms": {},
                "sinks": {id("out"): {"type": "blackhole", "inputs": [id("in")]}},
            })
        };
        assert_eq!(rendered(&agent(), None, spec(false)), config("__p__"));
        assert_eq!(rendered(&agent(), None, spec(true)), config(""));
        let dashes = AssemblyOptions {
            component_names: ComponentNames::Dashes,
            ..agent()
        };
        assert_eq!(rendered(&dashes, None, spec(false)), config("p-"));
    }

    #[test]
    fn kubernetes_events_come_from_the_collector() {
        let spec = json!({
            "sources": {"in": {"type": "kubernetes_events"}},
            "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
        });
        let part = render(
            &aggregator(),
            &pipeline(Some("a"), spec.clone()),
            Some(42_007),
        );
        let part = part.expect("a part");
        let source = json!({"type": "vector", "address": "0.0.0.0:42007"});
        assert_eq!(part.sources["a__p__in"], source);
        assert_eq!(part.event_port(), Some(42_007));
        let error = error(&aggregator(), Some("a"), spec);
        assert_eq!(error, "no port is free for Kubernetes Events");
    }

    #[test]
    fn only_aggregators_have_services() {
        let spec = json!({
            "sources": {"in": {"type": "opentelemetry",
                "grpc": {"address": "0.0.0.0:4317"}, "http": {"address": "0.0.0.0:4318"}}},
            "sinks": {"out": {"type": "blackhole", "inputs": ["in.logs"]}},
        });
        for (options, has_service) in [(agent(), false), (aggregator(), true)] {
            let part = render(&options, &pipeline(None, spec.clone()), None).expect("a part");
            assert_eq!(part.service.is_some(), has_service);
            assert_eq!(part.sinks["__p__out"]["inputs"], json!(["__p__in.logs"]));
        }
    }

    #[test]
    fn secrets_are_files_and_the_annotation_keeps_sources() {
        let spec = json!({
            "sources": {"in": {"type": "kubernetes_logs"}},
            "sinks": {"out": {"type": "loki", "inputs": ["in"], "tenant_id": "SECRET[s.id]"}},
            "secret": {"s": {"type": "kubernetes_secret", "name": "creds"}},
        });
        let mut pipeline = pipeline(Some("a"), spec);
        let part = render(&agent(), &pipeline, None).expect("a part");
        assert_eq!(
            part.sinks["a__p__out"]["tenant_id"],
            "SECRET[k8s.a__p__s.id]"
        );
        assert_eq!(part.secrets[0].name, "creds");
        assert_eq!((part.generation, part.keeps_own_sources), (3, false));
        pipeline.annotations = BTreeMap::from([(OPTIMIZATION.to_owned(), "disabled".to_owned())]);
        let part = render(&agent(), &pipeline, None).expect("a part");
        assert!(part.keeps_own_sources);
        let stored = serde_json::to_value(&part).expect("it is JSON");
        assert_eq!(PipelinePart::deserialize(&stored).expect("a part"), part);
    }

    #[test]
    fn a_pipeline_that_no_configuration_can_contain_is_a_problem() {
        let sink = json!({"type": "blackhole", "inputs": ["in"]});
        for (namespace, spec, part) in [
            (None, json!({"sources": 1}), "`spec` cannot be read"),
            (
                None,
                json!({"sources": {"in": 1}}),
                "`in` must be a mapping",
            ),
            (
                None,
                json!({"sources": {"in": {"type": "journald"}}, "sinks": {"in": sink}}),
                "two components have the name `in`",
            ),
            (
                None,
                json!({"sinks": {"out": sink}}),
                "the input `in` of `out`",
            ),
            (
                None,
                json!({"sources": {"a.b": {"type": "journald"}}}),
                "contains a dot",
            ),
            (
                Some("a"),
                json!({"sources": {"in": {"type": "journald"}}}),
                "may read only",
            ),
            (Some("a"), json!({"skipPrefix": true}), "`spec.skipPrefix`"),
            (
                None,
                json!({"sources": {"in": {"type": "journald", "units": ["SECRET[a.b]"]}}}),
                "has no `a`",
            ),
            (
                None,
                json!({"sources": {"in": {"type": "kubernetes_events"}}}),
                "only aggregators",
            ),
        ] {
            let error = error(&agent(), namespace, spec);
            assert!(error.contains(part), "{error}");
        }
        let events = json!({"type": "kubernetes_events"});
        let both = json!({"sources": {"a": events, "b": events}});
        let error = error(&aggregator(), None, both);
        assert!(error.contains("only one source"), "{error}");
        let empty = rendered(&agent(), Some("a"), Value::Null);
        assert_eq!(empty, json!({"sources": {}, "transforms": {}, "sinks": {}}));
    }
}

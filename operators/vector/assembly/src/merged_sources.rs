//! Merged sources: sources of `kubernetes_logs` that differ only in their namespace become one, with a transform behind
//! it that gives each pipeline the events of its namespace.
//!
//! Each source watches Pods, namespaces and nodes by itself, so that many sources are a load for the API server and the
//! agents. The price is that one slow pipeline slows down all that share its source, and that a source under a new name
//! begins to read anew. Merging is an option therefore, and an annotation keeps a pipeline out of it.
//!
//! It changes nothing else: a source is merged only if its events have the field by which they are divided, and no
//! pipeline has two of the sources that become one.

use std::collections::{BTreeMap, BTreeSet};

use glob::Pattern;
use lockstep_vector_config::ComponentKind;
use serde_json::{Map, Value, json};

use crate::canonical;
use crate::isolation::{KUBERNETES_LOGS, NAMESPACE_LABEL, NAMESPACE_SELECTOR};
use crate::names::SHARED;
use crate::part::PipelinePart;

/// Maximum number of namespaces of a source: their names are in the address of each request to the API server.
const MAX_NAMESPACES: usize = 1000;

/// Maximum number of namespaces that one transform divides. It compares each event with all of them.
const MAX_ROUTES: usize = 16;

/// Source of a pipeline.
struct MergedSource<'p> {
    id: &'p str,
    namespace: &'p str,
    source: &'p Map<String, Value>,
}

/// Merges sources in the blocks of a configuration, which are those of the parts.
pub(crate) fn merge(parts: &[PipelinePart], blocks: &mut [Map<String, Value>; 3]) {
    // Names of sources, as inputs, with the outputs that replace them.
    let mut outputs = BTreeMap::new();
    for (signature, sources) in groups(parts) {
        let namespaces: BTreeSet<_> = sources.iter().map(|it| it.namespace).collect();
        let namespaces: Vec<_> = namespaces.into_iter().collect();
        let chunks = namespaces.chunks(MAX_NAMESPACES).enumerate();
        let hash = &canonical::hash(&signature.into())[..8];
        for (index, chunk) in chunks {
            let of_chunk = sources.iter().filter(|it| chunk.contains(&it.namespace));
            let of_chunk: Vec<_> = of_chunk.collect();
            if of_chunk.len() > 1 {
                let name = format!("{hash}-{index}");
                outputs.extend(merge_group(&name, chunk, &of_chunk, blocks));
            }
        }
    }
    for kind in [ComponentKind::Transform, ComponentKind::Sink] {
        for component in blocks[kind as usize].values_mut() {
            let inputs = component["inputs"].as_array_mut().into_iter().flatten();
            for input in inputs {
                let output = input.as_str().and_then(|input| outputs.get(input));
                if let Some(output) = output {
                    *input = output.as_str().into();
                }
            }
        }
    }
}

/// Returns the sources that can be merged, by what they have in common.
fn groups(parts: &[PipelinePart]) -> BTreeMap<String, Vec<MergedSource<'_>>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for part in parts.iter().filter(|part| !part.keeps_own_sources) {
        let mut own = BTreeSet::new();
        for (id, source) in &part.sources {
            let Some((namespace, source)) = divisible(source) else {
                continue;
            };
            let mut common = source.clone();
            common.remove(NAMESPACE_SELECTOR);
            let signature = Value::Object(common).to_string();
            // A component that has two equal sources gets each event twice.
            if own.insert(signature.clone()) {
                let source = MergedSource {
                    id,
                    namespace,
                    source,
                };
                groups.entry(signature).or_default().push(source);
            }
        }
    }
    groups
}

/// Returns the namespace of a source whose events can be separated from those of other namespaces.
fn divisible(source: &Value) -> Option<(&str, &Map<String, Value>)> {
    let source = source.as_object()?;
    let is_logs = source.get("type")? == KUBERNETES_LOGS;
    // Both can move the field with the namespace.
    let has_own_fields = source.contains_key("pod_annotation_fields");
    let is_elsewhere = source.get("log_namespace").is_some_and(|it| *it != false);
    let selector = source.get(NAMESPACE_SELECTOR)?.as_str()?;
    let namespace = selector.strip_prefix(NAMESPACE_LABEL)?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_one = !namespace.is_empty() && namespace.chars().all(is_name);
    (is_logs && !has_own_fields && !is_elsewhere && is_one).then_some((namespace, source))
}

/// Merges the sources of a group, and returns the outputs by the inputs that they replace.
fn merge_group(
    name: &str,
    namespaces: &[&str],
    sources: &[&MergedSource<'_>],
    blocks: &mut [Map<String, Value>; 3],
) -> Vec<(String, String)> {
    let merged = format!("{SHARED}Source-{name}");
    let mut source = sources[0].source.clone();
    let outputs = if let [only] = namespaces {
        BTreeMap::from([(*only, merged.clone())])
    } else {
        let label = NAMESPACE_LABEL.trim_end_matches('=');
        let selector = format!("{label} in ({})", namespaces.join(","));
        source.insert(NAMESPACE_SELECTOR.to_owned(), selector.into());
        let transforms = &mut blocks[ComponentKind::Transform as usize];
        divide(name, &merged, namespaces, transforms)
    };
    let block = &mut blocks[ComponentKind::Source as usize];
    for source in sources {
        block.remove(source.id);
    }
    block.insert(merged, source.into());
    let replaced = sources.iter().filter_map(|source| {
        let output = outputs.get(source.namespace)?;
        Some((Pattern::escape(source.id), output.clone()))
    });
    replaced.collect()
}

/// Adds transforms that divide the events of a source by namespace, and returns their outputs.
fn divide<'n>(
    name: &str,
    source: &str,
    namespaces: &[&'n str],
    transforms: &mut Map<String, Value>,
) -> BTreeMap<&'n str, String> {
    if namespaces.len() <= MAX_ROUTES {
        return divide_range(name, source, namespaces, transforms);
    }
    let divider = format!("{SHARED}Router-{name}");
    // Ranges of names first: an event is compared with some sixty names instead of a thousand.
    let ranges: Vec<_> = namespaces.chunks(namespaces.len().isqrt() + 1).collect();
    let mut outputs = BTreeMap::new();
    let mut routes = Map::new();
    for (index, range) in ranges.iter().enumerate() {
        let (first, last) = (range[0], range[range.len() - 1]);
        let condition = format!(
            "namespace = string(.kubernetes.pod_namespace) ?? \"\"\nnamespace >= {first:?} && namespace <= {last:?}"
        );
        routes.insert(index.to_string(), condition.into());
        let range_name = format!("{name}-{index}");
        let input = format!("{divider}.{index}");
        outputs.extend(divide_range(&range_name, &input, range, transforms));
    }
    transforms.insert(divider, route(source, routes));
    outputs
}

/// Adds one transform that divides events by namespace, and returns its outputs.
fn divide_range<'n>(
    name: &str,
    input: &str,
    range: &[&'n str],
    transforms: &mut Map<String, Value>,
) -> BTreeMap<&'n str, String> {
    let divider = format!("{SHARED}Router-{name}");
    let routes = range.iter().map(|namespace| {
        let condition = format!(".kubernetes.pod_namespace == {namespace:?}");
        ((*namespace).to_owned(), condition.into())
    });
    transforms.insert(divider.clone(), route(input, routes.collect()));
    let outputs = range.iter().map(|it| (*it, format!("{divider}.{it}")));
    outputs.collect()
}

fn route(input: &str, routes: Map<String, Value>) -> Value {
    let routes = Value::Object(routes);
    json!({"type": "route", "inputs": [input], "reroute_unmatched": false, "route": routes})
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::RunnerKind;

    use super::*;
    use crate::assembly::assemble;
    use crate::options::AssemblyOptions;
    use crate::pipeline::RunnablePipeline;

    fn pipeline(namespace: &str, name: &str, sources: &Value) -> RunnablePipeline {
        RunnablePipeline {
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
            spec: json!({
                "sources": sources, "sinks": {"out": {"type": "blackhole", "inputs": ["*"]}},
            }),
            ..RunnablePipeline::default()
        }
    }

    fn logs(namespace: &str, name: &str) -> RunnablePipeline {
        pipeline(namespace, name, &json!({"in": {"type": "kubernetes_logs"}}))
    }

    fn merged(pipelines: &[RunnablePipeline]) -> Value {
        let options = AssemblyOptions {
            merge_sources: true,
            ..AssemblyOptions::new(RunnerKind::Agent)
        };
        assemble(&options, pipelines).config
    }

    /// Returns the name of the only merged source.
    fn source(config: &Value) -> &str {
        let sources = config["sources"].as_object().expect("sources");
        let mut merged = sources.keys().filter(|id| id.starts_with(SHARED));
        let found = merged.next().expect("a merged source");
        assert_eq!(merged.next(), None);
        found
    }

    #[test]
    fn sources_of_several_namespaces_become_one_with_a_route_for_each() {
        let config = merged(&[logs("b", "p"), logs("a", "p"), logs("a", "q")]);
        let source = source(&config);
        let expected = json!({
            "type": "kubernetes_logs",
            "extra_namespace_label_selector": "kubernetes.io/metadata.name in (a,b)",
        });
        assert_eq!(config["sources"], json!({source: expected}));
        let router = source.replace("Source", "Router");
        let route = json!({
            "type": "route", "inputs": [source], "reroute_unmatched": false,
            "route": {
                "a": ".kubernetes.pod_namespace == \"a\"", "b": ".kubernetes.pod_namespace == \"b\"",
            },
        });
        assert_eq!(config["transforms"], json!({router.as_str(): route}));
        for (sink, namespace) in [("a__p__out", "a"), ("a__q__out", "a"), ("b__p__out", "b")] {
            let expected = json!([format!("{router}.{namespace}")]);
            assert_eq!(config["sinks"][sink]["inputs"], expected);
        }
    }

    #[test]
    fn sources_of_one_namespace_become_one_without_a_route() {
        let config = merged(&[logs("a", "p"), logs("a", "q")]);
        let source = source(&config);
        assert_eq!(
            config["sources"][source][NAMESPACE_SELECTOR],
            "kubernetes.io/metadata.name=a"
        );
        assert_eq!(config["transforms"], json!({}));
        assert_eq!(config["sinks"]["a__q__out"]["inputs"], json!([source]));
    }

    #[test]
    fn many_namespaces_are_divided_in_two_steps() {
        let names: Vec<_> = (0..100).map(|index| format!("n{index:03}")).collect();
        let pipelines: Vec<_> = names.iter().map(|name| logs(name, "p")).collect();
        let config = merged(&pipelines);
        let transforms = config["transforms"].as_object().expect("transforms");
        let width = |transform: &Value| transform["route"].as_object().map_or(0, Map::len);
        assert!(transforms.values().all(|it| width(it) <= MAX_ROUTES));
        let ends: usize = transforms.values().map(width).sum();
        assert_eq!(ends, 100 + transforms.len() - 1);
        // Each namespace is within the one range that leads to its route.
        let router = source(&config).replace("Source", "Router");
        let ranges = transforms[&router]["route"].as_object().expect("ranges");
        for name in &names {
            let sink = &config["sinks"][format!("{name}__p__out")]["inputs"][0];
            let input = sink.as_str().expect("an input");
            let (end, route) = input.split_once('.').expect("a route");
            assert_eq!(route, name);
            let from = transforms[end]["inputs"][0].as_str().expect("an input");
            let (_, range) = from.split_once('.').expect("a range");
            let within = |range: &Value| {
                let texts: Vec<_> = range.as_str().expect("a program").split('"').collect();
                (texts[3]..=texts[5]).contains(&name.as_str())
            };
            assert!(within(&ranges[range]), "{name} {}", ranges[range]);
            assert_eq!(ranges.values().filter(|range| within(range)).count(), 1);
        }
    }

    #[test]
    fn sources_that_differ_or_must_be_apart_stay() {
        let mut opted_out = logs("a", "out");
        let annotation = "vector-operator.kaasops.io/config-optimization";
        opted_out
            .annotations
            .insert(annotation.to_owned(), "disabled".to_owned());
        let with = |option: &str, value: Value| {
            pipeline(
                "a",
                "x",
                &json!({"in": {"type": "kubernetes_logs", option: value}}),
            )
        };
        for other in [
            opted_out,
            with("extra_label_selector", json!("app=x")),
            with("pod_annotation_fields", json!({"pod_namespace": "x"})),
            with("log_namespace", json!(true)),
        ] {
            let pipelines = [other.clone(), logs("b", "p")];
            let config = merged(&pipelines);
            let sources = config["sources"].as_object().expect("sources");
            assert!(
                sources.keys().all(|id| !id.starts_with(SHARED)),
                "{sources:?}"
            );
            // Two equal ones with an option that moves the field are not divisible either.
            let moves = other.spec["sources"]["in"]
                .get("extra_label_selector")
                .is_none();
            let mut second = other;
            second.namespace = Some("c".to_owned());
            let config = merged(&[pipelines[0].clone(), second]);
            let sources = config["sources"].as_object().expect("sources");
            assert_eq!(sources.keys().all(|id| !id.starts_with(SHARED)), moves);
        }
    }

    #[test]
    fn of_two_equal_sources_of_a_pipeline_one_stays() {
        let logs_of = json!({"type": "kubernetes_logs"});
        let twice = pipeline("a", "p", &json!({"x": logs_of, "y": logs_of}));
        let config = merged(&[twice, logs("b", "p")]);
        let router = source(&config).replace("Source", "Router");
        let inputs = &config["sinks"]["a__p__out"]["inputs"];
        assert_eq!(*inputs, json!([format!("{router}.a"), "a__p__y"]));
    }
}

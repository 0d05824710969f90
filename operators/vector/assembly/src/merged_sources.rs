//! Merged sources: sources of `kubernetes_logs` that differ only in their namespace become one, with a transform behind
//! it that gives each pipeline the events of its namespace.
//!
//! Each source watches Pods, namespaces and nodes by itself, so that many sources are a load for the API server and the
//! agents. The price is that one slow pipeline slows down all that share its source. Merging is an option therefore, and
//! an annotation keeps a pipeline out of it.
//!
//! It changes nothing else: a source is merged only if its events have the field by which they are divided, and no
//! pipeline has two of the sources that become one.
//!
//! The name of a merged source depends on the options of the sources and on nothing else: Vector keeps the read positions
//! under this name, and pipelines that come and go must not change it. So a source is merged even if it is the only one.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

use fnv::FnvHasher;
use glob::Pattern;
use lockstep_vector_config::ComponentKind;
use serde_json::{Map, Value, json};

use crate::canonical;
use crate::isolation::{KUBERNETES_LOGS, NAMESPACE_LABEL, NAMESPACE_SELECTOR};
use crate::names::SHARED;
use crate::options::AssemblyOptions;
use crate::part::PipelinePart;

/// Maximum number of namespaces of a source: their names are in the address of each request to the API server.
const MAX_NAMESPACES: usize = 1000;

/// Maximum number of namespaces that one transform divides. It compares each event with all of them.
const MAX_ROUTES: usize = 16;

/// Option that the workload sets for all of its sources.
const API_SERVER_CACHE: &str = "use_apiserver_cache";

/// Options that leave the field with the namespace as it is. Others can move it or write over it.
const DIVISIBLE: [&str; 22] = [
    "acknowledgements",
    "auto_partial_merge",
    "delay_deletion_ms",
    "exclude_paths_glob_patterns",
    "extra_field_selector",
    "extra_label_selector",
    NAMESPACE_SELECTOR,
    "fingerprint_lines",
    "glob_minimum_cooldown_ms",
    "ignore_older_secs",
    "include_paths_glob_patterns",
    "insert_namespace_fields",
    "internal_metrics",
    "max_line_bytes",
    "max_merged_line_bytes",
    "max_read_bytes",
    "oldest_first",
    "read_from",
    "rotate_wait_secs",
    "timezone",
    "type",
    API_SERVER_CACHE,
];

/// Source of a pipeline.
struct MergedSource {
    id: String,
    /// Index of its part.
    part: usize,
    namespace: String,
    source: Map<String, Value>,
}

/// Merges sources in the blocks of a configuration, which are those of the parts. The parts record which of their sources
/// are merged.
pub(crate) fn merge(
    options: &AssemblyOptions,
    parts: &mut [PipelinePart],
    blocks: &mut [Map<String, Value>; 3],
) {
    // Names of sources, as inputs, with the outputs that replace them.
    let mut outputs = BTreeMap::new();
    for (signature, sources) in groups(options, parts) {
        let hash = &canonical::hash(&signature.into())[..8];
        for (index, sources) in divided(sources) {
            let name = format!("{hash}-{index}");
            let namespaces: BTreeSet<_> = sources.iter().map(|it| &*it.namespace).collect();
            let namespaces: Vec<_> = namespaces.into_iter().collect();
            outputs.extend(merge_group(&name, &namespaces, &sources, blocks));
            for source in &sources {
                let merged = &mut parts[source.part].merged_sources;
                merged.insert(source.id.clone(), shared_source(&name));
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
fn groups(
    options: &AssemblyOptions,
    parts: &[PipelinePart],
) -> BTreeMap<String, Vec<MergedSource>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let parts = parts.iter().enumerate();
    for (at, part) in parts.filter(|(_, part)| !part.keeps_own_sources) {
        let mut own = BTreeSet::new();
        for (id, source) in &part.sources {
            let Some((namespace, source)) = divisible(source) else {
                continue;
            };
            let mut common = source.clone();
            common.remove(NAMESPACE_SELECTOR);
            if options.use_api_server_cache {
                // All sources have it, and none gets another name when the workload changes it.
                common.remove(API_SERVER_CACHE);
            }
            let signature = Value::Object(common).to_string();
            // A component that has two equal sources gets each event twice.
            if own.insert(signature.clone()) {
                let source = MergedSource {
                    id: id.clone(),
                    part: at,
                    namespace: namespace.to_owned(),
                    source: source.clone(),
                };
                groups.entry(signature).or_default().push(source);
            }
        }
    }
    groups
}

/// Divides a group into sources with at most [`MAX_NAMESPACES`]. A namespace stays where it is when others come and go,
/// unless the number of sources changes.
fn divided(group: Vec<MergedSource>) -> BTreeMap<u64, Vec<MergedSource>> {
    let namespaces: BTreeSet<_> = group.iter().map(|it| hash(&it.namespace)).collect();
    let mut number = 1;
    loop {
        let mut sizes = BTreeMap::new();
        for hash in &namespaces {
            *sizes.entry(hash % number).or_insert(0) += 1;
        }
        if sizes.values().all(|size| *size <= MAX_NAMESPACES) {
            break;
        }
        // With twice as many, each is divided into two.
        number *= 2;
    }
    let mut divided: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for source in group {
        let index = hash(&source.namespace) % number;
        divided.entry(index).or_default().push(source);
    }
    divided
}

fn hash(namespace: &str) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(namespace.as_bytes());
    hasher.finish()
}

/// Returns the namespace of a source whose events can be separated from those of other namespaces.
fn divisible(source: &Value) -> Option<(&str, &Map<String, Value>)> {
    let source = source.as_object()?;
    let is_logs = source.get("type")? == KUBERNETES_LOGS;
    let keeps_field = source.keys().all(|option| DIVISIBLE.contains(&&**option));
    let selector = source.get(NAMESPACE_SELECTOR)?.as_str()?;
    let namespace = selector.strip_prefix(NAMESPACE_LABEL)?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_one = !namespace.is_empty() && namespace.chars().all(is_name);
    (is_logs && keeps_field && is_one).then_some((namespace, source))
}

fn shared_source(name: &str) -> String {
    format!("{SHARED}Source-{name}")
}

/// Merges the sources of a group, and returns the outputs by the inputs that they replace.
fn merge_group(
    name: &str,
    namespaces: &[&str],
    sources: &[MergedSource],
    blocks: &mut [Map<String, Value>; 3],
) -> Vec<(String, String)> {
    let merged = shared_source(name);
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
        block.remove(&source.id);
    }
    block.insert(merged, source.into());
    let replaced = sources.iter().filter_map(|source| {
        let output = outputs.get(&*source.namespace)?;
        Some((Pattern::escape(&source.id), output.clone()))
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
        for (other, is_merged) in [
            (opted_out, false),
            (with("extra_label_selector", json!("app=x")), true),
            (
                with("pod_annotation_fields", json!({"pod_namespace": "x"})),
                false,
            ),
            (
                with("ingestion_timestamp_field", json!(".kubernetes")),
                false,
            ),
            (with("log_namespace", json!(true)), false),
        ] {
            let mut second = other.clone();
            second.namespace = Some("c".to_owned());
            let config = merged(&[other, second, logs("b", "p")]);
            let sources = config["sources"].as_object().expect("sources");
            let shared = sources.keys().filter(|id| id.starts_with(SHARED)).count();
            assert_eq!(shared, 1 + usize::from(is_merged), "{sources:?}");
            assert_eq!(sources.len(), if is_merged { 2 } else { 3 }, "{sources:?}");
        }
    }

    #[test]
    fn the_name_of_a_source_depends_on_no_other_pipeline_and_on_no_option_of_the_workload() {
        let options = AssemblyOptions {
            merge_sources: true,
            ..AssemblyOptions::new(RunnerKind::Agent)
        };
        let cached = AssemblyOptions {
            use_api_server_cache: true,
            ..options.clone()
        };
        let name = |options: &AssemblyOptions, pipelines: &[RunnablePipeline]| {
            let assembly = assemble(options, pipelines);
            let part = assembly.parts.iter().find(|it| it.pipeline.name == "p");
            part.expect("a part").merged_sources["a__p__in"].clone()
        };
        let alone = name(&options, &[logs("a", "p")]);
        assert_eq!(name(&options, &[logs("a", "p"), logs("a", "q")]), alone);
        assert_eq!(name(&options, &[logs("a", "p"), logs("b", "q")]), alone);
        assert_eq!(name(&cached, &[logs("a", "p"), logs("b", "q")]), alone);
    }

    #[test]
    fn too_many_namespaces_are_several_sources_and_each_namespace_stays_in_its_own() {
        let sources = |number: usize| {
            let names = (0..number).map(|index| format!("n{index:04}"));
            let pipelines: Vec<_> = names.map(|name| logs(&name, "p")).collect();
            let options = AssemblyOptions {
                merge_sources: true,
                ..AssemblyOptions::new(RunnerKind::Agent)
            };
            let parts = assemble(&options, &pipelines).parts.into_iter();
            let sources = parts.flat_map(|part| part.merged_sources);
            sources.collect::<BTreeMap<_, _>>()
        };
        let (before, after) = (sources(1200), sources(1300));
        let names: BTreeSet<_> = before.values().collect();
        assert_eq!(names.len(), 2);
        assert!(before.iter().all(|(id, source)| after[id] == *source));
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

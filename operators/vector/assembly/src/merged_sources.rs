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
//!
//! The inputs of a pipeline depend on no other namespace either. When Vector reloads a configuration, it waits for each
//! sink whose inputs have changed, and a sink that cannot send lets it wait forever. So the events pass two routers, whose
//! outputs have names that follow from the namespace alone, even if there is only one namespace.

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

/// Maximum number of namespaces of a source. Their names are in the address of each request to the API server, which has
/// at most 65,534 bytes in the HTTP client of Vector. A name has at most 63 bytes, and the comma takes three.
const MAX_NAMESPACES: usize = 900;

/// Number of the second routers. An event is compared with as many patterns, and then with the namespaces of one router,
/// instead of with all namespaces. It never changes: the names of the routers follow from it.
const SECOND_ROUTERS: u64 = 32;

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
        let name = format!("{}-0", &canonical::hash(&signature.into())[..8]);
        let sources = within_limit(sources);
        outputs.extend(merge_group(&name, &sources, blocks));
        for source in &sources {
            let merged = &mut parts[source.part].merged_sources;
            merged.insert(source.id.clone(), shared_source(&name));
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

/// Returns the sources of a group without those of the namespaces above [`MAX_NAMESPACES`], which stay apart. A namespace
/// that comes or goes changes at most one other: the last one within the limit, or the first one above it.
fn within_limit(mut group: Vec<MergedSource>) -> Vec<MergedSource> {
    let namespaces: BTreeSet<_> = group.iter().map(|it| &it.namespace).collect();
    if namespaces.len() > MAX_NAMESPACES {
        // In the order of hashes, this is not always the same tenant, as it would be in that of names.
        let in_order = namespaces.into_iter().map(|it| (hash(it), it.clone()));
        let in_order: BTreeSet<_> = in_order.collect();
        let within = in_order.into_iter().take(MAX_NAMESPACES);
        let within: BTreeSet<_> = within.map(|(_, namespace)| namespace).collect();
        group.retain(|it| within.contains(&it.namespace));
    }
    group
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
    sources: &[MergedSource],
    blocks: &mut [Map<String, Value>; 3],
) -> Vec<(String, String)> {
    let namespaces: BTreeSet<_> = sources.iter().map(|it| &*it.namespace).collect();
    let namespaces: Vec<_> = namespaces.into_iter().collect();
    let merged = shared_source(name);
    let mut source = sources[0].source.clone();
    if namespaces.len() > 1 {
        let label = NAMESPACE_LABEL.trim_end_matches('=');
        let selector = format!("{label} in ({})", namespaces.join(","));
        source.insert(NAMESPACE_SELECTOR.to_owned(), selector.into());
    }
    let transforms = &mut blocks[ComponentKind::Transform as usize];
    let outputs = divide(name, &merged, &namespaces, transforms);
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
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for namespace in namespaces {
        let index = hash(namespace) % SECOND_ROUTERS;
        groups.entry(index).or_default().push(*namespace);
    }
    let first = format!("{SHARED}Router-{name}");
    let mut outputs = BTreeMap::new();
    let mut routes = Map::new();
    for (index, group) in groups {
        // A name of a namespace has no character with a meaning in a pattern. The pattern has no `$`, which could begin the
        // name of an environment variable.
        let names = group.join("|");
        let condition =
            format!("match(string(.kubernetes.pod_namespace) ?? \"\", r'\\A(?:{names})\\z')");
        routes.insert(index.to_string(), condition.into());
        let second = format!("{first}-{index}");
        let of_group = group.iter().map(|namespace| {
            let condition = format!(".kubernetes.pod_namespace == {namespace:?}");
            ((*namespace).to_owned(), condition.into())
        });
        let input = format!("{first}.{index}");
        transforms.insert(second.clone(), route(&input, of_group.collect()));
        outputs.extend(group.iter().map(|it| (*it, format!("{second}.{it}"))));
    }
    transforms.insert(first, route(source, routes));
    outputs
}

fn route(input: &str, routes: Map<String, Value>) -> Value {
    let routes = Value::Object(routes);
    json!({"type": "route", "inputs": [input], "reroute_unmatched": false, "route": routes})
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::WorkloadRole;

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
            ..AssemblyOptions::new(WorkloadRole::Agent)
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
        let route = |input: &str, name: String, condition: String| {
            json!({
                "type": "route", "inputs": [input], "reroute_unmatched": false,
                "route": {name: condition},
            })
        };
        let mut transforms = json!({});
        let mut conditions = json!({});
        for namespace in ["a", "b"] {
            let index = hash(namespace) % SECOND_ROUTERS;
            let pattern = format!("r'\\A(?:{namespace})\\z'");
            conditions[index.to_string()] =
                format!("match(string(.kubernetes.pod_namespace) ?? \"\", {pattern})").into();
            let equal = format!(".kubernetes.pod_namespace == {namespace:?}");
            transforms[format!("{router}-{index}")] =
                route(&format!("{router}.{index}"), namespace.to_owned(), equal);
        }
        transforms[&router] = json!({
            "type": "route", "inputs": [source], "reroute_unmatched": false, "route": conditions,
        });
        assert_eq!(config["transforms"], transforms);
        for (sink, namespace) in [("a__p__out", "a"), ("a__q__out", "a"), ("b__p__out", "b")] {
            let index = hash(namespace) % SECOND_ROUTERS;
            let expected = json!([format!("{router}-{index}.{namespace}")]);
            assert_eq!(config["sinks"][sink]["inputs"], expected);
        }
    }

    #[test]
    fn sources_of_one_namespace_become_one() {
        let config = merged(&[logs("a", "p"), logs("a", "q")]);
        let source = source(&config);
        assert_eq!(
            config["sources"][source][NAMESPACE_SELECTOR],
            "kubernetes.io/metadata.name=a"
        );
        let inputs = &config["sinks"]["a__p__out"]["inputs"];
        assert_eq!(*inputs, config["sinks"]["a__q__out"]["inputs"]);
    }

    #[test]
    fn other_namespaces_change_no_input_of_a_pipeline() {
        let sinks = |namespaces: usize| {
            // Each further name is in front of the others.
            let names = (0..namespaces).map(|index| format!("n{:03}", 99 - index));
            let pipelines: Vec<_> = names.map(|name| logs(&name, "p")).collect();
            let sinks = merged(&pipelines)["sinks"].clone();
            sinks.as_object().expect("sinks").clone()
        };
        let all = sinks(100);
        for number in [1, 2, 16, 17, 99] {
            assert!(sinks(number).iter().all(|(id, sink)| all[id] == *sink));
        }
    }

    #[test]
    fn the_events_of_each_namespace_pass_one_second_router() {
        let names: Vec<_> = (0..100).map(|index| format!("n{index:03}")).collect();
        let pipelines: Vec<_> = names.iter().map(|name| logs(name, "p")).collect();
        let config = merged(&pipelines);
        let transforms = config["transforms"].as_object().expect("transforms");
        let router = source(&config).replace("Source", "Router");
        let first = transforms[&router]["route"].as_object().expect("routes");
        assert!(first.len() <= 32);
        for name in &names {
            let sink = &config["sinks"][format!("{name}__p__out")]["inputs"][0];
            let input = sink.as_str().expect("an input");
            let (second, route) = input.split_once('.').expect("a route");
            assert_eq!(route, name);
            let from = transforms[second]["inputs"][0].as_str().expect("an input");
            let (_, index) = from.split_once('.').expect("a route");
            let has_name = |condition: &Value| {
                let text = condition.as_str().expect("a program");
                let names = text.split(['(', ')', '|', ':']);
                names.filter(|it| it == name).count() == 1
            };
            assert!(has_name(&first[index]), "{name} {}", first[index]);
            assert_eq!(first.values().filter(|it| has_name(it)).count(), 1);
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
            ..AssemblyOptions::new(WorkloadRole::Agent)
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
    fn namespaces_above_the_limit_stay_apart_and_change_at_most_one_other() {
        let sources = |number: usize| {
            let names = (0..number).map(|index| format!("n{index:04}"));
            let pipelines: Vec<_> = names.map(|name| logs(&name, "p")).collect();
            let options = AssemblyOptions {
                merge_sources: true,
                ..AssemblyOptions::new(WorkloadRole::Agent)
            };
            let assembly = assemble(&options, &pipelines);
            let own = assembly.config["sources"].as_object().map_or(0, Map::len) - 1;
            let parts = assembly.parts.into_iter();
            let merged = parts.flat_map(|part| part.merged_sources.into_keys());
            (merged.collect::<BTreeSet<_>>(), own)
        };
        let mut before = sources(MAX_NAMESPACES);
        assert_eq!((before.0.len(), before.1), (MAX_NAMESPACES, 0));
        for more in 1..=20 {
            let after = sources(MAX_NAMESPACES + more);
            assert_eq!((after.0.len(), after.1), (MAX_NAMESPACES, more));
            assert!(before.0.difference(&after.0).count() <= 1);
            before = after;
        }
    }

    #[test]
    fn of_two_equal_sources_of_a_pipeline_one_stays() {
        let logs_of = json!({"type": "kubernetes_logs"});
        let twice = pipeline("a", "p", &json!({"x": logs_of, "y": logs_of}));
        let config = merged(&[twice, logs("b", "p")]);
        let router = source(&config).replace("Source", "Router");
        let inputs = &config["sinks"]["a__p__out"]["inputs"];
        let index = hash("a") % SECOND_ROUTERS;
        assert_eq!(*inputs, json!([format!("{router}-{index}.a"), "a__p__y"]));
    }
}

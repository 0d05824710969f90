//! Pipelines of several tenants in one configuration depend on nothing of each other.

use std::collections::{BTreeMap, BTreeSet};

use glob::Pattern;
use lockstep_vector_assembly::{
    Assembly, AssemblyOptions, ComponentNames, PipelineKey, PipelinePart, RunnablePipeline,
    WorkloadRole, assemble,
};
use lockstep_vector_config::{ComponentKind, components, output_names};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Namespaces of the two tenants. Joined by dashes, their names are ambiguous.
const TENANTS: [&str; 2] = ["a", "a-b"];

/// Names of pipelines.
const PIPELINE: &str = "[ab](-[ab]){0,2}";

/// Names of components, some of which look like patterns or like the names of other pipelines.
const SOURCE: &str = r"in|a|\*|b-in|a__b";
const TRANSFORM: &str = r"t|b|\[a\]|a-b-t";
const SINK: &str = r"out|a__out|a-b-out";

/// Inputs: names, patterns, and final names of components of other pipelines.
fn input() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => r"in|\*|\?\*|i\*",
        1 => r"t|t\.[ab]|\*\.\*|\[a\]|t\*|a__b|b-in",
        1 => r"a__[ab]__in|a-b__a__[a*]|a-b-in|__a__in|a-\*|\*__in",
    ]
}

fn source() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => Just(json!({"type": "kubernetes_logs"})),
        1 => Just(json!({"type": "kubernetes_logs", "extra_label_selector": "a=b"})),
        1 => (1_u16..5).prop_map(|port| json!({"type": "vector", "address": format!("0.0.0.0:{port}")})),
        1 => Just(json!({"type": "kubernetes_events"})),
        1 => Just(json!({"type": "datadog_agent", "address": "0.0.0.0:9", "multiple_outputs": true})),
    ]
}

fn transform() -> impl Strategy<Value = Value> {
    let route = prop::collection::btree_set(r"[ab]|\*", 1..3).prop_map(|names| {
        let routes: Map<String, Value> =
            names.into_iter().map(|it| (it, ".a == 1".into())).collect();
        json!({"type": "route", "route": routes})
    });
    prop_oneof![
        route,
        any::<bool>()
            .prop_map(|it| json!({"type": "remap", "source": ".a = 1", "reroute_dropped": it})),
    ]
}

fn with_inputs(component: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (component, prop::collection::vec(input(), 1..3)).prop_map(|(mut component, inputs)| {
        component["inputs"] = inputs.into();
        component
    })
}

fn spec() -> impl Strategy<Value = Value> {
    let sink = prop_oneof![
        Just(json!({"type": "blackhole"})),
        Just(json!({"type": "loki", "tenant_id": "SECRET[s.k]"})),
    ];
    (
        source().prop_map(|it| ("in".to_owned(), it)),
        prop::collection::btree_map(SOURCE, source(), 0..2),
        prop::collection::btree_map(TRANSFORM, with_inputs(transform()), 0..2),
        prop::collection::btree_map(SINK, with_inputs(sink), 1..3),
    )
        .prop_map(|(own, mut sources, transforms, sinks)| {
            sources.extend([own]);
            json!({
                "sources": sources, "transforms": transforms, "sinks": sinks,
                "secret": {"s": {"type": "kubernetes_secret", "name": "n"}},
            })
        })
}

/// Returns some pipelines of a tenant.
fn pipelines(namespace: &'static str) -> impl Strategy<Value = Vec<RunnablePipeline>> {
    let all = prop::collection::btree_map(PIPELINE, (spec(), 0_i64..9), 0..4);
    all.prop_map(move |all| {
        let all = all
            .into_iter()
            .map(|(name, (spec, generation))| RunnablePipeline {
                namespace: Some(namespace.to_owned()),
                name,
                generation,
                spec,
                ..RunnablePipeline::default()
            });
        all.collect()
    })
}

fn options() -> impl Strategy<Value = AssemblyOptions> {
    (any::<bool>(), any::<bool>()).prop_map(|(is_agent, has_dashes)| {
        let kind = if is_agent {
            WorkloadRole::Agent
        } else {
            WorkloadRole::Aggregator
        };
        let component_names = if has_dashes {
            ComponentNames::Dashes
        } else {
            ComponentNames::Underscores
        };
        AssemblyOptions {
            component_names,
            ..AssemblyOptions::new(kind)
        }
    })
}

/// Returns the parts of a tenant.
fn parts_of(assembly: &Assembly, namespace: &str) -> BTreeMap<PipelineKey, PipelinePart> {
    let parts = assembly
        .parts
        .iter()
        .map(|part| (part.pipeline.clone(), part.clone()));
    let own = parts.filter(|(key, _)| key.namespace.as_deref() == Some(namespace));
    own.collect()
}

/// Returns the owners of all components of a configuration. Fails if two have the same name.
fn owners(assembly: &Assembly) -> BTreeMap<&str, &PipelineKey> {
    let mut owners = BTreeMap::new();
    for part in &assembly.parts {
        for id in part.component_ids() {
            let before = owners.insert(id, &part.pipeline);
            assert_eq!(before, None, "{id} has two owners");
        }
    }
    owners
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_configuration_does_not_depend_on_the_order_of_pipelines(
        options in options(),
        all in (pipelines(TENANTS[0]), pipelines(TENANTS[1])).prop_map(|(a, b)| [a, b].concat()),
        seed in any::<prop::sample::Index>(),
    ) {
        let expected = assemble(&options, &all);
        let mut others = all;
        others.reverse();
        if !others.is_empty() {
            let by = seed.index(others.len());
            others.rotate_left(by);
        }
        let found = assemble(&options, &others);
        prop_assert_eq!(found.to_bytes(), expected.to_bytes());
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn pipelines_of_one_tenant_change_no_byte_of_those_of_another(
        options in options(),
        before in pipelines(TENANTS[0]),
        after in pipelines(TENANTS[0]),
        mut own in pipelines(TENANTS[1]),
    ) {
        let first = assemble(&options, &[before, own.clone()].concat());
        let first = parts_of(&first, TENANTS[1]);
        // As it runs on, a pipeline keeps its port for events.
        let alone = parts_of(&assemble(&options, &own), TENANTS[1]);
        for pipeline in &mut own {
            let part = first.get(&pipeline.key()).or(alone.get(&pipeline.key()));
            pipeline.event_port = part.and_then(PipelinePart::event_port);
        }
        // Each by itself: of two pipelines that exclude each other, a third one may decide which of them runs.
        let alone: BTreeMap<_, _> = own
            .iter()
            .flat_map(|pipeline| parts_of(&assemble(&options, std::slice::from_ref(pipeline)), TENANTS[1]))
            .collect();
        let second = assemble(&options, &[after, own].concat());
        for (key, part) in first.iter().chain(&parts_of(&second, TENANTS[1])) {
            // A part may be left out for an address or, with dashes, a name; it is never another one.
            prop_assert_eq!(part, &alone[key]);
            for kind in ComponentKind::ALL {
                for (id, component) in part.components(kind) {
                    let whole = second.config[kind.block()].get(id);
                    let is_part = second.parts.contains(part);
                    prop_assert!(!is_part || whole == Some(component));
                }
            }
        }
        if options.component_names == ComponentNames::Underscores && options.kind == WorkloadRole::Agent {
            prop_assert_eq!(first.len(), alone.len());
        }
    }

    #[test]
    fn no_component_reaches_a_component_of_another_pipeline(
        options in options(),
        all in (pipelines(TENANTS[0]), pipelines(TENANTS[1])).prop_map(|(a, b)| [a, b].concat()),
    ) {
        let assembly = assemble(&options, &all);
        let owners = owners(&assembly);
        let config = assembly.config.as_object().expect("a configuration");
        // Outputs of all components, with their components, as Vector resolves inputs.
        let outputs: Vec<_> = components(config)
            .filter(|component| component.family != ComponentKind::Sink)
            .flat_map(|component| {
                let names = output_names(&options.catalogue, &component).into_iter();
                names.map(move |name| (name, component.id))
            })
            .collect();
        for component in components(config) {
            for input in component.inputs() {
                let pattern = Pattern::new(input).expect("a pattern");
                let matched = outputs.iter().filter(|(name, _)| {
                    pattern.matches(name) && name != component.id
                });
                let matched: BTreeSet<_> = matched.map(|(_, id)| *id).collect();
                prop_assert_eq!(matched.len(), 1, "{} of {}", input, component.id);
                for id in matched {
                    prop_assert_eq!(owners.get(id), owners.get(component.id));
                }
            }
        }
        let mut files = BTreeSet::new();
        for reference in &assembly.secrets {
            prop_assert!(files.insert(&reference.file_name));
        }
        for part in &assembly.parts {
            for reference in &part.secrets {
                prop_assert_eq!(Some(&reference.namespace), part.pipeline.namespace.as_ref());
            }
        }
    }
}

#[test]
fn most_random_pipelines_are_part_of_a_configuration() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let (mut parts, mut matched) = (0, 0);
    for _ in 0..200 {
        let all = pipelines(TENANTS[0])
            .new_tree(&mut runner)
            .expect("pipelines")
            .current();
        let assembly = assemble(&AssemblyOptions::new(WorkloadRole::Aggregator), &all);
        parts += assembly.parts.len();
        let sinks = assembly.parts.iter().flat_map(|part| part.sinks.values());
        matched += sinks
            .filter(|sink| sink["inputs"].as_array().is_some_and(|it| it.len() > 1))
            .count();
    }
    // Otherwise the properties above would say little.
    assert!(parts > 50, "{parts}");
    assert!(matched > 10, "{matched}");
}

//! Parts → parts that can run together in one process.

use std::collections::BTreeMap;

use lockstep_vector_api::RunnerKind;
use lockstep_vector_api::port_allocation::ListenEndpoint;
use lockstep_vector_config::{ComponentKind, components, listen_address};

use crate::globals::METRICS_ADDRESS;
use crate::options::AssemblyOptions;
use crate::part::PipelinePart;
use crate::pipeline::{PipelineKey, PipelineProblem};

/// Parts that run together.
pub(crate) struct Selection {
    pub(crate) parts: Vec<PipelinePart>,
    pub(crate) problems: Vec<PipelineProblem>,
    /// If true, no pipeline serves metrics, so that Vector serves its own.
    pub(crate) has_own_metrics: bool,
}

/// Selects the parts that can run together. Of two that exclude each other, the later one, by namespace and name, is left
/// out.
pub(crate) fn select(options: &AssemblyOptions, parts: &[PipelinePart]) -> Selection {
    let mut has_own_metrics = options.internal_metrics && !parts.iter().any(has_exporter);
    loop {
        let selection = select_with(options, parts, has_own_metrics);
        // The exporter may have been left out.
        let has_exporter = selection.parts.iter().any(has_exporter);
        if has_own_metrics || !options.internal_metrics || has_exporter {
            return selection;
        }
        has_own_metrics = true;
    }
}

fn has_exporter(part: &PipelinePart) -> bool {
    let mut sinks = part.sinks.values();
    sinks.any(|sink| sink["type"] == "prometheus_exporter")
}

/// Owner of an address or a name.
#[derive(Clone, Copy)]
enum Owner<'p> {
    Vector(&'static str),
    Pipeline(&'p PipelineKey),
}

impl Owner<'_> {
    /// Describes the owner for the author of another pipeline. Tenants learn nothing about those of other namespaces.
    fn describe(self, other: &PipelineKey) -> String {
        match self {
            Self::Vector(what) => what.to_owned(),
            Self::Pipeline(key)
                if other.namespace.is_none() || other.namespace == key.namespace =>
            {
                format!("the pipeline {key}")
            }
            Self::Pipeline(_) => "a pipeline outside this namespace".to_owned(),
        }
    }
}

struct Claims<'p> {
    role: RunnerKind,
    endpoints: Vec<(ListenEndpoint, Owner<'p>)>,
    names: BTreeMap<&'p str, Owner<'p>>,
}

impl<'p> Claims<'p> {
    /// Returns the reason why a part cannot run with those that were selected.
    fn conflict(&self, part: &PipelinePart) -> Option<String> {
        let mut ids = part.component_ids();
        let name = ids.find_map(|id| Some((id, self.names.get(id)?)));
        if let Some((id, owner)) = name {
            let owner = owner.describe(&part.pipeline);
            return Some(format!(
                "a component of {owner} has the name `{id}` already; rename a component or the pipeline"
            ));
        }
        let is_own =
            |owner: &Owner<'_>| matches!(owner, Owner::Pipeline(key) if *key == &part.pipeline);
        endpoints(part).into_iter().find_map(|(address, endpoint)| {
            let mut others = self.endpoints.iter().filter(|(_, owner)| !is_own(owner));
            let (_, owner) = others.find(|(other, _)| endpoint.conflicts_with(other, self.role))?;
            let owner = owner.describe(&part.pipeline);
            Some(format!(
                "{address} is already used by {owner}; use another port"
            ))
        })
    }

    fn add(&mut self, part: &'p PipelinePart) {
        let owner = Owner::Pipeline(&part.pipeline);
        let endpoints = endpoints(part).into_iter();
        self.endpoints
            .extend(endpoints.map(|(_, endpoint)| (endpoint, owner)));
        self.names
            .extend(part.component_ids().map(|id| (id, owner)));
    }
}

fn select_with(
    options: &AssemblyOptions,
    parts: &[PipelinePart],
    has_own_metrics: bool,
) -> Selection {
    let mut claims = Claims {
        role: options.kind,
        endpoints: Vec::new(),
        names: BTreeMap::new(),
    };
    if let Some(api) = options.api {
        let endpoint = ListenEndpoint::new("tcp", &api.address.to_string(), false);
        claims
            .endpoints
            .push((endpoint, Owner::Vector("Vector's own API")));
    }
    if has_own_metrics {
        let endpoint = ListenEndpoint::new("tcp", METRICS_ADDRESS, false);
        claims
            .endpoints
            .push((endpoint, Owner::Vector("Vector's own metrics")));
    }
    // The author of a pipeline cannot choose the port for events, so that others have to give way.
    for part in parts {
        if let Some(port) = part.event_port() {
            let endpoint = ListenEndpoint::new("tcp", &format!("0.0.0.0:{port}"), true);
            claims
                .endpoints
                .push((endpoint, Owner::Pipeline(&part.pipeline)));
        }
    }
    let mut selection = Selection {
        parts: Vec::new(),
        problems: Vec::new(),
        has_own_metrics,
    };
    for part in parts {
        match claims.conflict(part) {
            None => {
                claims.add(part);
                selection.parts.push(part.clone());
            }
            Some(message) => selection.problems.push(PipelineProblem {
                pipeline: part.pipeline.clone(),
                message,
            }),
        }
    }
    selection
}

/// Returns the addresses on which a part listens.
fn endpoints(part: &PipelinePart) -> Vec<(String, ListenEndpoint)> {
    let config = part.configuration();
    let all = components(&config).flat_map(|component| {
        let is_source = component.family == ComponentKind::Source;
        let addresses = listen_address::of(&component).into_iter();
        addresses.map(move |address| {
            let endpoint = ListenEndpoint::new(address.protocol, &address.endpoint, is_source);
            (address.to_string(), endpoint)
        })
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use lockstep_vector_api::ComponentNames;

    use crate::options::ApiOptions;
    use crate::pipeline::RunnablePipeline;
    use crate::render::render;

    fn aggregator() -> AssemblyOptions {
        AssemblyOptions::new(RunnerKind::Aggregator)
    }

    fn part(
        options: &AssemblyOptions,
        namespace: Option<&str>,
        name: &str,
        sources: &Value,
    ) -> PipelinePart {
        let pipeline = RunnablePipeline {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            spec: json!({"sources": sources}),
            ..RunnablePipeline::default()
        };
        render(options, &pipeline, Some(42_000)).expect("a part")
    }

    fn listening(namespace: Option<&str>, name: &str, address: &str) -> PipelinePart {
        let sources = json!({"in": {"type": "vector", "address": address}});
        part(&aggregator(), namespace, name, &sources)
    }

    fn exporting(name: &str, address: &str) -> PipelinePart {
        let mut part = listening(None, name, address);
        let sink = json!({"type": "prometheus_exporter", "inputs": []});
        part.sinks.insert(format!("__{name}__out"), sink);
        part
    }

    /// Returns the pipelines that were selected, and the messages to the others.
    fn selected(options: &AssemblyOptions, parts: &[PipelinePart]) -> (Vec<String>, Vec<String>) {
        let selection = select(options, parts);
        let names = selection.parts.iter().map(|part| part.pipeline.to_string());
        let problems = selection.problems.into_iter();
        let problems = problems.map(|it| format!("{}: {}", it.pipeline, it.message));
        (names.collect(), problems.collect())
    }

    #[test]
    fn of_two_pipelines_with_one_address_the_later_is_left_out() {
        let parts = [
            listening(Some("a"), "p", "0.0.0.0:9000"),
            listening(Some("a"), "q", "127.0.0.1:9000"),
            listening(Some("b"), "p", "[::]:9000"),
            listening(Some("b"), "q", "0.0.0.0:9001"),
        ];
        let (names, problems) = selected(&aggregator(), &parts);
        assert_eq!(names, ["a/p", "b/q"]);
        assert_eq!(
            problems,
            [
                "a/q: tcp 127.0.0.1:9000 is already used by the pipeline a/p; use another port",
                "b/p: tcp [::]:9000 is already used by a pipeline outside this namespace; use another port",
            ]
        );
    }

    #[test]
    fn of_two_pipelines_with_one_name_joined_by_dashes_the_later_is_left_out() {
        let options = AssemblyOptions {
            component_names: ComponentNames::Dashes,
            ..AssemblyOptions::new(RunnerKind::Agent)
        };
        let logs = json!({"in": {"type": "kubernetes_logs"}});
        let parts = [
            part(&options, None, "a-b-c", &logs),
            part(&options, Some("a"), "b-c", &logs),
            part(&options, Some("a-b"), "c", &logs),
            part(&options, Some("a-b"), "d", &logs),
        ];
        let (names, problems) = selected(&options, &parts);
        assert_eq!(names, ["a-b-c", "a-b/d"]);
        let expected = "a component of a pipeline outside this namespace has the name `a-b-c-in` already; rename a component or the pipeline";
        assert_eq!(
            problems,
            [format!("a/b-c: {expected}"), format!("a-b/c: {expected}")]
        );
    }

    #[test]
    fn ports_of_vector_itself_are_taken() {
        let parts = [
            listening(None, "api", "127.0.0.1:8686"),
            listening(None, "metrics", "0.0.0.0:9598"),
        ];
        let (names, _) = selected(&aggregator(), &parts);
        assert_eq!(names, ["api", "metrics"]);
        let options = AssemblyOptions {
            api: Some(ApiOptions::default()),
            internal_metrics: true,
            ..aggregator()
        };
        let (names, problems) = selected(&options, &parts);
        assert!(names.is_empty(), "{names:?}");
        assert!(problems[0].contains("Vector's own API"), "{problems:?}");
        assert!(problems[1].contains("Vector's own metrics"), "{problems:?}");
    }

    #[test]
    fn vector_serves_its_metrics_unless_a_pipeline_does() {
        let options = AssemblyOptions {
            internal_metrics: true,
            ..aggregator()
        };
        assert!(select(&options, &[]).has_own_metrics);
        assert!(!select(&aggregator(), &[]).has_own_metrics);
        let exporter = exporting("x", "0.0.0.0:9000");
        assert!(!select(&options, std::slice::from_ref(&exporter)).has_own_metrics);
        // The pipeline with the exporter is left out for another reason.
        let parts = [listening(None, "a", "0.0.0.0:9000"), exporter];
        let selection = select(&options, &parts);
        assert!(selection.has_own_metrics);
        assert_eq!(selection.parts.len(), 1);
    }

    #[test]
    fn the_port_for_events_comes_first() {
        let events = json!({"in": {"type": "kubernetes_events"}});
        let parts = [
            listening(Some("a"), "p", "0.0.0.0:42000"),
            part(&aggregator(), Some("b"), "p", &events),
        ];
        let (names, problems) = selected(&aggregator(), &parts);
        assert_eq!(names, ["b/p"]);
        assert_eq!(problems.len(), 1);
    }
}

//! Parts → parts that can run together in one process.

use std::collections::BTreeMap;

use lockstep_vector_api::WorkloadRole;
use lockstep_vector_api::port_allocation::ListenEndpoint;

use crate::globals::METRICS_ADDRESS;
use crate::options::{AssemblyOptions, InternalMetrics};
use crate::part::PipelinePart;
use crate::pipeline::{PipelineKey, PipelineProblem};
use crate::precedence::{self, Claimant, Claims, PresentState};

/// Parts that run together.
pub(crate) struct Selection {
    pub(crate) parts: Vec<PipelinePart>,
    pub(crate) problems: Vec<PipelineProblem>,
    /// If true, no pipeline serves metrics, so that Vector serves its own.
    pub(crate) has_own_metrics: bool,
}

/// Selects the parts that can run together. Of two that exclude each other, the one that is published runs, or the earlier one
/// by namespace and name.
pub(crate) fn select(
    options: &AssemblyOptions,
    parts: &[PipelinePart],
    present: PresentState<'_>,
) -> Selection {
    let ordered = precedence::in_order(options, parts, present);
    let replaces = |part: &PipelinePart| replaces_metrics(part, options, present);
    let is_wanted = options.internal_metrics.is_some();
    let mut has_own_metrics = is_wanted && !parts.iter().any(replaces);
    loop {
        let selection = select_with(options, &ordered, has_own_metrics);
        // The exporter may have been left out.
        let is_replaced = selection.parts.iter().any(replaces);
        if has_own_metrics || !is_wanted || is_replaced {
            return selection;
        }
        has_own_metrics = true;
    }
}

/// Checks whether a pipeline serves the metrics in place of Vector's own: an administrator may do that. A tenant may not, because
/// all agents would lose their metrics, unless the workload permits it or the pipeline does so already.
fn replaces_metrics(
    part: &PipelinePart,
    options: &AssemblyOptions,
    present: PresentState<'_>,
) -> bool {
    let mut sinks = part.sinks.values();
    if !sinks.any(|sink| sink["type"] == "prometheus_exporter") {
        return false;
    }
    if part.pipeline.namespace.is_none()
        || options.internal_metrics == Some(InternalMetrics::ReplacedByAll)
    {
        return true;
    }
    let own = metrics_endpoint();
    let listens = |part: &PipelinePart| {
        let addresses = Claims::by(part).addresses.into_iter();
        let endpoints = addresses.map(|address| address.endpoint);
        let mut exporters = endpoints.filter(|endpoint| !endpoint.is_source());
        exporters.any(|endpoint| endpoint.conflicts_with(&own, options.kind))
    };
    let published = present.published.get(&part.pipeline);
    listens(&part.resolved(present.values)) && published.is_some_and(listens)
}

fn metrics_endpoint() -> ListenEndpoint {
    ListenEndpoint::new("tcp", METRICS_ADDRESS, false)
}

/// Owner of an address or a name.
#[derive(Clone, Copy)]
enum Owner<'p> {
    Vector(&'static str),
    Pipeline(&'p PipelineKey),
}

impl Owner<'_> {
    fn is(self, pipeline: &PipelineKey) -> bool {
        matches!(self, Self::Pipeline(key) if key == pipeline)
    }

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

/// Endpoint of Vector itself or of a part that was selected.
struct TakenEndpoint<'p> {
    endpoint: ListenEndpoint,
    owner: Owner<'p>,
}

/// Claims of Vector itself and of the parts that were selected.
struct Taken<'p> {
    role: WorkloadRole,
    endpoints: Vec<TakenEndpoint<'p>>,
    names: BTreeMap<&'p str, Owner<'p>>,
    sockets: BTreeMap<&'p str, Owner<'p>>,
}

impl<'p> Taken<'p> {
    /// Returns the reason why a part cannot run with those that were selected.
    fn conflict(&self, claimant: &Claimant<'_>) -> Option<String> {
        let Claimant { part, claims, .. } = claimant;
        let owner_of = |owner: &Owner<'_>| owner.describe(&part.pipeline);
        for id in &claims.names {
            if let Some(owner) = self.names.get(id.as_str()) {
                return Some(format!(
                    "a component of {} has the name `{id}` already; rename a component or the pipeline",
                    owner_of(owner)
                ));
            }
        }
        for path in &claims.sockets {
            if let Some(owner) = self.sockets.get(path.as_str()) {
                // It may contain a value of a Secret.
                let path = if part.secrets.is_empty() { path } else { "" };
                return Some(format!(
                    "the Unix socket {path} is already used by {}; use another path",
                    owner_of(owner)
                ));
            }
        }
        claims.addresses.iter().find_map(|address| {
            let others = self.endpoints.iter();
            let mut others = others.filter(|taken| !taken.owner.is(&part.pipeline));
            let taken =
                others.find(|taken| address.endpoint.conflicts_with(&taken.endpoint, self.role))?;
            Some(format!(
                "{} is already used by {}; use another port",
                address.text,
                owner_of(&taken.owner)
            ))
        })
    }

    fn add(&mut self, claimant: &'p Claimant<'p>) {
        let owner = Owner::Pipeline(&claimant.part.pipeline);
        let Claims {
            names,
            addresses,
            sockets,
        } = &claimant.claims;
        self.endpoints
            .extend(addresses.iter().map(|address| TakenEndpoint {
                endpoint: address.endpoint.clone(),
                owner,
            }));
        self.names
            .extend(names.iter().map(|id| (id.as_str(), owner)));
        self.sockets
            .extend(sockets.iter().map(|path| (path.as_str(), owner)));
    }
}

/// Returns the endpoints that are taken before any part is selected.
fn taken_first<'p>(
    options: &AssemblyOptions,
    claimants: &'p [Claimant<'p>],
    has_own_metrics: bool,
) -> Vec<TakenEndpoint<'p>> {
    let mut endpoints = Vec::new();
    if let Some(api) = options.api {
        endpoints.push(TakenEndpoint {
            endpoint: ListenEndpoint::new("tcp", &api.address.to_string(), false),
            owner: Owner::Vector("Vector's own API"),
        });
    }
    if has_own_metrics {
        endpoints.push(TakenEndpoint {
            endpoint: metrics_endpoint(),
            owner: Owner::Vector("Vector's own metrics"),
        });
    }
    // The author of a pipeline cannot choose the port for events, so that others have to give way.
    for claimant in claimants {
        if let Some(port) = claimant.part.event_port() {
            endpoints.push(TakenEndpoint {
                endpoint: ListenEndpoint::new("tcp", &format!("0.0.0.0:{port}"), true),
                owner: Owner::Pipeline(&claimant.part.pipeline),
            });
        }
    }
    endpoints
}

/// Selects parts, which are in the order of precedence.
fn select_with(
    options: &AssemblyOptions,
    claimants: &[Claimant<'_>],
    has_own_metrics: bool,
) -> Selection {
    let mut taken = Taken {
        role: options.kind,
        endpoints: taken_first(options, claimants, has_own_metrics),
        names: BTreeMap::new(),
        sockets: BTreeMap::new(),
    };
    let mut selection = Selection {
        parts: Vec::new(),
        problems: Vec::new(),
        has_own_metrics,
    };
    for claimant in claimants {
        match taken.conflict(claimant) {
            None => {
                taken.add(claimant);
                selection.parts.push(claimant.part.clone());
            }
            Some(message) => selection.problems.push(PipelineProblem {
                pipeline: claimant.part.pipeline.clone(),
                message,
            }),
        }
    }
    selection
        .parts
        .sort_by(|one, other| one.pipeline.cmp(&other.pipeline));
    selection
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use lockstep_vector_api::ComponentNames;

    use crate::options::ApiOptions;
    use crate::pipeline::RunnablePipeline;
    use crate::precedence::PublishedParts;
    use crate::render::render;
    use crate::secrets::SecretValues;

    fn aggregator() -> AssemblyOptions {
        AssemblyOptions::new(WorkloadRole::Aggregator)
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
        let selection = select(options, parts, PresentState::none());
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
            ..AssemblyOptions::new(WorkloadRole::Agent)
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
            internal_metrics: Some(InternalMetrics::ReplacedByAdministrators),
            ..aggregator()
        };
        let (names, problems) = selected(&options, &parts);
        assert!(names.is_empty(), "{names:?}");
        assert!(problems[0].contains("Vector's own API"), "{problems:?}");
        assert!(problems[1].contains("Vector's own metrics"), "{problems:?}");
    }

    #[test]
    fn vector_serves_its_metrics_unless_a_pipeline_of_an_administrator_does() {
        let none = PresentState::none();
        let options = AssemblyOptions {
            internal_metrics: Some(InternalMetrics::ReplacedByAdministrators),
            ..aggregator()
        };
        assert!(select(&options, &[], none).has_own_metrics);
        assert!(!select(&aggregator(), &[], none).has_own_metrics);
        let exporter = exporting("x", "0.0.0.0:9000");
        assert!(!select(&options, std::slice::from_ref(&exporter), none).has_own_metrics);
        // The pipeline with the exporter is left out for another reason.
        let parts = [listening(None, "a", "0.0.0.0:9000"), exporter];
        let selection = select(&options, &parts, none);
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

    fn by_pipeline(parts: &[PipelinePart]) -> BTreeMap<PipelineKey, PipelinePart> {
        let parts = parts.iter();
        let parts = parts.map(|part| (part.pipeline.clone(), part.clone()));
        parts.collect()
    }

    /// Returns the pipelines that are selected while others run.
    fn selected_beside(
        options: &AssemblyOptions,
        parts: &[PipelinePart],
        running: &[PipelinePart],
    ) -> Vec<String> {
        let running = by_pipeline(running);
        let present = PresentState {
            values: &SecretValues::new(),
            published: &PublishedParts::new(&running, &SecretValues::new()),
        };
        let parts = select(options, parts, present).parts.into_iter();
        parts.map(|part| part.pipeline.to_string()).collect()
    }

    #[test]
    fn a_running_pipeline_keeps_its_names_addresses_and_sockets() {
        let dashes = AssemblyOptions {
            component_names: ComponentNames::Dashes,
            ..AssemblyOptions::new(WorkloadRole::Agent)
        };
        let logs = json!({"in": {"type": "kubernetes_logs"}});
        let socket = json!({"in": {"type": "socket", "mode": "unix_stream", "path": "/tmp/x"}});
        let address = json!({"in": {"type": "vector", "address": "0.0.0.0:9000"}});
        for (options, sources) in [
            (dashes, logs),
            (aggregator(), socket),
            (aggregator(), address),
        ] {
            let first = part(&options, Some("a"), "b-c", &sources);
            let later = part(&options, Some("a-b"), "c", &sources);
            let both = [first.clone(), later.clone()];
            assert_eq!(
                selected_beside(&options, &both, &[]),
                ["a/b-c"],
                "{sources}"
            );
            let running = std::slice::from_ref(&later);
            assert_eq!(
                selected_beside(&options, &both, running),
                ["a-b/c"],
                "{sources}"
            );
            // Of two that run, the one that claims something new gives way.
            let other = json!({"other": {"type": "kubernetes_logs"}});
            let before = part(&options, Some("a"), "b-c", &other);
            let running = [before, later];
            assert_eq!(
                selected_beside(&options, &both, &running),
                ["a-b/c"],
                "{sources}"
            );
        }
    }

    #[test]
    fn an_exporter_of_a_tenant_leaves_vectors_own_metrics_alone() {
        let options = AssemblyOptions {
            internal_metrics: Some(InternalMetrics::ReplacedByAdministrators),
            ..aggregator()
        };
        let exporter = |namespace, address: Option<&str>| {
            let mut part = part(&aggregator(), namespace, "x", &json!({}));
            let mut sink = json!({"type": "prometheus_exporter", "inputs": []});
            if let Some(address) = address {
                sink["address"] = address.into();
            }
            part.sinks.insert("out".to_owned(), sink);
            part
        };
        let selected =
            |options: &AssemblyOptions, part: &PipelinePart, running: &[PipelinePart]| {
                let running = by_pipeline(running);
                let present = PresentState {
                    values: &SecretValues::new(),
                    published: &PublishedParts::new(&running, &SecretValues::new()),
                };
                let found = select(options, std::slice::from_ref(part), present);
                (found.has_own_metrics, found.parts.len())
            };
        let at_theirs = exporter(Some("a"), None);
        assert_eq!(selected(&options, &at_theirs, &[]), (true, 0));
        let elsewhere = exporter(Some("a"), Some("0.0.0.0:9000"));
        assert_eq!(selected(&options, &elsewhere, &[]), (true, 1));
        assert_eq!(selected(&options, &exporter(None, None), &[]), (false, 1));
        // It has replaced them before this was a conflict.
        let running = std::slice::from_ref(&at_theirs);
        assert_eq!(selected(&options, &at_theirs, running), (false, 1));
        let moved = std::slice::from_ref(&elsewhere);
        assert_eq!(selected(&options, &at_theirs, moved), (true, 0));
        let permitted = AssemblyOptions {
            internal_metrics: Some(InternalMetrics::ReplacedByAll),
            ..options
        };
        assert_eq!(selected(&permitted, &at_theirs, &[]), (false, 1));
    }
}

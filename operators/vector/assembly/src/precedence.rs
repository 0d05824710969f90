//! Precedence: a pipeline that runs keeps its names, addresses and sockets, whatever the names of the others are.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_vector_api::port_allocation::ListenEndpoint;
use lockstep_vector_config::{ComponentKind, listen_address, unix_socket};

use crate::options::AssemblyOptions;
use crate::part::PipelinePart;
use crate::pipeline::PipelineKey;
use crate::secrets::SecretValues;

/// Facts that decide which pipelines can run together, besides the pipelines.
#[derive(Clone, Copy, Debug)]
pub struct PresentState<'a> {
    /// Values of the Secrets that the pipelines refer to.
    pub values: &'a SecretValues,
    /// Parts that run now.
    pub published: &'a PublishedParts,
}

impl PresentState<'_> {
    /// Returns the state of a workload that runs nothing and whose pipelines refer to no Secret.
    #[must_use]
    pub fn none() -> Self {
        static VALUES: SecretValues = SecretValues::new();
        static PUBLISHED: PublishedParts = PublishedParts(BTreeMap::new());
        Self {
            values: &VALUES,
            published: &PUBLISHED,
        }
    }
}

/// Parts of the published configuration, with the values that their Secrets had then.
#[derive(Clone, Debug, Default)]
pub struct PublishedParts(BTreeMap<PipelineKey, PipelinePart>);

impl PublishedParts {
    /// Returns the parts with these values.
    #[must_use]
    pub fn new(parts: &BTreeMap<PipelineKey, PipelinePart>, values: &SecretValues) -> Self {
        let parts = parts.iter();
        let resolved = parts.map(|(key, part)| (key.clone(), part.resolved(values).into_owned()));
        Self(resolved.collect())
    }

    pub(crate) fn get(&self, pipeline: &PipelineKey) -> Option<&PipelinePart> {
        self.0.get(pipeline)
    }

    /// Checks whether a part is published, with these values of its Secrets.
    pub(crate) fn has(&self, resolved: &PipelinePart, options: &AssemblyOptions) -> bool {
        let published = self.get(&resolved.pipeline);
        published.is_some_and(|it| {
            let published = it.named_like(resolved, options.component_names);
            published.has_components_of(resolved)
        })
    }
}

/// Names, addresses and sockets that only one part of a configuration can have.
#[derive(Default)]
pub(crate) struct Claims {
    pub(crate) names: BTreeSet<String>,
    /// Endpoints, with the addresses as they are shown.
    pub(crate) endpoints: Vec<(String, ListenEndpoint)>,
    /// Paths of Unix sockets.
    pub(crate) sockets: BTreeSet<String>,
}

impl Claims {
    /// Returns the claims of a part, with the values of its Secrets.
    pub(crate) fn by(part: &PipelinePart) -> Self {
        let mut claims = Self {
            names: part.component_ids().map(str::to_owned).collect(),
            ..Self::default()
        };
        for component in part.all_components() {
            let is_source = component.family == ComponentKind::Source;
            claims.sockets.extend(unix_socket::bound_by(&component));
            for address in listen_address::of(&component) {
                let endpoint = ListenEndpoint::new(address.protocol, &address.endpoint, is_source);
                claims.endpoints.push((address.to_string(), endpoint));
            }
        }
        claims
    }

    fn are_among(&self, others: &Self) -> bool {
        let has = |(_, endpoint): &(String, ListenEndpoint)| {
            let mut held = others.endpoints.iter();
            held.any(|(_, other)| endpoint == other)
        };
        self.names.is_subset(&others.names)
            && self.sockets.is_subset(&others.sockets)
            && self.endpoints.iter().all(has)
    }
}

/// Rank of a part. Of two that exclude each other, the one with the lower rank runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A part that claims what it has in the published configuration.
    Unchanged,
    /// A part that is published with other claims.
    Changed,
    New,
}

impl Rank {
    fn of(part: &PipelinePart, options: &AssemblyOptions, present: PresentState<'_>) -> Self {
        let Some(before) = present.published.get(&part.pipeline) else {
            return Self::New;
        };
        let before = before.named_like(part, options.component_names);
        let claims = Claims::by(&part.resolved(present.values));
        if claims.are_among(&Claims::by(&before)) {
            Self::Unchanged
        } else {
            Self::Changed
        }
    }
}

/// Returns parts in the order in which they get what they claim. Those of the same rank have the order of their pipelines.
pub(crate) fn in_order<'p>(
    options: &AssemblyOptions,
    parts: impl IntoIterator<Item = &'p PipelinePart>,
    present: PresentState<'_>,
) -> Vec<&'p PipelinePart> {
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by_cached_key(|part| (Rank::of(part, options, present), part.pipeline.clone()));
    parts
}

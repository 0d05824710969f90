//! Precedence: a pipeline that runs keeps its names, addresses and sockets, whatever the names of the others are.

use std::borrow::Cow;
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
    pub published: &'a PublishedParts<'a>,
}

impl PresentState<'_> {
    /// Returns the state of a workload that runs nothing and whose pipelines refer to no Secret.
    #[must_use]
    pub fn none() -> Self {
        static VALUES: SecretValues = SecretValues::new();
        static PUBLISHED: PublishedParts<'static> = PublishedParts(BTreeMap::new());
        Self {
            values: &VALUES,
            published: &PUBLISHED,
        }
    }
}

/// Parts of the published configuration, with the values that their Secrets had then.
#[derive(Clone, Debug, Default)]
pub struct PublishedParts<'a>(BTreeMap<&'a PipelineKey, Cow<'a, PipelinePart>>);

impl<'a> PublishedParts<'a> {
    /// Returns the parts with these values.
    #[must_use]
    pub fn new(parts: &'a BTreeMap<PipelineKey, PipelinePart>, values: &SecretValues) -> Self {
        let parts = parts.values();
        Self(
            parts
                .map(|part| (&part.pipeline, part.resolved(values)))
                .collect(),
        )
    }

    pub(crate) fn get(&self, pipeline: &PipelineKey) -> Option<&PipelinePart> {
        self.0.get(pipeline).map(Cow::as_ref)
    }

    /// Checks whether a part is published, with these values of its Secrets.
    pub(crate) fn has(&self, resolved: &PipelinePart, options: &AssemblyOptions) -> bool {
        self.get(&resolved.pipeline).is_some_and(|published| {
            let published = published.named_like(resolved, options.component_names);
            published.has_components_of(resolved)
        })
    }
}

/// Names, addresses and sockets that only one part of a configuration can have.
#[derive(Clone, Default)]
pub(crate) struct Claims {
    pub(crate) names: BTreeSet<String>,
    pub(crate) addresses: Vec<ClaimedAddress>,
    /// Paths of Unix sockets.
    pub(crate) sockets: BTreeSet<String>,
}

/// Address that a component listens on.
#[derive(Clone)]
pub(crate) struct ClaimedAddress {
    /// Address as it is shown.
    pub(crate) text: String,
    pub(crate) endpoint: ListenEndpoint,
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
            let addresses = listen_address::of(&component).into_iter();
            claims
                .addresses
                .extend(addresses.map(|address| ClaimedAddress {
                    text: address.to_string(),
                    endpoint: ListenEndpoint::new(address.protocol, &address.endpoint, is_source),
                }));
        }
        claims
    }

    fn are_among(&self, others: &Self) -> bool {
        let has = |claimed: &ClaimedAddress| {
            let mut held = others.addresses.iter();
            held.any(|other| claimed.endpoint == other.endpoint)
        };
        self.names.is_subset(&others.names)
            && self.sockets.is_subset(&others.sockets)
            && self.addresses.iter().all(has)
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

/// Part and what it claims.
pub(crate) struct Claimant<'a> {
    pub(crate) part: &'a PipelinePart,
    pub(crate) claims: Claims,
    rank: Rank,
}

impl<'a> Claimant<'a> {
    fn new(part: &'a PipelinePart, options: &AssemblyOptions, present: PresentState<'_>) -> Self {
        let claims = Claims::by(&part.resolved(present.values));
        let rank = match present.published.get(&part.pipeline) {
            None => Rank::New,
            // It may have been rendered with other names.
            Some(before) => {
                let before = before.named_like(part, options.component_names);
                if claims.are_among(&Claims::by(&before)) {
                    Rank::Unchanged
                } else {
                    Rank::Changed
                }
            }
        };
        Self { part, claims, rank }
    }
}

/// Returns parts in the order in which they get what they claim. Those of the same rank have the order of their pipelines.
pub(crate) fn in_order<'a>(
    options: &AssemblyOptions,
    parts: impl IntoIterator<Item = &'a PipelinePart>,
    present: PresentState<'_>,
) -> Vec<Claimant<'a>> {
    let parts = parts.into_iter();
    let mut claimants: Vec<_> = parts
        .map(|part| Claimant::new(part, options, present))
        .collect();
    claimants.sort_by(|one, other| {
        (one.rank, &one.part.pipeline).cmp(&(other.rank, &other.part.pipeline))
    });
    claimants
}

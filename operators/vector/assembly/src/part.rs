//! Part of a configuration: what one pipeline contributes to it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lockstep_vector_api::ComponentNames;
use lockstep_vector_config::{Component, ComponentKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::canonical;
use crate::inputs;
use crate::names::FinalNames;
use crate::pipeline::PipelineKey;
use crate::secrets::{self, SecretReference, SecretValues};
use crate::services::PipelineService;

/// Components by name.
pub type Components = BTreeMap<String, Value>;

/// Contribution of one pipeline to the configuration of a workload. It depends on no other pipeline, and can be stored,
/// so that the pipeline runs on as it last ran while a change of it is invalid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PipelinePart {
    /// Pipeline.
    pub pipeline: PipelineKey,
    /// `metadata.uid` of the pipeline. Empty in what an earlier version has stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// `metadata.generation` of the pipeline.
    pub generation: i64,
    /// Text in front of the names of components.
    pub prefix: String,
    /// Sources by their final names.
    pub sources: Components,
    /// Transforms by their final names.
    pub transforms: Components,
    /// Sinks by their final names.
    pub sinks: Components,
    /// Secrets to which the components refer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretReference>,
    /// Ports on which an aggregator serves the pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<PipelineService>,
    /// If true, the pipeline keeps sources of its own, so that no other pipeline can slow them down.
    #[serde(default)]
    pub keeps_own_sources: bool,
    /// Sources that are part of a source which several pipelines share, with the name of that source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub merged_sources: BTreeMap<String, String>,
}

impl PipelinePart {
    /// Returns the components of a kind.
    #[must_use]
    pub fn components(&self, kind: ComponentKind) -> &Components {
        match kind {
            ComponentKind::Source => &self.sources,
            ComponentKind::Transform => &self.transforms,
            ComponentKind::Sink => &self.sinks,
        }
    }

    /// Returns all components.
    pub fn all_components(&self) -> impl Iterator<Item = Component<'_>> {
        let kinds = ComponentKind::ALL.into_iter();
        kinds.flat_map(|family| {
            let components = self.components(family).iter();
            components.map(move |(id, value)| Component {
                block: family.block(),
                family,
                id,
                value,
            })
        })
    }

    /// Returns the final names of all components.
    pub fn component_ids(&self) -> impl Iterator<Item = &str> {
        let kinds = ComponentKind::ALL.into_iter();
        kinds.flat_map(|kind| self.components(kind).keys().map(String::as_str))
    }

    /// Returns the port on which the pipeline receives Kubernetes Events.
    #[must_use]
    pub fn event_port(&self) -> Option<u16> {
        let ports = self.service.iter().flat_map(|service| &service.ports);
        let mut ports = ports.filter(|port| port.is_for_events);
        ports.next().map(|port| port.port)
    }

    /// Returns the format of the names of the components. None if they have no prefix.
    pub(crate) fn component_names(&self) -> Option<ComponentNames> {
        let all = [ComponentNames::Underscores, ComponentNames::Dashes];
        let formats = all.into_iter();
        let mut formats = formats.filter(|names| {
            let prefix = FinalNames::of(*names, &self.pipeline, false);
            !self.prefix.is_empty() && prefix.is_ok_and(|it| it.prefix() == self.prefix)
        });
        formats.next()
    }

    /// Returns the part with the names of another format.
    pub(crate) fn with_names(&self, names: ComponentNames) -> Self {
        let mut renamed = self.clone();
        renamed.merged_sources.clear();
        let names = FinalNames::of(names, &self.pipeline, false);
        let Some(names) = names
            .ok()
            .filter(|it| !self.prefix.is_empty() && it.prefix() != self.prefix)
        else {
            return renamed;
        };
        let own = |id: &str| id.strip_prefix(&self.prefix).map(|id| names.of_output(id));
        let rename = |components: &mut Components| {
            let all = std::mem::take(components).into_iter();
            *components = all
                .map(|(id, mut component)| {
                    inputs::rename(&mut component, &own);
                    (own(&id).unwrap_or(id), component)
                })
                .collect();
        };
        rename(&mut renamed.sources);
        rename(&mut renamed.transforms);
        rename(&mut renamed.sinks);
        names.prefix().clone_into(&mut renamed.prefix);
        renamed
    }

    /// Returns the part with the values of Secrets in place of the references to them.
    pub(crate) fn resolved(&self, values: &SecretValues) -> Cow<'_, Self> {
        if self.secrets.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut resolved = self.clone();
        for components in [
            &mut resolved.sources,
            &mut resolved.transforms,
            &mut resolved.sinks,
        ] {
            for component in components.values_mut() {
                secrets::resolve_in(component, values);
            }
        }
        Cow::Owned(resolved)
    }

    /// Returns the part with these names, which another part of its pipeline has: it may have been rendered with others.
    pub(crate) fn named_like(&self, other: &Self, names: ComponentNames) -> Cow<'_, Self> {
        if self.prefix == other.prefix {
            Cow::Borrowed(self)
        } else {
            Cow::Owned(self.with_names(names))
        }
    }

    /// Returns a message with the names that the author of the pipeline gave its components.
    #[must_use]
    pub fn with_own_names(&self, message: &str) -> String {
        match self.prefix.as_str() {
            "" => message.to_owned(),
            prefix => message.replace(prefix, ""),
        }
    }

    /// Checks whether another part has the same components.
    pub(crate) fn has_components_of(&self, other: &Self) -> bool {
        let mut kinds = ComponentKind::ALL.into_iter();
        kinds.all(|kind| self.components(kind) == other.components(kind))
    }

    /// Returns a fingerprint of the part.
    #[must_use]
    pub fn hash(&self) -> String {
        let part = serde_json::to_value(self).expect("a part is JSON");
        canonical::hash(&part)
    }

    /// Returns true if the pipeline has no components.
    pub(crate) fn is_empty(&self) -> bool {
        self.component_ids().next().is_none()
    }

    /// Returns the part as a configuration of its own.
    #[must_use]
    pub fn configuration(&self) -> Map<String, Value> {
        let kinds = ComponentKind::ALL.into_iter();
        let blocks = kinds.map(|kind| {
            let components = self.components(kind).clone();
            let block: Map<String, Value> = components.into_iter().collect();
            (kind.block().to_owned(), block.into())
        });
        blocks.collect()
    }
}

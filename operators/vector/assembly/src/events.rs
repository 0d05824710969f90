//! Kubernetes Events: each pipeline of an aggregator that receives them has a port of its own, to which the event
//! collector sends the events of its namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

use fnv::FnvHasher;
use lockstep_vector_config::KUBERNETES_EVENTS;
use serde_json::{Map, Value, json};

use crate::pipeline::PipelineKey;

/// First port for events.
const FIRST: u16 = 42_000;

/// Number of ports for events.
const COUNT: u16 = 7_000;

/// Pipeline that receives Kubernetes Events.
pub(crate) struct EventReceiver {
    pub(crate) pipeline: PipelineKey,
    /// Port that it has already.
    pub(crate) held: Option<u16>,
}

/// Returns the port of each pipeline.
///
/// A pipeline keeps the port that it has. The port of another one follows from its name, so that it rarely depends on
/// other pipelines: only if another one has the port, the next free port is used.
pub(crate) fn assign(
    receivers: &[EventReceiver],
    mut taken: BTreeSet<u16>,
) -> BTreeMap<PipelineKey, u16> {
    let mut ports = BTreeMap::new();
    let mut receivers: Vec<_> = receivers.iter().collect();
    receivers.sort_by_key(|receiver| (receiver.held.is_none(), &receiver.pipeline));
    for EventReceiver { pipeline, held } in receivers {
        let held =
            held.filter(|port| range().contains(port) && !ports.values().any(|it| it == port));
        let port = held.or_else(|| {
            let preferred = preferred(pipeline);
            let mut from = range().cycle().skip(usize::from(preferred - FIRST));
            let mut candidates = from.by_ref().take(usize::from(COUNT));
            candidates.find(|port| !taken.contains(port))
        });
        if let Some(port) = port {
            taken.insert(port);
            ports.insert(pipeline.clone(), port);
        }
    }
    ports
}

fn range() -> std::ops::Range<u16> {
    FIRST..FIRST + COUNT
}

fn preferred(pipeline: &PipelineKey) -> u16 {
    let mut hasher = FnvHasher::default();
    hasher.write(pipeline.to_string().as_bytes());
    let index = hasher.finish() % u64::from(COUNT);
    FIRST + u16::try_from(index).expect("the remainder is below the number of ports")
}

/// Returns the names of the sources that receive Kubernetes Events.
pub(crate) fn sources(sources: Option<&Map<String, Value>>) -> Vec<&str> {
    let sources = sources.into_iter().flatten();
    let own = sources.filter(|(_, source)| source["type"] == KUBERNETES_EVENTS);
    own.map(|(id, _)| id.as_str()).collect()
}

/// Returns the source of Vector that receives events from the collector.
pub(crate) fn source(port: u16) -> Value {
    json!({"type": "vector", "address": format!("0.0.0.0:{port}")})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(name: &str, held: Option<u16>) -> EventReceiver {
        let pipeline = PipelineKey {
            namespace: Some("a".to_owned()),
            name: name.to_owned(),
        };
        EventReceiver { pipeline, held }
    }

    #[test]
    fn a_port_follows_from_the_name_and_stays_when_others_come() {
        let alone = assign(&[receiver("p", None)], BTreeSet::new());
        let names = (0..200).map(|index| receiver(&format!("o{index}"), None));
        let key = receiver("p", None).pipeline;
        let held = alone[&key];
        let mut all: Vec<_> = names.collect();
        all.push(receiver("p", Some(held)));
        let together = assign(&all, BTreeSet::new());
        assert_eq!(together[&key], held);
        let distinct: BTreeSet<_> = together.values().collect();
        assert_eq!(distinct.len(), 201);
        assert!(
            distinct.iter().all(|port| range().contains(port)),
            "{distinct:?}"
        );
        all.reverse();
        assert_eq!(assign(&all, BTreeSet::new()), together);
    }

    #[test]
    fn a_pipeline_keeps_its_port_even_if_the_port_follows_from_the_name_of_another() {
        let new = receiver("a", None);
        let port = assign(std::slice::from_ref(&new), BTreeSet::new())[&new.pipeline];
        let ports = assign(&[new, receiver("b", Some(port))], BTreeSet::new());
        assert_eq!(ports[&receiver("b", None).pipeline], port);
        assert_ne!(ports[&receiver("a", None).pipeline], port);
    }

    #[test]
    fn a_port_that_another_source_listens_on_is_not_assigned() {
        let key = receiver("p", None).pipeline;
        let port = assign(&[receiver("p", None)], BTreeSet::new())[&key];
        let next = assign(&[receiver("p", None)], BTreeSet::from([port]))[&key];
        assert_eq!(
            next,
            if port == FIRST + COUNT - 1 {
                FIRST
            } else {
                port + 1
            }
        );
        let all = range().collect();
        assert_eq!(assign(&[receiver("p", None)], all), BTreeMap::new());
    }

    #[test]
    fn of_two_pipelines_with_the_same_port_one_gets_another() {
        let all = [receiver("a", Some(42_100)), receiver("b", Some(42_100))];
        let ports = assign(&all, BTreeSet::new());
        assert_eq!(ports[&all[0].pipeline], 42_100);
        assert_ne!(ports[&all[1].pipeline], 42_100);
    }
}

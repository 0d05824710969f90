//! Distribution of what the pipelines of a workload share: what a namespace may take of it, and what all of them may.
//!
//! A pipeline that runs keeps what it has, and may change as long as it does not take more. Of the others, the first ones get
//! what is left.

mod accounts;
mod demand;
mod record;

use std::collections::BTreeMap;

use lockstep_vector_api::WorkloadLimits;
use lockstep_vector_api::quota::Quota;
use lockstep_vector_assembly::{PipelineKey, PipelinePart, SecretValues};
use serde_json::Value;

use crate::owned::MAX_SECRET_BYTES;
use crate::run::assemble::quotas::accounts::{Account, Accounts};
use crate::run::assemble::quotas::demand::{Demand, NOTHING, RESOURCES};
use crate::run::assemble::quotas::record::Record;
use crate::run::collect::published::Published;

/// Maxima of all namespaces and of the workload.
pub(crate) struct Quotas<'a> {
    /// Section of the policy.
    settings: Option<&'a Value>,
    workload: [Option<u64>; RESOURCES.len()],
}

impl<'a> Quotas<'a> {
    pub(crate) fn read(settings: Option<&'a Value>) -> Self {
        let WorkloadLimits {
            disk_bytes,
            configuration_bytes,
        } = WorkloadLimits::read(settings);
        // The values of all pipelines are in one Secret.
        let secret_bytes = u64::try_from(MAX_SECRET_BYTES).ok();
        Self {
            settings,
            workload: [
                None,
                None,
                Some(configuration_bytes),
                secret_bytes,
                None,
                Some(disk_bytes),
                None,
            ],
        }
    }

    /// Returns the pipelines that take more than what is left, and why they wait.
    pub(crate) fn exceeding(
        &self,
        parts: &[PipelinePart],
        values: &SecretValues,
        published: &Published,
    ) -> BTreeMap<PipelineKey, String> {
        if published.is_unknown {
            // Any of the pipelines may run, and goes on running.
            return BTreeMap::new();
        }
        let demands = parts.iter();
        let mut demands: Vec<_> = demands
            .map(|part| Demand::new(part, values, published))
            .collect();
        demands.sort_by_key(|demand| (demand.published.is_none(), &demand.part.pipeline));
        let mut accounts = Accounts::new(
            self.workload,
            |namespace| self.account_of(namespace),
            &demands,
        );
        let mut record = Record::default();
        let mut result = BTreeMap::new();
        for demand in &demands {
            let pipeline = &demand.part.pipeline;
            let why = accounts.refusal(demand);
            match why.or_else(|| record.refusal(demand)) {
                Some(why) => {
                    // It may run as it last ran.
                    demand
                        .published
                        .into_iter()
                        .for_each(|part| record.add(part));
                    result.insert(pipeline.clone(), why);
                }
                None => accounts.grant(demand),
            }
        }
        result
    }

    /// Returns a sentence for each account in which pipelines take more than the maximum. The values of Secrets do not count.
    pub(crate) fn exceeded(&self, parts: &[PipelinePart]) -> Vec<String> {
        let nothing = Published {
            parts: BTreeMap::new(),
            values: SecretValues::new(),
            is_unknown: false,
        };
        let demands = parts.iter();
        let demands = demands.map(|part| Demand::new(part, &nothing.values, &nothing));
        let demands: Vec<_> = demands.collect();
        let mut accounts = Accounts::new(
            self.workload,
            |namespace| self.account_of(namespace),
            &demands,
        );
        for demand in &demands {
            accounts.grant(demand);
        }
        let all = [&accounts.workload].into_iter();
        let all = all.chain(accounts.namespaces.values());
        all.flat_map(Account::exceeded).collect()
    }

    fn account_of(&self, namespace: &str) -> Account {
        let Quota {
            pipelines,
            components,
            configuration_bytes,
            secret_bytes,
            memory_bytes,
            disk_bytes,
            connections,
        } = Quota::read(self.settings, namespace);
        Account {
            total: NOTHING,
            maxima: [
                pipelines,
                components,
                configuration_bytes,
                secret_bytes,
                memory_bytes,
                disk_bytes,
                connections,
            ],
            whose: format!("the pipelines of the namespace `{namespace}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::WorkloadRole;
    use lockstep_vector_assembly::{AssemblyOptions, RunnablePipeline, last_file_of, render};
    use serde_json::json;

    use super::*;
    use crate::run::assemble::quotas::demand::amounts;

    /// Returns a part with this sink option in a namespace.
    fn part(namespace: &str, name: &str, option: &str, value: Value) -> PipelinePart {
        let mut sink = json!({
            "type": "datadog_logs", "inputs": ["in"], "default_api_key": "SECRET[s.key]",
        });
        sink[option] = value;
        let pipeline = RunnablePipeline {
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
            spec: json!({
                "secret": {"s": {"type": "kubernetes_secret", "name": name}},
                "sources": {"in": {"type": "kubernetes_logs"}},
                "sinks": {"out": sink},
            }),
            ..RunnablePipeline::default()
        };
        let part = render(&AssemblyOptions::new(WorkloadRole::Agent), &pipeline, None);
        part.expect("a part")
    }

    fn published(parts: &[PipelinePart], values: SecretValues) -> Published {
        let parts = parts.iter();
        Published {
            parts: parts
                .map(|part| (part.pipeline.clone(), part.clone()))
                .collect(),
            values,
            is_unknown: false,
        }
    }

    /// Returns the names of the pipelines that wait. `sizes` are the sizes of their values, in units of a quarter.
    fn too_large(before: &[(&str, usize)], sizes: &[(&str, usize)]) -> Vec<String> {
        let part = |name: &str| part(&format!("n-{name}"), name, "x", 1.into());
        let values = |sizes: &[(&str, usize)]| -> SecretValues {
            let values = sizes.iter().map(|(name, quarters)| {
                let value = vec![b'x'; quarters * MAX_SECRET_BYTES / 4];
                (part(name).secrets[0].file_name.clone(), value)
            });
            values.collect()
        };
        let running: Vec<_> = before.iter().map(|(name, _)| part(name)).collect();
        let parts: Vec<_> = sizes.iter().map(|(name, _)| part(name)).collect();
        let settings = json!({"quota": {"secretBytes": u64::MAX}});
        let quotas = Quotas::read(Some(&settings));
        let published = published(&running, values(before));
        let found = quotas.exceeding(&parts, &values(sizes), &published);
        found.into_keys().map(|key| key.name).collect()
    }

    #[test]
    fn running_pipelines_keep_their_size_and_others_get_what_is_left() {
        let none = Vec::<String>::new();
        assert_eq!(too_large(&[], &[("a", 2), ("b", 2)]), none);
        assert_eq!(too_large(&[], &[("a", 3), ("b", 2), ("c", 1)]), ["b"]);
        assert_eq!(too_large(&[("b", 2)], &[("a", 3), ("b", 2)]), ["a"]);
        // A running pipeline must not grow at the expense of another one, and what shrinks is free once that is published.
        assert_eq!(
            too_large(&[("a", 2), ("b", 2)], &[("a", 3), ("b", 2)]),
            ["a"]
        );
        let shrinks = [("a", 1), ("b", 3)];
        assert_eq!(too_large(&[("a", 3), ("b", 1)], &shrinks), ["b"]);
        assert_eq!(too_large(&[("a", 1), ("b", 1)], &shrinks), none);
        assert_eq!(too_large(&[], &[("a", 5), ("b", 1)]), ["a"]);
    }

    /// Returns the pipelines that wait, and whether what runs already counts.
    fn waiting(settings: &Value, parts: &[PipelinePart], running: &[PipelinePart]) -> Vec<String> {
        let published = published(running, SecretValues::new());
        let quotas = Quotas::read(Some(settings));
        let found = quotas.exceeding(parts, &SecretValues::new(), &published);
        let shown = found.into_iter().map(|(key, why)| format!("{key}: {why}"));
        shown.collect()
    }

    #[test]
    fn each_resource_of_a_namespace_has_a_maximum_and_others_are_not_affected() {
        let disk = |bytes: u64| json!({"type": "disk", "max_size": bytes});
        let memory = |events: u64| json!({"max_events": events});
        let size = 1 << 18;
        for (name, option, value, unit) in [
            ("pipelines", "x", json!(1), "pipelines"),
            ("components", "x", json!(1), "components"),
            (
                "configurationBytes",
                "x",
                json!("x".repeat(size)),
                "bytes of configuration",
            ),
            ("memoryBytes", "buffer", memory(1000), "bytes of memory"),
            ("diskBytes", "buffer", disk(1 << 30), "bytes of disk"),
            (
                "connections",
                "request",
                json!({"concurrency": 100}),
                "connections",
            ),
        ] {
            let parts: Vec<_> = ["a/p", "a/q", "b/p"]
                .into_iter()
                .map(|key| {
                    let (namespace, pipeline) = key.split_once('/').expect("a key");
                    part(namespace, pipeline, option, value.clone())
                })
                .collect();
            let usage = amounts(&parts[0], &SecretValues::new());
            let at = RESOURCES
                .iter()
                .position(|resource| *resource == unit)
                .expect("a resource");
            let settings =
                json!({"quota": {name: usage[at] * 3 / 2, "configurationBytes": u64::MAX}});
            let settings = if name == "configurationBytes" {
                json!({"quota": {name: usage[at] * 3 / 2}})
            } else {
                settings
            };
            let found = waiting(&settings, &parts, &[]);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert!(found[0].starts_with("a/q: "), "{found:?}");
            assert!(found[0].contains(unit), "{found:?}");
            assert!(found[0].contains("namespace `a`"), "{found:?}");
            // Who was there first keeps running, and may change.
            let found = waiting(&settings, &parts, &parts[1..2]);
            assert!(found[0].starts_with("a/p: "), "{name}: {found:?}");
            // What ran before there was a quota runs on.
            assert_eq!(waiting(&settings, &parts, &parts), [""; 0], "{name}");
            let own = json!({"namespaces": {"a": {"quota": {name: u64::MAX}}}});
            let mut settings = settings;
            settings["namespaces"] = own["namespaces"].clone();
            assert_eq!(waiting(&settings, &parts, &[]), [""; 0], "{name}");
            let of_kaasops = json!({"preset": "kaasops"});
            assert_eq!(waiting(&of_kaasops, &parts, &[]), [""; 0], "{name}");
        }
    }

    /// Returns text that hardly becomes smaller by compression.
    fn random(bytes: usize) -> Value {
        let mut state = 1_u64;
        let text = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(b'!' + u8::try_from(state % 90).expect("a letter"))
        });
        text.take(bytes).collect::<String>().into()
    }

    #[test]
    fn the_configuration_of_all_namespaces_fits_into_what_stores_it() {
        let parts: Vec<_> = (10..14)
            .map(|number| part(&format!("n{number}"), "p", "x", random(200 << 10)))
            .collect();
        let found = waiting(&json!({}), &parts, &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("after compression"), "{found:?}");
        assert_eq!(waiting(&json!({}), &parts, &parts), [""; 0]);
        let newest = waiting(&json!({}), &parts, &parts[1..]);
        assert!(newest[0].starts_with("n10/p: "), "{newest:?}");
        // Two pipelines whose components are in one file of at most 1 MiB.
        let first = part("n0", "p", "x", "x".repeat(600 << 10).into());
        let same = (1..10_000)
            .map(|number| format!("n{number}"))
            .find(|namespace| {
                let key = PipelineKey {
                    namespace: Some(namespace.clone()),
                    name: "p".to_owned(),
                };
                last_file_of(&key) == last_file_of(&first.pipeline)
            });
        let second = part(
            &same.expect("a namespace"),
            "p",
            "x",
            "x".repeat(600 << 10).into(),
        );
        let found = waiting(&json!({}), &[first, second], &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("share a Secret"), "{found:?}");
    }

    #[test]
    fn the_disk_buffers_of_all_namespaces_fit_on_the_disk() {
        let disk = json!({"type": "disk", "max_size": 1_u64 << 30});
        let parts: Vec<_> = (10..50)
            .map(|number| part(&format!("n{number}"), "p", "buffer", disk.clone()))
            .collect();
        let found = waiting(&json!({}), &parts, &[]);
        assert_eq!(found.len(), 8);
        assert!(found[0].starts_with("n42/p: "), "{found:?}");
        assert!(
            found[0].contains("all pipelines of a workload"),
            "{found:?}"
        );
        // They ran already.
        assert_eq!(waiting(&json!({}), &parts, &parts), [""; 0]);
        let taken_over = Published {
            is_unknown: true,
            ..Published::default()
        };
        let quotas = Quotas::read(None);
        let found = quotas.exceeding(&parts, &SecretValues::new(), &taken_over);
        assert_eq!(found, BTreeMap::new());
    }
}

//! Publication: configuration → files that Vector reads from one folder (`--config-dir`).
//!
//! Vector merges all files of the folder; names of components in two files would be an error. A Secret has at most
//! 1 MiB, so that a large configuration is stored in several, which cannot be updated together. Therefore all
//! components of a pipeline are in one file, and they stay in this file when other pipelines come and go, unless the
//! number of files changes.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

use fnv::FnvHasher;
use lockstep_vector_config::ComponentKind;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::assembly::Assembly;
use crate::canonical::bytes;
use crate::pipeline::PipelineKey;

/// Maximum number of files.
const MAX_FILES: usize = 64;

/// Content of files by name, such as `agent.json`, and `agent-1.json` for a further one.
pub type PublishedFiles = BTreeMap<String, Vec<u8>>;

/// Limits of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicationLimits<'a> {
    /// Maximum size of a file.
    pub max_file_bytes: usize,
    /// Numbers of the files that the Pods read now. They remain: each change of their number replaces the Pods.
    pub present: &'a BTreeSet<usize>,
}

/// Reason why a configuration cannot be stored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the configuration has {bytes} bytes, which do not fit into {MAX_FILES} files of {max_file_bytes} bytes; run some of the pipelines by another workload"
)]
pub struct TooLarge {
    /// Size of the configuration.
    pub bytes: usize,
    /// Maximum size of a file.
    pub max_file_bytes: usize,
}

/// Returns the files of a configuration. The first one has the global options; `stem` is the beginning of their names.
///
/// # Errors
///
/// If the files would be too many or too large.
pub fn publish(
    assembly: &Assembly,
    stem: &str,
    limits: PublicationLimits<'_>,
) -> Result<PublishedFiles, TooLarge> {
    let owners = owners(assembly);
    let present = limits.present.iter().filter(|number| **number < MAX_FILES);
    let present: BTreeSet<usize> = present.copied().collect();
    let last = present.last().copied().unwrap_or_default();
    let mut number = (last + 1).next_power_of_two();
    while number <= MAX_FILES {
        let configs = split(assembly, &owners, number);
        let is_needed = |index: &usize| *index == 0 || !configs[*index].is_empty();
        let fits = |index: usize| present.is_empty() || present.contains(&index);
        // If the Pods have to be replaced, they get all files, so that none comes to them later.
        let is_complete = number > 1 && !(0..number).filter(is_needed).all(fits);
        let files = configs.iter().enumerate();
        let files =
            files.filter(|(index, _)| is_complete || is_needed(index) || present.contains(index));
        let files = files.map(|(index, config)| {
            let name = match index {
                0 => format!("{stem}.json"),
                _ => format!("{stem}-{index}.json"),
            };
            (name, bytes(&config.clone().into()))
        });
        let files: PublishedFiles = files.collect();
        if files
            .values()
            .all(|content| content.len() <= limits.max_file_bytes)
        {
            return Ok(files);
        }
        // With twice as many files, each is divided into two.
        number *= 2;
    }
    Err(TooLarge {
        bytes: assembly.to_bytes().len(),
        max_file_bytes: limits.max_file_bytes,
    })
}

/// Returns the pipelines of components, by name.
fn owners(assembly: &Assembly) -> BTreeMap<&str, &PipelineKey> {
    let parts = assembly.parts.iter();
    let owners = parts.flat_map(|part| part.component_ids().map(move |id| (id, &part.pipeline)));
    owners.collect()
}

/// Divides a configuration. What belongs to no pipeline is in the first part.
fn split(
    assembly: &Assembly,
    owners: &BTreeMap<&str, &PipelineKey>,
    number: usize,
) -> Vec<Map<String, Value>> {
    let mut files = vec![Map::new(); number];
    for (name, value) in assembly.config.as_object().into_iter().flatten() {
        let is_block = ComponentKind::ALL.iter().any(|kind| kind.block() == name);
        let components = value.as_object().filter(|_| is_block);
        let Some(components) = components else {
            files[0].insert(name.clone(), value.clone());
            continue;
        };
        files[0].insert(name.clone(), Map::new().into());
        for (id, component) in components {
            let file = owners
                .get(id.as_str())
                .map_or(0, |owner| file_of(owner, number));
            let block = files[file]
                .entry(name.clone())
                .or_insert_with(|| Map::new().into());
            block[id.as_str()] = component.clone();
        }
    }
    files
}

/// Returns the number of the file of a pipeline among as many files as there can be. Its components are in one of them.
#[must_use]
pub fn last_file_of(pipeline: &PipelineKey) -> usize {
    file_of(pipeline, MAX_FILES)
}

/// Returns the file of a pipeline: among twice as many files, it is the same or a new one.
fn file_of(pipeline: &PipelineKey, number: usize) -> usize {
    let mut hasher = FnvHasher::default();
    hasher.write(pipeline.to_string().as_bytes());
    let number = u64::try_from(number).expect("the number of files is small");
    usize::try_from(hasher.finish() % number).expect("the remainder is small")
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::WorkloadRole;
    use serde_json::json;

    use super::*;
    use crate::assembly::assemble;
    use crate::options::{AssemblyOptions, InternalMetrics};
    use crate::pipeline::RunnablePipeline;

    fn assembly(number: usize) -> Assembly {
        let pipelines = (0..number).map(|index| RunnablePipeline {
            namespace: Some(format!("n{index}")),
            name: "p".to_owned(),
            spec: json!({
                "sources": {"in": {"type": "kubernetes_logs"}},
                "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
            }),
            ..RunnablePipeline::default()
        });
        let options = AssemblyOptions {
            internal_metrics: Some(InternalMetrics::ReplacedByAll),
            ..AssemblyOptions::new(WorkloadRole::Agent)
        };
        assemble(&options, &pipelines.collect::<Vec<_>>())
    }

    /// Merges files as Vector does, which rejects a component that is in two of them.
    fn merged(files: &PublishedFiles) -> Value {
        let mut config = Map::new();
        for content in files.values() {
            let file: Map<String, Value> = serde_json::from_slice(content).expect("JSON");
            for (name, value) in file {
                match (config.get_mut(&name), value) {
                    (Some(Value::Object(block)), Value::Object(components)) => {
                        for (id, component) in components {
                            assert!(block.insert(id, component).is_none());
                        }
                    }
                    (None, value) => drop(config.insert(name, value)),
                    (Some(_), value) => panic!("{name} is in two files: {value}"),
                }
            }
        }
        config.into()
    }

    /// Returns the files while the Pods read those with these numbers.
    fn files(number: usize, max_file_bytes: usize, present: &[usize]) -> PublishedFiles {
        let limits = PublicationLimits {
            max_file_bytes,
            present: &present.iter().copied().collect(),
        };
        publish(&assembly(number), "agent", limits).expect("files")
    }

    #[test]
    fn a_small_configuration_is_one_file() {
        let expected = [("agent.json".to_owned(), assembly(3).to_bytes())];
        assert_eq!(files(3, usize::MAX, &[]), BTreeMap::from(expected));
        assert_eq!(files(3, usize::MAX, &[0]), files(3, usize::MAX, &[]));
    }

    #[test]
    fn the_files_of_a_large_configuration_are_small_enough_and_merge_to_it() {
        let max_file_bytes = 6_000;
        let files = files(200, max_file_bytes, &[0]);
        assert!(files.len() > 4, "{}", files.len());
        assert!(files.contains_key("agent.json"));
        assert!(files.contains_key("agent-1.json"));
        assert!(
            files
                .values()
                .all(|content| content.len() <= max_file_bytes)
        );
        assert_eq!(merged(&files), assembly(200).config);
    }

    #[test]
    fn the_number_of_files_does_not_change_with_each_pipeline() {
        let many = files(200, 6_000, &[0]);
        let present: Vec<_> = (0..many.len()).collect();
        for number in [0, 1, 100, 199] {
            let fewer = files(number, 6_000, &present);
            assert_eq!(fewer.len(), many.len(), "{number}");
            assert_eq!(merged(&fewer), assembly(number).config);
        }
        // An earlier version has left out those without components.
        let few = files(3, 6_000, &[0, 5, 6]);
        let names: Vec<_> = few.keys().collect();
        assert!(few.len() == 3 || few.len() == 8, "{names:?}");
        assert_eq!(files(0, 6_000, &[0, 5, 6]).len(), 3);
    }

    #[test]
    fn pipelines_stay_in_their_files_when_others_come() {
        let files = |number| files(number, 10_000, &[]);
        let (before, after) = (files(150), files(151));
        assert_eq!(before.len(), after.len());
        let is_same = |(name, content): &(&String, &Vec<u8>)| after[*name] == **content;
        assert_eq!(before.iter().filter(is_same).count(), before.len() - 1);
    }

    #[test]
    fn a_pipeline_that_is_larger_than_a_file_is_an_error() {
        let limits = PublicationLimits {
            max_file_bytes: 200,
            present: &BTreeSet::new(),
        };
        let error = publish(&assembly(2), "agent", limits).expect_err("an error");
        assert_eq!(error.max_file_bytes, 200);
    }
}

//! Publication: configuration → files that Vector reads from one folder (`--config-dir`).
//!
//! Vector merges all files of the folder; names of components in two files would be an error. A Secret has at most
//! 1 MiB, so that a large configuration is stored in several, which cannot be updated together. Therefore all
//! components of a pipeline are in one file, and they stay in this file when other pipelines come and go, unless the
//! number of files changes.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use fnv::FnvHasher;
use lockstep_vector_config::ComponentKind;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::assembly::Assembly;
use crate::canonical::bytes;
use crate::pipeline::PipelineKey;

/// Maximum number of files.
const MAX_FILES: usize = 64;

/// Limits of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicationLimits {
    /// Maximum size of a file, after compression.
    pub max_file_bytes: usize,
    /// If the configuration has more bytes, all files are compressed (gzip). None: they never are.
    pub compress_above: Option<usize>,
}

/// File of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedFile {
    /// Name, such as `agent.json`, and `agent-1.json` for a further file. A compressed file has the same name.
    pub name: String,
    /// Content.
    pub content: Vec<u8>,
    /// If true, the content is compressed.
    pub is_compressed: bool,
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
    limits: PublicationLimits,
) -> Result<Vec<PublishedFile>, TooLarge> {
    let total = assembly.to_bytes().len();
    let is_compressed = limits.compress_above.is_some_and(|above| total > above);
    let owners = owners(assembly);
    let mut number = 1;
    while number <= MAX_FILES {
        let configs = split(assembly, &owners, number).into_iter().enumerate();
        let used = configs.filter(|(index, config)| *index == 0 || !config.is_empty());
        let files = used.map(|(index, config)| {
            let content = bytes(&config.into());
            let content = if is_compressed {
                compress(&content)
            } else {
                content
            };
            let name = match index {
                0 => format!("{stem}.json"),
                _ => format!("{stem}-{index}.json"),
            };
            PublishedFile {
                name,
                content,
                is_compressed,
            }
        });
        let files: Vec<_> = files.collect();
        let mut sizes = files.iter().map(|file| file.content.len());
        if sizes.all(|bytes| bytes <= limits.max_file_bytes) {
            return Ok(files);
        }
        // With twice as many files, each is divided into two.
        number *= 2;
    }
    Err(TooLarge {
        bytes: total,
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

/// Returns the file of a pipeline: among twice as many files, it is the same or a new one.
fn file_of(pipeline: &PipelineKey, number: usize) -> usize {
    let mut hasher = FnvHasher::default();
    hasher.write(pipeline.to_string().as_bytes());
    let number = u64::try_from(number).expect("the number of files is small");
    usize::try_from(hasher.finish() % number).expect("the remainder is small")
}

/// Compresses a file. The result contains no time, so that the same file gives the same bytes.
fn compress(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(content).and_then(|()| encoder.finish());
    written.expect("a vector can be written")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use lockstep_vector_api::RunnerKind;
    use serde_json::json;

    use super::*;
    use crate::assembly::assemble;
    use crate::options::{AssemblyOptions, InternalMetrics};
    use crate::pipeline::RunnablePipeline;

    const UNLIMITED: PublicationLimits = PublicationLimits {
        max_file_bytes: usize::MAX,
        compress_above: None,
    };

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
            ..AssemblyOptions::new(RunnerKind::Agent)
        };
        assemble(&options, &pipelines.collect::<Vec<_>>())
    }

    /// Merges files as Vector does, which rejects a component that is in two of them.
    fn merged(files: &[PublishedFile]) -> Value {
        let mut config = Map::new();
        for file in files {
            let mut text = Vec::new();
            if file.is_compressed {
                let mut decoder = GzDecoder::new(&*file.content);
                decoder.read_to_end(&mut text).expect("it is gzip");
            } else {
                text.clone_from(&file.content);
            }
            let own: Map<String, Value> = serde_json::from_slice(&text).expect("it is JSON");
            for (name, value) in own {
                match (config.get_mut(&name).and_then(Value::as_object_mut), value) {
                    (Some(block), Value::Object(components)) => {
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

    #[test]
    fn a_small_configuration_is_one_file() {
        let assembly = assembly(3);
        let files = publish(&assembly, "agent", UNLIMITED).expect("files");
        let expected = PublishedFile {
            name: "agent.json".to_owned(),
            content: assembly.to_bytes(),
            is_compressed: false,
        };
        assert_eq!(files, [expected]);
    }

    #[test]
    fn the_files_of_a_large_configuration_are_small_enough_and_merge_to_it() {
        let assembly = assembly(200);
        let max_file_bytes = 6_000;
        let limits = PublicationLimits {
            max_file_bytes,
            ..UNLIMITED
        };
        let files = publish(&assembly, "agent", limits).expect("files");
        assert!(files.len() > 4, "{}", files.len());
        assert_eq!(files[0].name, "agent.json");
        assert_eq!(files[1].name, "agent-1.json");
        assert!(
            files
                .iter()
                .all(|file| file.content.len() <= max_file_bytes)
        );
        assert_eq!(merged(&files), assembly.config);
    }

    #[test]
    fn if_the_configuration_is_larger_than_the_limit_all_files_are_compressed() {
        let assembly = assembly(200);
        for (above, is_compressed) in [(1_000_000, false), (1_000, true)] {
            let limits = PublicationLimits {
                max_file_bytes: 1_000_000,
                compress_above: Some(above),
            };
            let files = publish(&assembly, "config", limits).expect("files");
            assert_eq!(files.len(), 1);
            assert_eq!(files[0].is_compressed, is_compressed);
            assert_eq!(files[0].name, "config.json");
            assert_eq!(merged(&files), assembly.config);
            let is_smaller = files[0].content.len() < assembly.to_bytes().len() / 5;
            assert_eq!(is_smaller, is_compressed);
            assert_eq!(publish(&assembly, "config", limits), Ok(files));
        }
    }

    #[test]
    fn pipelines_stay_in_their_files_when_others_come() {
        let limits = PublicationLimits {
            max_file_bytes: 10_000,
            ..UNLIMITED
        };
        let files = |number| publish(&assembly(number), "agent", limits).expect("files");
        let (before, after) = (files(150), files(151));
        assert_eq!(before.len(), after.len());
        let same = before.iter().filter(|file| after.contains(file)).count();
        assert_eq!(same, before.len() - 1);
    }

    #[test]
    fn a_pipeline_that_is_larger_than_a_file_is_an_error() {
        let limits = PublicationLimits {
            max_file_bytes: 200,
            ..UNLIMITED
        };
        let error = publish(&assembly(2), "agent", limits).expect_err("an error");
        assert_eq!(error.max_file_bytes, 200);
    }
}

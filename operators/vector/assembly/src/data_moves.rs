//! Names of the directories in which Vector keeps the data of components.
//!
//! Below its data directory, Vector names them after the components: a source that reads files keeps its read positions in
//! `COMPONENT/`, and a sink with a disk buffer its events in `buffer/v2/COMPONENT/`. If a component gets another name,
//! Vector does not find them: it reads all files again, and does not send the events in the buffer.
//!
//! All names of a configuration follow from its [layout](crate::DataLayout). From the same pipelines in two layouts follow the
//! directories that must be moved: [`DataMoves`].

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::assembly::Assembly;

/// Types of the sources that keep read positions.
const WITH_POSITIONS: [&str; 3] = ["file", "journald", "kubernetes_logs"];

/// Directories that must be moved before Vector starts with other names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataMoves {
    /// Directories with the read positions of sources.
    pub sources: Vec<DataMove>,
    /// Directories with the disk buffers of sinks.
    pub buffers: Vec<DataMove>,
}

/// Directory that gets another name. Several directories can become one, and one can become several.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DataMove {
    /// Present name of the component.
    pub from: String,
    /// New name.
    pub to: String,
}

impl DataMoves {
    /// Returns the moves from the directories of one configuration to those of another one with the same pipelines.
    #[must_use]
    pub fn between(before: &Assembly, after: &Assembly) -> Self {
        let (old, new) = (names(before), names(after));
        let [sources, buffers] = [Directory::Source, Directory::Buffer].map(|kind| {
            let of_kind = new.iter().filter(|((directory, ..), _)| *directory == kind);
            let moves = of_kind.filter_map(|(component, to)| {
                let from = old.get(component).filter(|from| *from != to)?;
                Some(DataMove {
                    from: from.clone(),
                    to: to.clone(),
                })
            });
            moves.collect::<BTreeSet<_>>().into_iter().collect()
        });
        Self { sources, buffers }
    }

    /// Returns true if nothing must be moved.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.buffers.is_empty()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Directory {
    Source,
    Buffer,
}

/// Component with a directory: its pipeline and its name in it.
type Component = (Directory, String, String);

/// Returns the names of the directories of a configuration.
fn names(assembly: &Assembly) -> BTreeMap<Component, String> {
    let parts = assembly.parts.iter();
    let names = parts.flat_map(|part| {
        let sources = part.sources.iter().filter(|(_, it)| has_positions(it));
        let sources = sources.map(|(id, _)| (Directory::Source, id));
        let sinks = part.sinks.iter().filter(|(_, it)| has_disk_buffer(it));
        let sinks = sinks.map(|(id, _)| (Directory::Buffer, id));
        sources.chain(sinks).map(|(directory, id)| {
            let own = id.strip_prefix(&part.prefix).unwrap_or(id);
            let component = (directory, part.pipeline.to_string(), own.to_owned());
            let name = part.merged_sources.get(id).unwrap_or(id);
            (component, name.clone())
        })
    });
    names.collect()
}

/// Returns true if a source keeps read positions in the data directory of the workload.
fn has_positions(source: &Value) -> bool {
    let type_ = source["type"].as_str().unwrap_or_default();
    // With an option of its own, it keeps them elsewhere.
    WITH_POSITIONS.contains(&type_) && source["data_dir"].is_null()
}

/// Returns true if a sink has a disk buffer.
fn has_disk_buffer(sink: &Value) -> bool {
    let is_disk = |buffer: &Value| buffer["type"] == "disk";
    match &sink["buffer"] {
        Value::Array(stages) => stages.iter().any(is_disk),
        buffer => is_disk(buffer),
    }
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::{ComponentNames, WorkloadRole};
    use serde_json::json;

    use super::*;
    use crate::assembly::assemble;
    use crate::layout::DataLayout;
    use crate::options::AssemblyOptions;
    use crate::pipeline::RunnablePipeline;

    const DASHES: DataLayout = layout(ComponentNames::Dashes, false);
    const UNDERSCORES: DataLayout = layout(ComponentNames::Underscores, false);
    const MERGED: DataLayout = layout(ComponentNames::Underscores, true);

    const fn layout(component_names: ComponentNames, merge_sources: bool) -> DataLayout {
        DataLayout {
            component_names,
            merge_sources,
        }
    }

    fn options(layout: DataLayout) -> AssemblyOptions {
        AssemblyOptions::new(WorkloadRole::Agent).in_layout(layout)
    }

    fn pipeline(namespace: Option<&str>, name: &str, sources: &Value) -> RunnablePipeline {
        let disk = json!({"type": "disk", "max_size": 268_435_488});
        RunnablePipeline {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            spec: json!({
                "sources": sources,
                "transforms": {"t": {"type": "remap", "inputs": ["*"], "source": ".a = 1"}},
                "sinks": {
                    "disk": {"type": "blackhole", "inputs": ["t"], "buffer": disk},
                    "stages": {"type": "blackhole", "inputs": ["t"], "buffer": [{"type": "memory"}, disk]},
                    "memory": {"type": "blackhole", "inputs": ["t"]},
                },
            }),
            ..RunnablePipeline::default()
        }
    }

    fn pipelines() -> Vec<RunnablePipeline> {
        let logs = json!({"in": {"type": "kubernetes_logs"}});
        let files = json!({
            "file": {"type": "file", "include": ["/a"]}, "journal": {"type": "journald"},
            "elsewhere": {"type": "file", "include": ["/a"], "data_dir": "/b"},
            "own": {"type": "internal_metrics"},
        });
        vec![
            pipeline(Some("a"), "p", &logs),
            pipeline(Some("b"), "p", &logs),
            pipeline(None, "c", &files),
        ]
    }

    fn moves(before: DataLayout, after: DataLayout) -> DataMoves {
        let after = assemble(&options(after), &pipelines());
        assert_eq!(after.problems, []);
        DataMoves::between(&after.in_layout(&options(before)), &after)
    }

    fn pairs(moves: &[DataMove]) -> Vec<(&str, &str)> {
        moves.iter().map(|it| (&*it.from, &*it.to)).collect()
    }

    #[test]
    fn other_names_move_the_directories_of_sources_and_disk_buffers() {
        let found = moves(DASHES, UNDERSCORES);
        let sources = [
            ("a-p-in", "a__p__in"),
            ("b-p-in", "b__p__in"),
            ("c-file", "__c__file"),
            ("c-journal", "__c__journal"),
        ];
        assert_eq!(pairs(&found.sources), sources);
        assert_eq!(pairs(&found.buffers).len(), 6);
        assert!(pairs(&found.buffers).contains(&("a-p-stages", "a__p__stages")));
        assert!(pairs(&found.buffers).contains(&("c-disk", "__c__disk")));
        assert!(moves(DASHES, DASHES).is_empty());
    }

    #[test]
    fn merged_sources_share_a_directory() {
        let found = moves(UNDERSCORES, MERGED);
        let [a, b] = &found.sources[..] else {
            panic!("{found:?}");
        };
        assert_eq!((&*a.from, &*b.from), ("a__p__in", "b__p__in"));
        assert_eq!(a.to, b.to);
        assert!(a.to.starts_with("optimizedSource-"), "{a:?}");
        assert_eq!(found.buffers, []);
        let back = moves(MERGED, UNDERSCORES);
        assert_eq!(
            pairs(&back.sources),
            [(&*a.to, "a__p__in"), (&*a.to, "b__p__in")]
        );
    }

    #[test]
    fn a_configuration_in_another_layout_is_the_one_that_is_assembled_so() {
        let all = [
            DASHES,
            UNDERSCORES,
            MERGED,
            layout(ComponentNames::Dashes, true),
        ];
        for from in all {
            for to in all {
                let assembled = assemble(&options(from), &pipelines());
                let expected = assemble(&options(to), &pipelines());
                assert_eq!(assembled.in_layout(&options(to)), expected, "{from} {to}");
            }
        }
    }

    #[test]
    fn parts_tell_their_layout() {
        for it in [
            DASHES,
            UNDERSCORES,
            MERGED,
            layout(ComponentNames::Dashes, true),
        ] {
            let parts = assemble(&options(it), &pipelines()).parts;
            assert_eq!(DataLayout::of_parts(parts.iter()), Some(it));
        }
        assert_eq!(DataLayout::of_parts(std::iter::empty()), None);
    }
}

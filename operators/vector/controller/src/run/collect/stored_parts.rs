//! Secret with the parts that run now, one for each pipeline.
//!
//! The configuration alone does not tell from which object and generation of a pipeline it was made, and which Secrets and ports
//! belong to it.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::sync::Arc;

use flate2::read::GzDecoder;
use lockstep_vector_api::selection::SelectablePipeline;
use lockstep_vector_assembly::{PipelineKey, PipelinePart};

use crate::gzip;

/// Key of the Secret.
pub(crate) const KEY: &str = "parts.json.gz";

/// Maximum size of the content, after decompression: many times that of the largest Secret.
const MAX_BYTES: u64 = 64 << 20;

/// Reads the parts. A content that cannot be read has none: the pipelines are then assembled from what they are now.
pub(crate) fn read(content: Option<&[u8]>) -> BTreeMap<PipelineKey, PipelinePart> {
    let parts = content.and_then(|content| {
        // The parser reads single bytes.
        let reader = BufReader::new(GzDecoder::new(content).take(MAX_BYTES));
        serde_json::from_reader::<_, Vec<PipelinePart>>(reader)
            .inspect_err(|error| tracing::warn!(%error, "the stored parts cannot be read"))
            .ok()
    });
    let parts = parts.unwrap_or_default().into_iter();
    parts.map(|part| (part.pipeline.clone(), part)).collect()
}

/// Returns the parts without those of pipelines that were deleted and created again: what such a pipeline ran ends with it,
/// even if the new one cannot run.
pub(crate) fn without_replaced(
    parts: &BTreeMap<PipelineKey, PipelinePart>,
    pipelines: &[Arc<SelectablePipeline>],
) -> BTreeMap<PipelineKey, PipelinePart> {
    let mut parts = parts.clone();
    for pipeline in pipelines {
        let key = PipelineKey::from(&**pipeline);
        let Some(part) = parts.get_mut(&key) else {
            continue;
        };
        if part.uid.is_empty() {
            // An earlier version has stored it.
            part.uid.clone_from(&pipeline.uid);
        } else if part.uid != pipeline.uid {
            parts.remove(&key);
        }
    }
    parts
}

/// Returns the content. The same parts always give the same bytes.
pub(crate) fn write(parts: &[PipelinePart]) -> Vec<u8> {
    gzip::compressed(&serde_json::to_vec(parts).expect("parts are JSON"))
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::WorkloadRole;
    use lockstep_vector_api::selection::index_selectable;
    use lockstep_vector_assembly::{AssemblyOptions, RunnablePipeline, render};
    use serde_json::json;

    use super::*;

    #[test]
    fn stored_parts_are_read_again_and_unreadable_ones_are_none() {
        let pipeline = RunnablePipeline {
            namespace: Some("n".to_owned()),
            name: "p".to_owned(),
            generation: 7,
            spec: json!({
                "sources": {"in": {"type": "kubernetes_logs"}},
                "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
            }),
            ..RunnablePipeline::default()
        };
        let part = render(&AssemblyOptions::new(WorkloadRole::Agent), &pipeline, None);
        let part = part.expect("a part");
        let content = write(std::slice::from_ref(&part));
        assert_eq!(
            read(Some(&content)),
            BTreeMap::from([(pipeline.key(), part)])
        );
        assert_eq!(read(Some(b"not gzip")), BTreeMap::new());
        assert_eq!(read(None), BTreeMap::new());
    }
    #[test]
    fn what_a_deleted_pipeline_ran_is_not_what_another_one_of_its_name_last_ran() {
        let part = |uid: &str| {
            let pipeline = RunnablePipeline {
                namespace: Some("n".to_owned()),
                name: "p".to_owned(),
                uid: uid.to_owned(),
                spec: json!({
                    "sources": {"in": {"type": "kubernetes_logs"}},
                    "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
                }),
                ..RunnablePipeline::default()
            };
            let part = render(&AssemblyOptions::new(WorkloadRole::Agent), &pipeline, None);
            part.expect("a part")
        };
        let metadata = json!({"namespace": "n", "name": "p", "uid": "new"});
        let (_, present) = index_selectable(&json!({"metadata": metadata}));
        let present = [Arc::new(present)];
        let left = |stored: &str, pipelines: &[Arc<SelectablePipeline>]| {
            let part = part(stored);
            let parts = BTreeMap::from([(part.pipeline.clone(), part)]);
            let left = without_replaced(&parts, pipelines).into_values();
            left.map(|part| part.uid).collect::<Vec<_>>()
        };
        assert_eq!(left("new", &present), ["new"]);
        assert_eq!(left("old", &present), [""; 0]);
        assert_eq!(left("", &present), ["new"]);
        assert_eq!(left("old", &[]), ["old"]);
    }
}

//! Distribution of the size of a Secret among the pipelines of a workload.
//!
//! The values of all pipelines are in one Secret. Without a limit for each, the values of one tenant would keep the
//! changes of all others from being published.

use std::collections::BTreeMap;

use lockstep_vector_assembly::{PipelineKey, PipelinePart, SecretValues};

use crate::owned::MAX_SECRET_BYTES;
use crate::run::assembled::Published;

/// Returns the pipelines whose values do not fit, and why. What runs now keeps its size: of the others, the first ones
/// get what is left.
pub(crate) fn exceeding(
    parts: &[PipelinePart],
    values: &SecretValues,
    published: &Published,
) -> BTreeMap<PipelineKey, String> {
    let before = &published.parts;
    let running = |part: &PipelinePart| {
        let part = before.get(&part.pipeline);
        part.map_or(0, |part| size(part, &published.values))
    };
    let mut total: usize = parts.iter().map(running).sum();
    let mut result = BTreeMap::new();
    let mut ordered: Vec<_> = parts.iter().collect();
    ordered.sort_by_key(|part| (!before.contains_key(&part.pipeline), &part.pipeline));
    for part in ordered {
        let without = total - running(part);
        let with = without + size(part, values);
        if with > MAX_SECRET_BYTES && with > total {
            let why = format!(
                "the values of its Secrets have {} bytes, and {} are left of the {MAX_SECRET_BYTES} for all pipelines of a workload",
                size(part, values),
                MAX_SECRET_BYTES.saturating_sub(without),
            );
            result.insert(part.pipeline.clone(), why);
        } else {
            total = with;
        }
    }
    result
}

fn size(part: &PipelinePart, values: &SecretValues) -> usize {
    let files = part
        .secrets
        .iter()
        .filter_map(|it| values.get(&it.file_name));
    files.map(Vec::len).sum()
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::RunnerKind;
    use lockstep_vector_assembly::{AssemblyOptions, RunnablePipeline, render};
    use serde_json::json;

    use super::*;

    fn part(name: &str) -> PipelinePart {
        let pipeline = RunnablePipeline {
            namespace: Some("n".to_owned()),
            name: name.to_owned(),
            spec: json!({
                "secret": {"s": {"type": "kubernetes_secret", "name": name}},
                "sources": {"in": {"type": "kubernetes_logs"}},
                "sinks": {"out": {
                    "type": "datadog_logs", "inputs": ["in"], "default_api_key": "SECRET[s.key]",
                }},
            }),
            ..RunnablePipeline::default()
        };
        let part = render(&AssemblyOptions::new(RunnerKind::Agent), &pipeline, None);
        part.expect("a part")
    }

    /// Returns the names of the pipelines that do not fit. `sizes` are the sizes of their values, in units of a quarter.
    fn too_large(published: &[(&str, usize)], sizes: &[(&str, usize)]) -> Vec<String> {
        let values = |sizes: &[(&str, usize)]| -> SecretValues {
            let values = sizes.iter().map(|(name, quarters)| {
                let value = vec![b'x'; quarters * MAX_SECRET_BYTES / 4];
                (part(name).secrets[0].file_name.clone(), value)
            });
            values.collect()
        };
        let before = published.iter().map(|(name, _)| part(name));
        let published = Published {
            parts: before.map(|part| (part.pipeline.clone(), part)).collect(),
            values: values(published),
        };
        let parts: Vec<_> = sizes.iter().map(|(name, _)| part(name)).collect();
        let found = exceeding(&parts, &values(sizes), &published);
        found.into_keys().map(|key| key.name).collect()
    }

    #[test]
    fn running_pipelines_keep_their_size_and_others_get_what_is_left() {
        let none = Vec::<String>::new();
        assert_eq!(too_large(&[], &[("a", 2), ("b", 2)]), none);
        assert_eq!(too_large(&[], &[("a", 3), ("b", 2), ("c", 1)]), ["b"]);
        assert_eq!(too_large(&[("b", 2)], &[("a", 3), ("b", 2)]), ["a"]);
        // A running pipeline must not grow at the expense of another one, and both may shrink.
        assert_eq!(
            too_large(&[("a", 2), ("b", 2)], &[("a", 3), ("b", 2)]),
            ["a"]
        );
        assert_eq!(
            too_large(&[("a", 3), ("b", 1)], &[("a", 1), ("b", 3)]),
            none
        );
        assert_eq!(too_large(&[], &[("a", 5), ("b", 1)]), ["a"]);
    }
}
